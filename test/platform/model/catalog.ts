import type { ConfiguredStream, Connection, Json } from './connection'
import { mapColumn, toDestinationName } from './mappers'

/**
 * A source is asked to append where the destination is asked to update or delete. airbyte-platform: CatalogTransforms.
 */
export const toSourceCatalog = (streams: ReadonlyArray<ConfiguredStream>): Json => ({
  streams: streams.map((configured) =>
    ['update', 'soft_delete'].includes(configured.destination_sync_mode)
      ? { ...configured, destination_sync_mode: 'append' }
      : configured,
  ),
})

/** With ids, minimum_generation_id says what is replaced, so the mode only appends. */
export const toDestinationMode = ({ destination_sync_mode: mode, generation_id }: ConfiguredStream): string => {
  if (generation_id === undefined) return mode === 'overwrite_dedup' ? 'overwrite' : mode
  return mode.replace(/^overwrite/, 'append')
}

/** The first type that is not null; objects and arrays keep what they say of themselves. */
const toPlainType = (schema: Json): Json => {
  const types = [schema.type].flat().filter((type) => type !== 'null')
  const type = types[0]
  if (type === 'object' || type === 'array') return { ...schema, type }
  return {
    type: type ?? 'string',
    ...(schema.format === undefined ? {} : { format: schema.format }),
    ...(schema.airbyte_type === undefined ? {} : { airbyte_type: schema.airbyte_type }),
  }
}

/**
 * A schema made from the top-level columns, as the mappers leave them. airbyte-mappers: DestinationCatalogGenerator.
 */
export const toDestinationSchema = (connection: Connection, { stream }: ConfiguredStream): Json => ({
  $schema: 'http://json-schema.org/schema#',
  type: 'object',
  properties: Object.fromEntries(
    Object.entries((stream.json_schema.properties ?? {}) as Readonly<Record<string, Json>>).map(([column, schema]) => [
      mapColumn(connection, stream.name, column),
      toPlainType(schema),
    ]),
  ),
  additionalProperties: true,
})

/** The catalogue that a destination sees. Modes, names, columns and schemas differ from the source's. */
export const toDestinationCatalog = (connection: Connection, streams: ReadonlyArray<ConfiguredStream>): Json => ({
  streams: streams.map((configured) => {
    const { stream, primary_key = [], cursor_field = [] } = configured
    const map = (column: string): string => mapColumn(connection, stream.name, column)
    return {
      ...configured,
      stream: {
        ...stream,
        ...toDestinationName(connection, stream),
        json_schema: toDestinationSchema(connection, configured),
      },
      destination_sync_mode: toDestinationMode(configured),
      primary_key: primary_key.map((path) => path.map(map)),
      cursor_field: cursor_field.map(map),
    }
  }),
})
