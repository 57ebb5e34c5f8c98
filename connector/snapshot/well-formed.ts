const pairOrLone = /\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})|\\./g

/** JSON allows half of a surrogate pair as an escape, DuckDB does not: such a half becomes U+FFFD, as in any text that is decoded. */
export const wellFormed = (json: string): string =>
  json.includes('\\ud') || json.includes('\\uD')
    ? json.replace(pairOrLone, (found, lone: string | undefined) => (lone === undefined ? found : '\\ufffd'))
    : json
