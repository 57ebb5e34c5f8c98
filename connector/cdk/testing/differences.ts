import * as t from 'io-ts'
import { toMillis } from '../scalar'
import type { JsonSchema } from '../schema'

/** The members of an object; none of any other value. */
export const membersOf = (value: unknown): Readonly<Record<string, unknown>> => (t.UnknownRecord.is(value) ? value : {})
export const listOf = (value: unknown): ReadonlyArray<unknown> => (Array.isArray(value) ? value : [])

const typesOf = (value: unknown): readonly [string, ...string[]] => {
  if (value === null) return ['null']
  if (Array.isArray(value)) return ['array']
  if (typeof value === 'bigint' || Number.isInteger(value)) return ['integer', 'number']
  return [typeof value]
}

/** True for an ISO 8601 time with a zone. Warehouses need the zone to load it. */
const isZonedTime = (text: string): boolean => /(Z|[+-]\d\d:?\d\d)$/.test(text) && !Number.isNaN(toMillis(text))

const describeOwnDifference = (schema: JsonSchema, value: unknown): string | undefined => {
  const types = schema.type === undefined ? [] : [schema.type].flat()
  const actual = typesOf(value)
  if (types.length > 0 && !actual.some((type) => types.includes(type)))
    return `is ${actual[0]} and declared as ${types.join(' or ')}`
  if (Array.isArray(schema.enum) && !schema.enum.includes(value)) return 'is none of the declared values'
  if ('const' in schema && schema.const !== value) return 'is not the declared value'
  if (schema.format === 'date-time' && typeof value === 'string' && !isZonedTime(value))
    return 'is declared as a date-time but is not a time with a zone'
  const fitsNone = [schema.oneOf, schema.anyOf].some(
    (some) => Array.isArray(some) && some.every((one) => findDifferences(membersOf(one), value, '').length > 0),
  )
  return fitsNone ? 'fits none of the declared alternatives' : undefined
}

/** Where a value differs from its JSON schema, by path. Quotes no value, since records may be about people. */
export const findDifferences = (schema: JsonSchema, value: unknown, path: string): ReadonlyArray<string> => {
  const own = describeOwnDifference(schema, value)
  if (own !== undefined) return [`${path} ${own}`]
  if (Array.isArray(value)) return value.flatMap((item) => findDifferences(membersOf(schema.items), item, `${path}[]`))
  if (!t.UnknownRecord.is(value)) return []
  return [
    ...listOf(schema.required).flatMap((name) =>
      Object.hasOwn(value, String(name)) ? [] : [`${path}.${name} is missing`],
    ),
    ...Object.entries(membersOf(schema.properties)).flatMap(([name, inner]) =>
      Object.hasOwn(value, name) ? findDifferences(membersOf(inner), value[name], `${path}.${name}`) : [],
    ),
  ]
}
