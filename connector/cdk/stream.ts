import type { Option } from 'fp-ts/Option'
import * as O from 'fp-ts/Option'
import type * as t from 'io-ts'
import type { Failure } from './failure'
import type { Feed } from './feed'
import { printExactJson } from './json/exact'
import type { Derivation, LogLevel, Row, SharedRecords, StreamInfo, SyncMode } from './message'
import { declaredColumns, type JsonSchema, toJsonSchema } from './schema'
import type { InputStream } from './sink'

/** The attributes with which Airbyte and Singer mark a record as deleted. */
export const tombstoneColumnNames: ReadonlyArray<string> = ['_ab_cdc_deleted_at', '_sdc_deleted_at']

/** The rows that a stream sends for an item. */
export type Projection<Item> = (item: Item) => ReadonlyArray<Row>

/** A selected stream as its reader sees it: its last state, and the projection from items to rows. */
export type StreamRequest<Item> = {
  readonly stream: string
  readonly syncMode: SyncMode
  /** The last state given to the run; none on a first run. */
  readonly state: Option<unknown>
  /** The top-level attributes to send; all of them if none. */
  readonly attributes: Option<ReadonlySet<string>>
  readonly project: Projection<Item>
  /** The caller makes the stream's rows itself, from the `SharedRows` that the reader sends. */
  readonly derives?: boolean
  /** A complete read removes the rows that it did not send, unless it continues from a state. */
  readonly replaces?: boolean
  /** The caller's last state of the stream, even if the run does not continue from it. */
  readonly previous?: unknown
  /** Resolves to true if the caller's own tables hold rows of these streams. */
  readonly holdsRows?: HoldsRows
}

/**
 * Resolves to true if the tables that a run writes hold rows of any of these streams, including rows sent in this run.
 */
export type HoldsRows = (streams: ReadonlyArray<string>) => Promise<boolean>

/**
 * The events of a reader. A checkpoint covers all rows before it and none after it. Its state is built when it is sent.
 * The reader may have read on by then, so `state` must not read variables that change.
 */
export type ReaderEvent =
  /** `total`: how many rows the stream sends in this run, if its reader knows that when it sends the first one. */
  | { readonly _tag: 'Rows'; readonly stream: string; readonly rows: ReadonlyArray<Row>; readonly total?: number }
  /** Records that all these streams derive their rows from. */
  | (Omit<SharedRecords, '_tag' | 'at'> & { readonly _tag: 'SharedRows' })
  | { readonly _tag: 'Checkpoint'; readonly stream: string; readonly state: () => unknown }
  /** `skipped`: a stream with nothing to read; the message gives the reason. */
  | { readonly _tag: 'Note'; readonly level: LogLevel; readonly message: string; readonly skipped?: string }
  /** Only this stream ends; the reader's other streams continue. */
  | { readonly _tag: 'Failed'; readonly stream: string; readonly failure: Failure }

/** Reads the service once for all selected streams that share it. `Env`: what it reads from. */
export type Reader<Env, Item> = {
  readonly name: string
  /** It is read after all others, even in a run that starts with the stream that was interrupted. */
  readonly isLast?: true
  readonly read: (env: Env) => (requests: ReadonlyArray<StreamRequest<Item>>) => Feed<Failure, ReaderEvent>
}

/** A stream without its item type, so that lists of streams need no `any`. */
export type Stream<Env> = {
  readonly name: string
  readonly schema: JsonSchema
  readonly primaryKey: ReadonlyArray<string>
  readonly cursor: Option<string>
  readonly syncModes: ReadonlyArray<SyncMode>
  /** The selected streams with the same reader object are read together. */
  readonly reader: Reader<Env, unknown>
  readonly projector: () => Projection<unknown>
  /** How its rows are made from its reader's records, if a consumer can make them too. */
  readonly derivation?: Derivation
}

/**
 * Declares a stream. The compiler checks key and cursor against the codec. A stream without a cursor is full refresh
 * only.
 */
export const defineStream = <Env, Item, A>(
  declared: {
    readonly name: string
    readonly codec: t.Type<A, unknown>
    readonly primaryKey: ReadonlyArray<keyof A & string>
    readonly cursor?: keyof A & string
    readonly reader: Reader<Env, Item>
    readonly derivation?: Derivation
  } & (
    | { readonly project: Projection<Item> }
    /** Creates a projection for each run, if it must remember items. */
    | { readonly projector: () => Projection<Item> }
  ),
): Stream<Env> => ({
  name: declared.name,
  schema: toJsonSchema(declared.codec),
  primaryKey: declared.primaryKey,
  cursor: O.fromNullable(declared.cursor),
  syncModes: declared.cursor === undefined ? ['full_refresh'] : ['full_refresh', 'incremental'],
  reader: declared.reader as Reader<Env, unknown>,
  ...(declared.derivation === undefined ? {} : { derivation: declared.derivation }),
  projector: ('projector' in declared ? declared.projector : () => declared.project) as () => Projection<unknown>,
})

/** An object as a row; a bigint is printed as an integer. */
export const encodeRow = (value: object): Row => ({ json: Buffer.from(printExactJson(value)) })

/** An object with only the selected top-level attributes, or with all of them if there is no selection. */
export const pickAttributes =
  (attributes: Option<ReadonlySet<string>>) =>
  <A extends object>(value: A): Partial<A> =>
    O.isNone(attributes)
      ? value
      : (Object.fromEntries(Object.entries(value).filter(([name]) => attributes.value.has(name))) as Partial<A>)

/** A stream of an input that declares its streams itself. */
export const toDeclaredStream = (
  { name, schema, primaryKey }: StreamInfo,
  objectNames: Readonly<Record<string, string>> = {},
): InputStream => ({
  id: name,
  name,
  objectName: (Object.hasOwn(objectNames, name) ? objectNames[name] : undefined) ?? name,
  key: primaryKey.map((attribute) => [attribute]),
  columns: declaredColumns(schema),
  isDeletion: false,
})
