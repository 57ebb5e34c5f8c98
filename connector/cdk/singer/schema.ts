import * as t from 'io-ts'
import type { JsonSchema } from '../schema'

const mapProperties = (properties: unknown, f: (schema: JsonSchema) => JsonSchema): JsonSchema =>
  Object.fromEntries(
    Object.entries(t.UnknownRecord.is(properties) ? properties : {}).map(([key, inner]) => [
      key,
      t.UnknownRecord.is(inner) ? f(inner) : {},
    ]),
  )

/** The schema as Singer targets want it: each `type` an array at every depth, none of Airbyte's own keywords. */
export const toSingerSchema = ({ airbyte_type: _, ...schema }: JsonSchema): JsonSchema => ({
  ...schema,
  ...('type' in schema ? { type: [schema.type].flat() } : {}),
  ...('properties' in schema ? { properties: mapProperties(schema.properties, toSingerSchema) } : {}),
  ...(t.UnknownRecord.is(schema.items) ? { items: toSingerSchema(schema.items) } : {}),
})

/** The attributes that a schema declares at its top level. */
export const schemaAttributes = (schema: JsonSchema): ReadonlyArray<string> =>
  t.UnknownRecord.is(schema.properties) ? Object.keys(schema.properties) : []

/** The schema with only these top-level attributes, left out of `required` too. */
export const selectSchemaAttributes = (schema: JsonSchema, kept: ReadonlySet<string>): JsonSchema => {
  const { properties, required, ...rest } = schema
  const still = Array.isArray(required) ? required.filter((name) => kept.has(name)) : []
  return {
    ...rest,
    properties: Object.fromEntries(
      Object.entries(t.UnknownRecord.is(properties) ? properties : {}).filter(([name]) => kept.has(name)),
    ),
    ...(still.length === 0 ? {} : { required: still }),
  }
}
