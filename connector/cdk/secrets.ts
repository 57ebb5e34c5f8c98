import * as t from 'io-ts'
import type { JsonSchema } from './schema'

const schemasIn = (value: unknown): ReadonlyArray<JsonSchema> =>
  Array.isArray(value) ? value.filter(t.UnknownRecord.is) : t.UnknownRecord.is(value) ? [value] : []

/** What `schema` marks as secret in `value`, which may be wrong in any other way: such texts, and the password of an address. */
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
