import type { JsonSchema } from '../../connector/cdk/schema'

/** A schema at a path inside another one. */
export type Placed = { readonly path: string; readonly name: string; readonly schema: JsonSchema }

const isSchema = (value: unknown): value is JsonSchema =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

export const propertiesOf = (schema: JsonSchema): Readonly<Record<string, JsonSchema>> =>
  isSchema(schema.properties) ? (schema.properties as Readonly<Record<string, JsonSchema>>) : {}

export const alternativesOf = (schema: JsonSchema): ReadonlyArray<JsonSchema> =>
  Array.isArray(schema.oneOf) ? schema.oneOf.filter(isSchema) : []

export const typesOf = (schema: JsonSchema): ReadonlyArray<unknown> => [schema.type ?? []].flat()

/** Every property at every depth: inside objects, alternatives and lists. */
export const walk = (schema: JsonSchema, path = ''): ReadonlyArray<Placed> => [
  ...Object.entries(propertiesOf(schema)).flatMap(([name, inner]) => [
    { path: `${path}/${name}`, name, schema: inner },
    ...walk(inner, `${path}/${name}`),
  ]),
  ...alternativesOf(schema).flatMap((one, i) => walk(one, `${path}/${i}`)),
  ...(isSchema(schema.items) ? walk(schema.items, `${path}/[]`) : []),
]

/** Every keyword used anywhere in a schema, as opposed to names of properties. */
export const keywords = (schema: JsonSchema): ReadonlyArray<string> => [
  ...new Set([
    ...Object.keys(schema),
    ...walk(schema).flatMap(({ schema: inner }) => Object.keys(inner)),
    ...alternativesOf(schema).flatMap(keywords),
  ]),
]
