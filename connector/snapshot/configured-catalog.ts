import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as O from 'fp-ts/Option'
import * as t from 'io-ts'
import { configFailure, type Failure } from '../cdk/failure'
import { decode } from '../cdk/json'
import type { StreamInfo } from '../cdk/message'
import { annotate, type JsonSchema } from '../cdk/schema'
import type { Wish } from './destination'

/** What a configured catalog says of a stream that comes in. */
export type Expected = { readonly info: StreamInfo; readonly wish: Wish }
export type ExpectedStreams = ReadonlyMap<string, Expected>

const nullish = <C extends t.Mixed>(codec: C) => t.union([codec, t.null, t.undefined])
const paths = nullish(t.readonlyArray(t.readonlyArray(t.string)))
const modes = { append: null, overwrite: null, append_dedup: null, overwrite_dedup: null }

const Stream = t.intersection([
  t.type({
    name: annotate({ examples: ['reviews'] })(t.string),
    json_schema: annotate({ type: 'object' })(t.UnknownRecord),
  }),
  t.partial({
    namespace: nullish(t.string),
    source_defined_primary_key: paths,
    default_cursor_field: nullish(t.readonlyArray(t.string)),
  }),
])
const Configured = t.intersection([
  t.type({ stream: Stream }),
  t.partial({
    sync_mode: nullish(
      annotate({ enum: ['full_refresh', 'incremental'] })(t.keyof({ full_refresh: null, incremental: null })),
    ),
    destination_sync_mode: nullish(annotate({ enum: Object.keys(modes) })(t.keyof(modes))),
    primary_key: paths,
    cursor_field: nullish(t.readonlyArray(t.string)),
    generation_id: nullish(t.number),
    minimum_generation_id: nullish(t.number),
  }),
])
const ConfiguredCatalog = t.type({ streams: annotate({ type: 'array' })(t.readonlyArray(Configured)) })
const DiscoveredCatalog = t.type({ streams: annotate({ type: 'array' })(t.readonlyArray(Stream)) })

/** A configured catalog; a failure names the key path. */
export const expectedStreams = (catalog: unknown): E.Either<Failure, ExpectedStreams> =>
  pipe(
    decode(ConfiguredCatalog, catalog),
    E.bimap(
      (wrong) =>
        configFailure(
          `The catalog is wrong: ${wrong.map(({ path, problem }) => `${path || 'it'} ${problem}`).join('; ')}.`,
        ),
      ({ streams }) => byTable(streams),
    ),
  )

/** What `discover` prints: every stream that has a cursor is taken for incremental. */
export const discoveredStreams = (catalog: unknown): ExpectedStreams =>
  DiscoveredCatalog.is(catalog)
    ? byTable(
        catalog.streams.map((stream) => ({
          stream,
          sync_mode:
            (stream.default_cursor_field ?? []).length > 0 ? ('incremental' as const) : ('full_refresh' as const),
        })),
      )
    : new Map()

type Named = { readonly name: string; readonly namespace?: string | null | undefined }

/** The stream's table: its name, or where two namespaces have the same name, `namespace.name`. */
export const tableOf = (expected: ExpectedStreams, { name, namespace }: Named): string => {
  const long = `${namespace}.${name}`
  return namespace && expected.has(long) ? long : name
}

const byTable = (streams: ReadonlyArray<t.TypeOf<typeof Configured>>): ExpectedStreams =>
  new Map(
    streams.map((configured) => {
      const { name, namespace } = configured.stream
      const twins = streams.filter(({ stream }) => stream.name === name)
      const table = namespace && twins.length > 1 ? `${namespace}.${name}` : name
      return [table, expected(configured, table)]
    }),
  )

const expected = (configured: t.TypeOf<typeof Configured>, name: string): Expected => {
  const { stream, destination_sync_mode: mode, generation_id: generation, minimum_generation_id: minimum } = configured
  const key = nonEmpty(configured.primary_key) ?? nonEmpty(stream.source_defined_primary_key) ?? []
  const cursor = nonEmpty(configured.cursor_field) ?? nonEmpty(stream.default_cursor_field)
  return {
    info: {
      name,
      schema: stream.json_schema as JsonSchema,
      primaryKey: key.map((path) => path.join('.')),
      cursor: O.fromNullable(cursor?.join('.')),
      syncMode: configured.sync_mode ?? 'full_refresh',
    },
    wish: {
      ...(mode === null || mode === undefined ? {} : { mode: mode === 'overwrite_dedup' ? 'overwrite' : mode }),
      ...(generation === null || generation === undefined || generation <= 0
        ? {}
        : { generation, minimum: minimum ?? 0 }),
    },
  }
}

const nonEmpty = <A>(list: ReadonlyArray<A> | null | undefined): ReadonlyArray<A> | undefined =>
  list === null || list === undefined || list.length === 0 ? undefined : list
