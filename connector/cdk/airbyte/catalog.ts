import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as t from 'io-ts'
import { configFailure, type Failure } from '../failure'
import { decodeValue } from '../json/decode'
import { annotate, declaredColumns } from '../schema'
import type { InputStream, SinkOperation } from '../sink'

/** A stream of a configured catalog, as a destination reads it. */
export type ConfiguredStream = InputStream & {
  readonly namespace: string | undefined
  /** Whether each run brings everything there is. */
  readonly isFullRefresh: boolean
  /** Where the platform asks for one operation rather than to append. */
  readonly operation: SinkOperation | undefined
}

const StreamName = annotate({ examples: ['visit_records'] })(t.string)
const nullish = <C extends t.Mixed>(codec: C) => t.union([codec, t.null, t.undefined])
const KeyPaths = nullish(annotate({ type: 'array' })(t.readonlyArray(t.readonlyArray(t.string))))

const destinationModes = { append: null, overwrite: null, append_dedup: null, update: null, soft_delete: null }

const ConfiguredStreamCodec = t.type({
  stream: t.type({
    name: StreamName,
    namespace: nullish(t.string),
    json_schema: t.unknown,
    source_defined_primary_key: KeyPaths,
  }),
  sync_mode: nullish(t.string),
  destination_sync_mode: nullish(annotate({ enum: Object.keys(destinationModes) })(t.keyof(destinationModes))),
  destination_object_name: nullish(t.string),
  primary_key: KeyPaths,
})

const ConfiguredCatalogCodec = t.type({ streams: annotate({ type: 'array' })(t.readonlyArray(ConfiguredStreamCodec)) })

/** Namespace and name, as one. */
export const streamIdOf = (namespace: string | null | undefined, name: string): string =>
  namespace === null || namespace === undefined || namespace === '' ? name : `${namespace}.${name}`

/** A configured catalog; a failure names the key path. The object of a stream is its destination_object_name, else its name. */
export const decodeDestinationCatalog = (value: unknown): E.Either<Failure, ReadonlyArray<ConfiguredStream>> =>
  pipe(
    decodeValue(ConfiguredCatalogCodec, value),
    E.bimap(
      (wrong) =>
        configFailure(
          `The catalog is wrong: ${wrong.map(({ path, problem }) => `${path || 'it'} ${problem}`).join('; ')}.`,
        ),
      ({ streams }) => streams.map(toConfiguredStream),
    ),
  )

const toConfiguredStream = ({
  stream,
  sync_mode,
  destination_sync_mode,
  destination_object_name,
  primary_key,
}: t.TypeOf<typeof ConfiguredStreamCodec>): ConfiguredStream => ({
  id: streamIdOf(stream.namespace, stream.name),
  name: stream.name,
  namespace: stream.namespace ?? undefined,
  objectName: destination_object_name || stream.name,
  key: (primary_key?.length ? primary_key : stream.source_defined_primary_key) ?? [],
  columns: declaredColumns(stream.json_schema),
  isDeletion: destination_sync_mode === 'soft_delete',
  isFullRefresh: sync_mode === 'full_refresh',
  operation:
    destination_sync_mode === 'update' || destination_sync_mode === 'soft_delete' ? destination_sync_mode : undefined,
})
