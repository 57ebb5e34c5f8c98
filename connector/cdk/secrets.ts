import * as t from 'io-ts'
import type { JsonSchema } from './schema'

const schemas = (value: unknown): ReadonlyArray<JsonSchema> =>
  Array.isArray(value) ? value.filter(t.UnknownRecord.is) : t.UnknownRecord.is(value) ? [value] : []

/** What `schema` marks as secret in `value`, which may be wrong in any other way: such texts, and the password of an address. */
export const secretsIn = (schema: JsonSchema, value: unknown): ReadonlyArray<string> => {
  if (schema.airbyte_secret === true) return texts(value)
  if (!t.UnknownRecord.is(value)) return []
  return [schema, ...schemas(schema.oneOf)].flatMap(({ properties }) =>
    Object.entries(t.UnknownRecord.is(properties) ? properties : {}).flatMap(([key, inner]) =>
      schemas(inner).flatMap((declared) => secretsIn(declared, value[key])),
    ),
  )
}

const texts = (value: unknown): ReadonlyArray<string> => {
  if (typeof value === 'number') return [String(value)]
  if (typeof value !== 'string') return []
  const { password } = URL.canParse(value) ? new URL(value) : { password: '' }
  return [value.trim(), ...(password === '' ? [] : [password, unescaped(password)])].filter((text) => text !== '')
}

const unescaped = (text: string): string => {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
