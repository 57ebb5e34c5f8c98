import { isUtf8 } from 'node:buffer'

const surrogatePattern =
  /\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})|\\./g

/** JSON allows half of a surrogate pair as an escape, DuckDB does not: such a half becomes U+FFFD, as does what is no UTF-8. */
export const replaceLoneSurrogates = (json: Buffer): Buffer =>
  isUtf8(json) && !json.includes('\\ud') && !json.includes('\\uD')
    ? json
    : Buffer.from(
        json
          .toString()
          .replace(surrogatePattern, (found, lone: string | undefined) => (lone === undefined ? found : '\\ufffd')),
      )
