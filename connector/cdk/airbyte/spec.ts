import { jsonLine } from '../lines'
import type { JsonSchema } from '../schema'
import type { Sink } from '../sink'

/** Airbyte protocol version spoken (airbyte_protocol.yaml). */
const protocolVersion = '0.18.0'

/** What a source's `spec` prints. */
export const sourceSpecLine = (connectionSpecification: JsonSchema, documentationUrl: string): string =>
  jsonLine({
    type: 'SPEC',
    spec: { documentationUrl, connectionSpecification, supportsIncremental: true, protocol_version: protocolVersion },
  })

/** What platforms may ask a destination to do with a stream. */
const destinationSyncModes = ['append', 'append_dedup', 'overwrite', 'update', 'soft_delete']

/** What a destination's `spec` prints. */
export const destinationSpecLine = (connectionSpecification: JsonSchema, documentationUrl: string): string =>
  jsonLine({
    type: 'SPEC',
    spec: {
      documentationUrl,
      connectionSpecification,
      supportsIncremental: true,
      supported_destination_sync_modes: destinationSyncModes,
      protocol_version: protocolVersion,
    },
  })

/** What a destination's `discover` prints: each object once for each operation. */
export const destinationCatalogLine = <Env>(sinks: ReadonlyArray<Sink<Env>>): string =>
  jsonLine({
    type: 'DESTINATION_CATALOG',
    destination_catalog: {
      operations: sinks.flatMap(({ name, schema, matchingKeys, operations }) =>
        operations.map((sync_mode) => ({
          object_name: name,
          sync_mode,
          json_schema: { $schema: 'http://json-schema.org/draft-07/schema#', ...schema },
          matching_keys: matchingKeys.map((key) => [key]),
        })),
      ),
    },
  })
