import type { JsonSchema } from '../../connector/cdk/schema'

/** A schema at a path inside another one. */
export type SchemaAtPath = { readonly path: string; readonly name: string; readonly schema: JsonSchema }

const isSchema = (value: unknown): value is JsonSchema =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

export const schemaProperties = (schema: JsonSchema): Readonly<Record<string, JsonSchema>> =>
  isSchema(schema.properties) ? (schema.properties as Readonly<Record<string, JsonSchema>>) : {}

export const schemaAlternatives = (schema: JsonSchema): ReadonlyArray<JsonSchema> =>
  Array.isArray(schema.oneOf) ? schema.oneOf.filter(isSchema) : []

export const schemaTypes = (schema: JsonSchema): ReadonlyArray<unknown> => [schema.type ?? []].flat()

/** Every property at every depth: inside objects, alternatives and lists. */
export const walkSchema = (schema: JsonSchema, path = ''): ReadonlyArray<SchemaAtPath> => [
  ...Object.entries(schemaProperties(schema)).flatMap(([name, inner]) => [
    { path: `${path}/${name}`, name, schema: inner },
    ...walkSchema(inner, `${path}/${name}`),
  ]),
  ...schemaAlternatives(schema).flatMap((one, i) => walkSchema(one, `${path}/${i}`)),
  ...(isSchema(schema.items) ? walkSchema(schema.items, `${path}/[]`) : []),
]

/** Every keyword used anywhere in a schema, as opposed to names of properties. */
export const schemaKeywords = (schema: JsonSchema): ReadonlyArray<string> => [
  ...new Set([
    ...Object.keys(schema),
    ...walkSchema(schema).flatMap(({ schema: inner }) => Object.keys(inner)),
    ...schemaAlternatives(schema).flatMap(schemaKeywords),
  ]),
]
