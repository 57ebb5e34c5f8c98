import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as O from 'fp-ts/Option'
import * as t from 'io-ts'
import { annotate, configFailure, decodeValue, type Failure, type JsonSchema, type StreamInfo } from '../../cdk'
import type { LoadOptions } from './stream-load'

/** What a configured catalog says of a stream that comes in. */
export type ExpectedStream = { readonly info: StreamInfo; readonly loadOptions: LoadOptions }
export type ExpectedStreams = ReadonlyMap<string, ExpectedStream>

const nullish = <C extends t.Mixed>(codec: C) => t.union([codec, t.null, t.undefined])
const KeyPaths = nullish(t.readonlyArray(t.readonlyArray(t.string)))
const destinationModes = { append: null, overwrite: null, append_dedup: null, overwrite_dedup: null }

const StreamCodec = t.intersection([
  t.type({
    name: annotate({ examples: ['reviews'] })(t.string),
    json_schema: annotate({ type: 'object' })(t.UnknownRecord),
  }),
  t.partial({
    namespace: nullish(t.string),
    source_defined_primary_key: KeyPaths,
    default_cursor_field: nullish(t.readonlyArray(t.string)),
  }),
])
const ConfiguredCodec = t.intersection([
  t.type({ stream: StreamCodec }),
  t.partial({
    sync_mode: nullish(
      annotate({ enum: ['full_refresh', 'incremental'] })(t.keyof({ full_refresh: null, incremental: null })),
    ),
    destination_sync_mode: nullish(annotate({ enum: Object.keys(destinationModes) })(t.keyof(destinationModes))),
    primary_key: KeyPaths,
    cursor_field: nullish(t.readonlyArray(t.string)),
    generation_id: nullish(t.number),
    minimum_generation_id: nullish(t.number),
  }),
])
const ConfiguredCatalogCodec = t.type({ streams: annotate({ type: 'array' })(t.readonlyArray(ConfiguredCodec)) })
const DiscoveredCatalogCodec = t.type({ streams: annotate({ type: 'array' })(t.readonlyArray(StreamCodec)) })

/** A configured catalog; a failure names the key path. */
export const decodeExpectedStreams = (catalog: unknown): E.Either<Failure, ExpectedStreams> =>
  pipe(
    decodeValue(ConfiguredCatalogCodec, catalog),
    E.bimap(
      (wrong) =>
        configFailure(
          `The catalog is wrong: ${wrong.map(({ path, problem }) => `${path || 'it'} ${problem}`).join('; ')}.`,
        ),
      ({ streams }) => indexByTable(streams),
    ),
  )

/** What `discover` prints: every stream that has a cursor is taken for incremental. */
export const decodeDiscoveredStreams = (catalog: unknown): ExpectedStreams =>
  DiscoveredCatalogCodec.is(catalog)
    ? indexByTable(
        catalog.streams.map((stream) => ({
          stream,
          sync_mode:
            (stream.default_cursor_field ?? []).length > 0 ? ('incremental' as const) : ('full_refresh' as const),
        })),
      )
    : new Map()

type NamedStream = { readonly name: string; readonly namespace?: string | null | undefined }

/** The stream's table: its name, or where two namespaces have the same name, `namespace.name`. */
export const tableNameOf = (expected: ExpectedStreams, { name, namespace }: NamedStream): string => {
  const long = `${namespace}.${name}`
  return namespace && expected.has(long) ? long : name
}

const indexByTable = (streams: ReadonlyArray<t.TypeOf<typeof ConfiguredCodec>>): ExpectedStreams =>
  new Map(
    streams.map((configured) => {
      const { name, namespace } = configured.stream
      const twins = streams.filter(({ stream }) => stream.name === name)
      const table = namespace && twins.length > 1 ? `${namespace}.${name}` : name
      return [table, toExpectedStream(configured, table)]
    }),
  )

const toExpectedStream = (configured: t.TypeOf<typeof ConfiguredCodec>, name: string): ExpectedStream => {
  const { stream, destination_sync_mode: mode, generation_id: generation, minimum_generation_id: minimum } = configured
  const key = nonEmptyList(configured.primary_key) ?? nonEmptyList(stream.source_defined_primary_key) ?? []
  const cursor = nonEmptyList(configured.cursor_field) ?? nonEmptyList(stream.default_cursor_field)
  return {
    info: {
      name,
      schema: stream.json_schema as JsonSchema,
      primaryKey: key.map((path) => path.join('.')),
      cursor: O.fromNullable(cursor?.join('.')),
      syncMode: configured.sync_mode ?? 'full_refresh',
    },
    loadOptions: {
      ...(mode === null || mode === undefined ? {} : { mode: mode === 'overwrite_dedup' ? 'overwrite' : mode }),
      ...(generation === null || generation === undefined || generation <= 0
        ? {}
        : { generation, minimum: minimum ?? 0 }),
    },
  }
}

const nonEmptyList = <A>(list: ReadonlyArray<A> | null | undefined): ReadonlyArray<A> | undefined =>
  list === null || list === undefined || list.length === 0 ? undefined : list
