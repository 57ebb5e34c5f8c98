import fc from 'fast-check'
import type { JsonSchema } from '../../connector/cdk/schema'

const wrong = fc.oneof(
  fc.constant(null),
  fc.boolean(),
  fc.integer(),
  fc.constant(0.5),
  fc.string(),
  fc.constant([]),
  fc.constant({}),
)

/** Values that a schema accepts; some have a wrong value at some depth, a missing key or an unknown key. */
export const valueFor = (schema: JsonSchema, mistakes = 20): fc.Arbitrary<unknown> =>
  fc.oneof({ weight: mistakes * 10, arbitrary: right(schema, mistakes * 3) }, { weight: 1, arbitrary: wrong })

const right = (schema: JsonSchema, mistakes: number): fc.Arbitrary<unknown> => {
  if (schema.oneOf !== undefined) return fc.oneof(...(schema.oneOf as JsonSchema[]).map((one) => right(one, mistakes)))
  if ('const' in schema) return fc.constant(schema.const)
  if (schema.enum !== undefined) return fc.constantFrom(...(schema.enum as unknown[]))
  const types = [schema.type ?? 'string'].flat() as string[]
  return fc.oneof(...types.map((type) => ofType(type, schema, mistakes)))
}

const ofType = (type: string, schema: JsonSchema, mistakes: number): fc.Arbitrary<unknown> => {
  const { minimum, maximum } = schema as { minimum?: number; maximum?: number }
  const range = {
    ...(minimum === undefined ? {} : { min: minimum }),
    ...(maximum === undefined ? {} : { max: maximum }),
  }
  switch (type) {
    case 'null':
      return fc.constant(null)
    case 'boolean':
      return fc.boolean()
    case 'integer':
      return fc.integer(range)
    case 'number':
      return fc.double({ ...range, noNaN: true, noDefaultInfinity: true })
    case 'array':
      return arrayOf(schema, mistakes)
    case 'object':
      return objectOf(schema, mistakes)
    default:
      return stringOf(schema)
  }
}

const stringOf = ({ format, pattern, minLength, airbyte_secret }: JsonSchema): fc.Arbitrary<string> => {
  if (format === 'date-time')
    return fc
      .date({ min: new Date(0), max: new Date('2090-01-01'), noInvalidDate: true })
      .map((date) => date.toISOString())
  if (format === 'uri') return fc.webUrl()
  if (typeof pattern === 'string') return fc.stringMatching(new RegExp(pattern))
  // Long enough that no message contains it by chance.
  if (airbyte_secret === true) return fc.string({ minLength: 16, maxLength: 32 })
  return fc.string({ minLength: (minLength as number | undefined) ?? 0 })
}

const arrayOf = ({ items, uniqueItems }: JsonSchema, mistakes: number): fc.Arbitrary<unknown> => {
  const item = valueFor((items as JsonSchema | undefined) ?? {}, mistakes)
  return uniqueItems === true ? fc.uniqueArray(item, { maxLength: 2 }) : fc.array(item, { maxLength: 3 })
}

const objectOf = (schema: JsonSchema, mistakes: number): fc.Arbitrary<unknown> => {
  const properties = Object.entries((schema.properties as Record<string, JsonSchema> | undefined) ?? {})
  const required = new Set((schema.required as string[] | undefined) ?? [])
  const model = Object.fromEntries(properties.map(([key, inner]) => [key, valueFor(inner, mistakes)]))
  return fc
    .tuple(
      fc.record(model, { requiredKeys: properties.map(([key]) => key).filter((key) => required.has(key)) }),
      fc.nat(mistakes * 4),
      fc.nat(40),
    )
    .map(([value, leaveOut, add]) => {
      const [first] = required
      const kept =
        leaveOut === 0 && first !== undefined
          ? Object.fromEntries(Object.entries(value).filter(([key]) => key !== first))
          : value
      return add === 0 ? { ...kept, mood: 'sunny' } : kept
    })
}
