import * as t from 'io-ts'
import type { Failure } from './failure'
import type { JsonSchema } from './schema'

const base64Variants = (text: string): ReadonlyArray<string> => [
  text,
  text.replaceAll('+', '-').replaceAll('/', '_'),
  encodeURIComponent(text),
]

/**
 * The base64 forms of the secret inside a longer text, one for each of its three alignments (as in `Basic
 * base64(id:secret)`).
 */
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

/**
 * Replaces each secret by `***`, whether it is raw, URL- or form-encoded, in JSON, hexadecimal, or base64 of any
 * alignment.
 */
export const createRedactor = (secrets: ReadonlyArray<string>): ((text: string) => string) => {
  const needles = [...new Set(secrets.filter((secret) => secret !== '').flatMap(encodedForms))].sort(
    (a, b) => b.length - a.length,
  )
  return (text) => needles.reduce((redacted, needle) => redacted.replaceAll(needle, '***'), text)
}

export const redactFailure = (redact: (text: string) => string, { _tag, message, detail }: Failure): Failure => ({
  _tag,
  message: redact(message),
  ...(detail === undefined ? {} : { detail: redact(detail) }),
})

const schemasIn = (value: unknown): ReadonlyArray<JsonSchema> =>
  Array.isArray(value) ? value.filter(t.UnknownRecord.is) : t.UnknownRecord.is(value) ? [value] : []

/**
 * The strings in `value` that `schema` marks as secret, and the passwords of URLs. The value may otherwise violate the
 * schema.
 */
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
