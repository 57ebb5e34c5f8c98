import * as O from 'fp-ts/Option'
import * as t from 'io-ts'
import { configFailure, type Failure } from './failure'
import { formatIssues } from './json/validate'
import type { StreamInfo, SyncMode } from './message'
import { declaredColumns, type JsonSchema } from './schema'
import type { InputStream, SinkOperation } from './sink'
import { type Stream, tombstoneColumnNames } from './stream'

/** One stream as the caller requests it. */
export type StreamSelection = {
  readonly name: string
  readonly syncMode: SyncMode
  /** The top-level attributes to send; all of them if none. */
  readonly attributes: O.Option<ReadonlySet<string>>
  /** A complete read removes the rows that it did not send. By default, only a full refresh does. */
  readonly replaces?: boolean
}

/** The streams that a caller requests, in the caller's order. */
export type Catalog = ReadonlyArray<StreamSelection>

/** The last state of each stream by its name, as it was printed. */
export type SourceState = Readonly<Record<string, unknown>>

/** What a platform may ask a destination to do with a stream. */
export type DestinationSyncMode = 'append' | 'overwrite' | 'append_dedup' | 'overwrite_dedup' | SinkOperation

/**
 * A stream of a configured catalog. Members that the platform left out or set to null are undefined or empty, because
 * each program has its own default.
 */
export type ConfiguredStream = {
  readonly name: string
  readonly namespace: string | undefined
  readonly schema: JsonSchema
  readonly syncMode: SyncMode | undefined
  readonly destinationSyncMode: DestinationSyncMode | undefined
  /** `destination_object_name`: the destination's object that receives the stream. */
  readonly objectName: string | undefined
  /** The paths of the key attributes: the user's choice, or else the source's definition. */
  readonly primaryKey: ReadonlyArray<ReadonlyArray<string>>
  /** The path of the cursor: the user's choice, or else the source's default. */
  readonly cursor: ReadonlyArray<string>
  readonly generation: number | undefined
  readonly minimumGeneration: number | undefined
}

/** One of our own streams, as if a catalog had configured it. */
export const toConfiguredStream = <Env>(
  { name, schema, primaryKey, cursor }: Stream<Env>,
  syncMode: SyncMode,
): ConfiguredStream => ({
  name,
  namespace: undefined,
  schema,
  syncMode,
  destinationSyncMode: undefined,
  objectName: undefined,
  primaryKey: primaryKey.map((attribute) => [attribute]),
  cursor: O.isSome(cursor) ? [cursor.value] : [],
  generation: undefined,
  minimumGeneration: undefined,
})

export type ConfiguredCatalog = ReadonlyArray<ConfiguredStream>

export const wrongCatalogFailure = (issues: Parameters<typeof formatIssues>[0]): Failure =>
  configFailure(`The catalog is wrong: ${formatIssues(issues)}.`)

/** How a message names its stream. */
export type StreamDescriptor = { readonly name: string; readonly namespace?: string | null | undefined }

/**
 * Finds the stream that a descriptor names, under the name that its messages will use. Undefined if the catalog does
 * not have it.
 */
export type FindStream = (descriptor: StreamDescriptor) => StreamInfo | undefined

/** The attributes that a schema declares at its top level. */
export const schemaAttributes = ({ properties }: JsonSchema): ReadonlyArray<string> =>
  t.UnknownRecord.is(properties) ? Object.keys(properties) : []

/** The attributes of every record, selected or not: the primary key, the cursor and the deletion mark. */
export const automaticAttributes = <Env>({ primaryKey, cursor, schema }: Stream<Env>): ReadonlySet<string> =>
  new Set([
    ...primaryKey,
    ...(O.isSome(cursor) ? [cursor.value] : []),
    ...schemaAttributes(schema).filter((name) => tombstoneColumnNames.includes(name)),
  ])

/** The attributes that a stream sends if a caller wants these; none means all. */
export const chooseAttributes = <Env>(stream: Stream<Env>, wanted: Iterable<string>): StreamSelection['attributes'] => {
  const chosen = new Set([...wanted, ...automaticAttributes(stream)])
  return schemaAttributes(stream.schema).every((name) => chosen.has(name)) ? O.none : O.some(chosen)
}

/**
 * The streams to read for a configured catalog, with the attributes in each stream's schema, or all if it has none. A
 * platform requests the refresh of an incremental stream by a minimum generation.
 */
export const toSelections =
  <Env>(streams: ReadonlyArray<Stream<Env>>) =>
  (catalog: ConfiguredCatalog): Catalog =>
    catalog.map(({ name, syncMode = 'full_refresh', schema, minimumGeneration = 0 }) => {
      const stream = streams.find((each) => each.name === name)
      const wanted = schemaAttributes(schema)
      const attributes = stream === undefined || wanted.length === 0 ? O.none : chooseAttributes(stream, wanted)
      return { name, syncMode, attributes, ...(minimumGeneration > 0 ? { replaces: true } : {}) }
    })

/** Warns about requested cursors that are ignored, because each stream has its own cursor. */
export const describeOtherCursors = <Env>(
  streams: ReadonlyArray<Stream<Env>>,
  catalog: ConfiguredCatalog,
): ReadonlyArray<string> =>
  catalog.flatMap(({ name, syncMode, cursor }) => {
    const own = streams.find((stream) => stream.name === name)?.cursor ?? O.none
    const asked = cursor.join('.')
    return syncMode !== 'incremental' || asked === '' || O.isNone(own) || own.value === asked
      ? []
      : [`${name}: cursor_field ${asked} has no effect: the cursor is ${own.value}.`]
  })

/** Namespace and name as one string. */
const streamIdOf = ({ name, namespace }: StreamDescriptor): string => (namespace ? `${namespace}.${name}` : name)

/** A configured stream as a destination needs it. */
export const toInputStream = (configured: ConfiguredStream): InputStream => ({
  id: streamIdOf(configured),
  name: configured.name,
  objectName: configured.objectName ?? configured.name,
  key: configured.primaryKey,
  columns: declaredColumns(configured.schema),
  isDeletion: configured.destinationSyncMode === 'soft_delete',
})

/** Assigns each stream the object that the config gives it, by namespace and name or by name alone. */
export const assignObjects = (
  catalog: ConfiguredCatalog,
  objectNames: Readonly<Record<string, string>>,
): ConfiguredCatalog =>
  catalog.map((configured) => {
    const key = [streamIdOf(configured), configured.name].find((name) => Object.hasOwn(objectNames, name))
    const objectName = key === undefined ? undefined : objectNames[key]
    return objectName === undefined ? configured : { ...configured, objectName }
  })

const toStreamInfo = (
  { schema, primaryKey, cursor, syncMode }: ConfiguredStream,
  name: string,
  defaultMode: SyncMode,
): StreamInfo => ({
  name,
  schema,
  primaryKey: primaryKey.map((path) => path.join('.')),
  cursor: cursor.length === 0 ? O.none : O.some(cursor.join('.')),
  syncMode: syncMode ?? defaultMode,
})

/**
 * Names each stream by its `InputStream.id`. If a client leaves out the namespace, it means the only stream of that
 * name. A stream without a sync mode is not treated as a full refresh, so nothing is deleted because of it.
 */
export const findStreamById = (catalog: ConfiguredCatalog): FindStream => {
  const infos = catalog.map((configured) => toStreamInfo(configured, streamIdOf(configured), 'incremental'))
  const byId = new Map(infos.map((info) => [info.name, info]))
  const uniqueByName = new Map(
    catalog.flatMap(({ name }, i) => {
      const info = infos[i]
      return info !== undefined && countNamesakes(catalog, name) === 1 ? [[name, info]] : []
    }),
  )
  return (descriptor) => byId.get(streamIdOf(descriptor)) ?? uniqueByName.get(descriptor.name)
}

const countNamesakes = (catalog: ConfiguredCatalog, name: string): number =>
  catalog.filter((configured) => configured.name === name).length

/** The streams by table name: the stream's name, or `namespace.name` if two namespaces share that name. */
export const indexByTable = (catalog: ConfiguredCatalog): ReadonlyMap<string, ConfiguredStream> =>
  new Map(
    catalog.map((configured) => [
      countNamesakes(catalog, configured.name) > 1 ? streamIdOf(configured) : configured.name,
      configured,
    ]),
  )

/** Names each stream by its table. */
export const findStreamByTable = (catalog: ConfiguredCatalog): FindStream => {
  const infos = new Map(
    [...indexByTable(catalog)].map(([table, configured]) => [table, toStreamInfo(configured, table, 'full_refresh')]),
  )
  return (descriptor) => {
    const id = streamIdOf(descriptor)
    return infos.get(descriptor.namespace && infos.has(id) ? id : descriptor.name)
  }
}
