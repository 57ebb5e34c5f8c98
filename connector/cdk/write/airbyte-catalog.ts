import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as t from 'io-ts'
import { configFailure, type Failure } from '../failure'
import { decode } from '../json'
import { annotate } from '../schema'
import type { Inlet, Operation } from '../sink'
import { columnsOf } from './columns'

/** A stream of a configured catalog, as a destination reads it. */
export type Configured = Inlet & {
  readonly namespace: string | undefined
  /** Whether each run brings everything there is. */
  readonly fullRefresh: boolean
  /** Where the platform asks for one operation rather than to append. */
  readonly asks: Operation | undefined
}

const text = annotate({ examples: ['visit_records'] })(t.string)
const maybe = <C extends t.Mixed>(codec: C) => t.union([codec, t.null, t.undefined])
const paths = maybe(annotate({ type: 'array' })(t.readonlyArray(t.readonlyArray(t.string))))

const modes = { append: null, overwrite: null, append_dedup: null, update: null, soft_delete: null }

const Stream = t.type({
  stream: t.type({ name: text, namespace: maybe(t.string), json_schema: t.unknown, source_defined_primary_key: paths }),
  sync_mode: maybe(t.string),
  destination_sync_mode: maybe(annotate({ enum: Object.keys(modes) })(t.keyof(modes))),
  destination_object_name: maybe(t.string),
  primary_key: paths,
})

const Catalog = t.type({ streams: annotate({ type: 'array' })(t.readonlyArray(Stream)) })

/** Namespace and name, as one. */
export const idOf = (namespace: string | null | undefined, name: string): string =>
  namespace === null || namespace === undefined || namespace === '' ? name : `${namespace}.${name}`

/** A configured catalog; a failure names the key path. The object of a stream is its destination_object_name, else its name. */
export const readConfigured = (value: unknown): E.Either<Failure, ReadonlyArray<Configured>> =>
  pipe(
    decode(Catalog, value),
    E.bimap(
      (wrong) =>
        configFailure(
          `The catalog is wrong: ${wrong.map(({ path, problem }) => `${path || 'it'} ${problem}`).join('; ')}.`,
        ),
      ({ streams }) => streams.map(toConfigured),
    ),
  )

const toConfigured = ({
  stream,
  sync_mode,
  destination_sync_mode,
  destination_object_name,
  primary_key,
}: t.TypeOf<typeof Stream>): Configured => ({
  id: idOf(stream.namespace, stream.name),
  name: stream.name,
  namespace: stream.namespace ?? undefined,
  object: destination_object_name || stream.name,
  key: (primary_key?.length ? primary_key : stream.source_defined_primary_key) ?? [],
  columns: columnsOf(stream.json_schema),
  deletes: destination_sync_mode === 'soft_delete',
  fullRefresh: sync_mode === 'full_refresh',
  asks:
    destination_sync_mode === 'update' || destination_sync_mode === 'soft_delete' ? destination_sync_mode : undefined,
})
