import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as O from 'fp-ts/Option'
import * as t from 'io-ts'
import {
  type ConfiguredCatalog,
  type ConfiguredStream,
  type DestinationSyncMode,
  wrongCatalogFailure,
} from '../catalog'
import type { Failure } from '../failure'
import { decodeValue } from '../json/validate'
import { jsonLine } from '../lines'
import { addSchemaVersion, annotate, type JsonSchema, nullish } from '../schema'
import type { Sink } from '../sink'
import type { Stream } from '../stream'

const listOf = <C extends t.Mixed>(codec: C) => annotate({ type: 'array' })(t.readonlyArray(codec))
const SyncModes = annotate({ enum: ['full_refresh', 'incremental'] })(
  t.keyof({ full_refresh: null, incremental: null }),
)

const KeyPath = t.readonlyArray(t.string)
const KeyPaths = t.readonlyArray(KeyPath)

const modesCodec = (modes: ReadonlyArray<DestinationSyncMode>) =>
  annotate({ enum: modes })(t.keyof(Object.fromEntries(modes.map((mode) => [mode, null]))))

/** A configured stream after its role's codec has accepted it. */
type RawStream = {
  readonly stream: { readonly name: string } & Readonly<Record<string, unknown>>
} & Readonly<Record<string, unknown>>

const streamCodec = <C extends t.Mixed>(exampleName: string, members: C) =>
  annotate({ type: 'object' })(
    t.intersection([t.type({ name: annotate({ examples: [exampleName] })(t.string) }), members, t.UnknownRecord]),
  )

const discoveredMembers = t.intersection([
  t.type({ json_schema: annotate({ type: 'object' })(t.UnknownRecord) }),
  t.partial({
    namespace: nullish(t.string),
    source_defined_primary_key: nullish(KeyPaths),
    default_cursor_field: nullish(KeyPath),
  }),
])

/** Each program checks only the members it uses. Members that only another program uses may be missing or unknown. */
const roleCodecs = {
  source: t.intersection([
    t.type({ stream: streamCodec('reviews', t.UnknownRecord) }),
    t.partial({ sync_mode: nullish(SyncModes) }),
    t.UnknownRecord,
  ]),
  destination: t.intersection([
    t.type({
      stream: streamCodec(
        'visit_records',
        t.partial({
          namespace: nullish(t.string),
          source_defined_primary_key: nullish(annotate({ type: 'array' })(KeyPaths)),
        }),
      ),
    }),
    t.partial({
      sync_mode: nullish(t.string),
      destination_sync_mode: nullish(modesCodec(['append', 'overwrite', 'append_dedup', 'update', 'soft_delete'])),
      destination_object_name: nullish(t.string),
      primary_key: nullish(annotate({ type: 'array' })(KeyPaths)),
    }),
    t.UnknownRecord,
  ]),
  snapshot: t.intersection([
    t.type({ stream: streamCodec('reviews', discoveredMembers) }),
    t.partial({
      sync_mode: nullish(SyncModes),
      destination_sync_mode: nullish(modesCodec(['append', 'overwrite', 'append_dedup', 'overwrite_dedup'])),
      primary_key: nullish(KeyPaths),
      cursor_field: nullish(KeyPath),
      generation_id: nullish(t.number),
      minimum_generation_id: nullish(t.number),
    }),
    t.UnknownRecord,
  ]),
} satisfies Record<string, t.Mixed>

/**
 * A configured catalog as a platform writes it. A failure names the key path. `role`: the program that reads the
 * catalog and checks the members it uses.
 */
export const decodeConfiguredCatalog =
  (role: keyof typeof roleCodecs) =>
  (value: unknown): E.Either<Failure, ConfiguredCatalog> =>
    pipe(
      decodeValue(t.type({ streams: listOf(roleCodecs[role] as t.Mixed as t.Type<RawStream, unknown>) }), value),
      E.bimap(wrongCatalogFailure, ({ streams }) => streams.map(readConfiguredStream)),
    )

const textIn = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined)
const numberIn = (value: unknown): number | undefined => (typeof value === 'number' ? value : undefined)
const nonEmpty = <A>(codec: t.Type<ReadonlyArray<A>, unknown>, value: unknown): ReadonlyArray<A> | undefined =>
  codec.is(value) && value.length > 0 ? value : undefined

const readConfiguredStream = ({ stream, ...settings }: RawStream): ConfiguredStream => ({
  name: stream.name,
  namespace: textIn(stream.namespace),
  schema: t.UnknownRecord.is(stream.json_schema) ? stream.json_schema : {},
  syncMode: SyncModes.is(settings.sync_mode) ? settings.sync_mode : undefined,
  destinationSyncMode: textIn(settings.destination_sync_mode) as DestinationSyncMode | undefined,
  objectName: textIn(settings.destination_object_name),
  primaryKey: nonEmpty(KeyPaths, settings.primary_key) ?? nonEmpty(KeyPaths, stream.source_defined_primary_key) ?? [],
  cursor: nonEmpty(KeyPath, settings.cursor_field) ?? nonEmpty(KeyPath, stream.default_cursor_field) ?? [],
  generation: numberIn(settings.generation_id),
  minimumGeneration: numberIn(settings.minimum_generation_id),
})

const DiscoveredCatalog = t.type({ streams: t.readonlyArray(streamCodec('reviews', discoveredMembers)) })

/** The output of `discover`. A stream with a cursor counts as incremental. Undefined if the value is not a catalog. */
export const decodeDiscoveredCatalog = (value: unknown): ConfiguredCatalog | undefined =>
  DiscoveredCatalog.is(value)
    ? value.streams
        .map((stream) => readConfiguredStream({ stream }))
        .map((configured) => ({
          ...configured,
          syncMode: configured.cursor.length > 0 ? 'incremental' : 'full_refresh',
        }))
    : undefined

/** A stream as it appears in the output of `discover` and in a configured catalog. */
export const describeAirbyteStream = <Env>({ name, schema, primaryKey, cursor, syncModes }: Stream<Env>) => ({
  name,
  json_schema: addSchemaVersion(schema),
  supported_sync_modes: syncModes,
  source_defined_cursor: true,
  ...(O.isSome(cursor) ? { default_cursor_field: [cursor.value] } : {}),
  source_defined_primary_key: primaryKey.map((key) => [key]),
  is_resumable: O.isSome(cursor),
})

/** The output of `discover`. */
export const sourceCatalogLine = <Env>(streams: ReadonlyArray<Stream<Env>>): string =>
  jsonLine({ type: 'CATALOG', catalog: { streams: streams.map(describeAirbyteStream) } })

/** The configured catalog that selects all of `streams`. */
export const selectAllStreams = <Env>(streams: ReadonlyArray<Stream<Env>>) => ({
  streams: streams.map((stream) => ({
    stream: describeAirbyteStream(stream),
    sync_mode: O.isSome(stream.cursor) ? 'incremental' : 'full_refresh',
    destination_sync_mode: O.isSome(stream.cursor) ? 'append_dedup' : 'overwrite',
    cursor_field: O.isSome(stream.cursor) ? [stream.cursor.value] : [],
    primary_key: stream.primaryKey.map((key) => [key]),
  })),
})

/** The version of the Airbyte protocol that we speak (airbyte_protocol.yaml). */
const protocolVersion = '0.18.0'

/** The output of a source's `spec`. */
export const sourceSpecLine = (connectionSpecification: JsonSchema, documentationUrl: string): string =>
  jsonLine({
    type: 'SPEC',
    spec: { documentationUrl, connectionSpecification, supportsIncremental: true, protocol_version: protocolVersion },
  })

/** What a platform may ask a destination to do with a stream. */
const destinationSyncModes = ['append', 'append_dedup', 'overwrite', 'update', 'soft_delete']

/** The output of a destination's `spec`. */
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

/** The output of a destination's `discover`: each object once per operation. */
export const destinationCatalogLine = <Env>(sinks: ReadonlyArray<Sink<Env>>): string =>
  jsonLine({
    type: 'DESTINATION_CATALOG',
    destination_catalog: {
      operations: sinks.flatMap(({ name, schema, matchingKeys, operations }) =>
        operations.map((sync_mode) => ({
          object_name: name,
          sync_mode,
          json_schema: addSchemaVersion(schema),
          matching_keys: matchingKeys,
        })),
      ),
    },
  })
