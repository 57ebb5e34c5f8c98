import * as t from 'io-ts'
import type { JsonSchema } from './schema'

/** Why something ended. The tag says what helps: another config, a later run, or a change of the connector. */
export type Failure = {
  readonly _tag: 'Config' | 'Transient' | 'System'
  /** For the person who must act: what is wrong, where, what to do. Holds no secret and no record. */
  readonly message: string
  /** For the log and the maintainers. */
  readonly detail?: string
  /** run: every other request of the run would fail the same way, as with a wrong token. */
  readonly scope?: 'run'
}

const createFailure =
  (_tag: Failure['_tag']) =>
  (message: string, detail?: string): Failure =>
    detail === undefined ? { _tag, message } : { _tag, message, detail }

/** The caller must change something: a config, a catalog, a state, a permission. */
export const configFailure = createFailure('Config')
/** The service or the network failed: the same run may succeed later. */
export const transientFailure = createFailure('Transient')
/** The connector is wrong. */
export const systemFailure = createFailure('System')

/** The failure for an unexpected exception; the detail holds its stack. */
export const unexpectedFailure = (error: unknown): Failure =>
  systemFailure(
    `An unexpected error in the connector: ${error instanceof Error ? error.message : String(error)}. Please report it.`,
    error instanceof Error ? error.stack : undefined,
  )

const base64Variants = (text: string): ReadonlyArray<string> => [
  text,
  text.replaceAll('+', '-').replaceAll('/', '_'),
  encodeURIComponent(text),
]

/** The secret in base64 as a part of a longer text, for each of the three alignments it can have there (as in `Basic base64(id:secret)`). */
const base64Forms = (secret: string): ReadonlyArray<string> =>
  [0, 1, 2].flatMap((shift) => {
    const bytes = Buffer.concat([Buffer.alloc(shift), Buffer.from(secret)])
    const whole = bytes.toString('base64').replace(/=+$/, '')
    const from = Math.ceil((shift * 8) / 6)
    const to = Math.floor((bytes.length * 8) / 6)
    return base64Variants(whole.slice(from, to))
  })

const escapeJson = (text: string): string => JSON.stringify(text).slice(1, -1)

const encodedForms = (secret: string): ReadonlyArray<string> => {
  const bytes = Buffer.from(secret)
  const url = encodeURIComponent(bytes.toString())
  const form = new URLSearchParams({ '': secret }).toString().slice(1)
  const plain = [secret, url, url.toLowerCase(), form, escapeJson(secret), escapeJson(escapeJson(secret))]
  return secret.length < 4 ? plain : [...plain, bytes.toString('hex'), ...base64Forms(secret)]
}

/** Replaces each secret by `***`, whether raw, URL- or form-encoded, in JSON, in hexadecimal, or in base64 of any alignment. */
export const createRedactor = (secrets: ReadonlyArray<string>): ((text: string) => string) => {
  const needles = [...new Set(secrets.filter((secret) => secret !== '').flatMap(encodedForms))].sort(
    (a, b) => b.length - a.length,
  )
  return (text) => needles.reduce((redacted, needle) => redacted.replaceAll(needle, '***'), text)
}

/** The failure with its texts redacted. */
export const redactFailure = (redact: (text: string) => string, { _tag, message, detail }: Failure): Failure => ({
  _tag,
  message: redact(message),
  ...(detail === undefined ? {} : { detail: redact(detail) }),
})

const schemasIn = (value: unknown): ReadonlyArray<JsonSchema> =>
  Array.isArray(value) ? value.filter(t.UnknownRecord.is) : t.UnknownRecord.is(value) ? [value] : []

/** The texts in `value` that `schema` marks as secret, and the password of an address. The value need not match the schema otherwise. */
export const findSecrets = (schema: JsonSchema, value: unknown): ReadonlyArray<string> => {
  if (schema.airbyte_secret === true) return secretTexts(value)
  if (!t.UnknownRecord.is(value)) return []
  return [schema, ...schemasIn(schema.oneOf)].flatMap(({ properties }) =>
    Object.entries(t.UnknownRecord.is(properties) ? properties : {}).flatMap(([key, inner]) =>
      schemasIn(inner).flatMap((declared) => findSecrets(declared, value[key])),
    ),
  )
}

const secretTexts = (value: unknown): ReadonlyArray<string> => {
  if (typeof value === 'number') return [String(value)]
  if (typeof value !== 'string') return []
  const { password } = URL.canParse(value) ? new URL(value) : { password: '' }
  return [value.trim(), ...(password === '' ? [] : [password, decodeUriText(password)])].filter((text) => text !== '')
}

const decodeUriText = (text: string): string => {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** The reason why the file system refused a path. */
export const pathFailure = (path: string, error: unknown): Failure => {
  const { code } = error as NodeJS.ErrnoException
  if (code === 'ENOTDIR') return configFailure(`${path} is not a folder, or leads through a file. Check the path.`)
  return configFailure(
    code === 'EACCES'
      ? `${path}: permission denied. Check who may read and write it, and who may enter its folder.`
      : `${path} cannot be used (${code}). Check the path.`,
  )
}
