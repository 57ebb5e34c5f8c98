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

/** A selected stream as its reader sees it: its last state, and how an item becomes its rows. */
export type StreamRequest<Item> = {
  readonly stream: string
  readonly syncMode: SyncMode
  /** The stream's last state, as the run was given it; none on a first run. */
  readonly state: Option<unknown>
  /** The top-level attributes to send; none: all of them. */
  readonly attributes: Option<ReadonlySet<string>>
  readonly project: Projection<Item>
  /** Whether the caller makes the stream's rows itself, of the records that the reader sends as `SharedRows`. */
  readonly derives?: boolean
  /** Whether a complete read removes the rows that it does not bring, unless it goes on from a state. */
  readonly replaces?: boolean
  /** The stream's last state as the caller has it, also where the run does not go on from it. */
  readonly previous?: unknown
  /** Whether the caller's own tables hold rows of these streams. */
  readonly holdsRows?: HoldsRows
}

/** Whether tables that a run writes hold rows of any of these streams, what the run has sent included. */
export type HoldsRows = (streams: ReadonlyArray<string>) => Promise<boolean>

/**
 * What happens while a reader reads. A checkpoint covers all rows before it and none after it. Its state is built
 * when it is sent; the reader may have read on by then, so `state` must not read variables that change.
 */
export type ReaderEvent =
  /** `total`: how many rows the stream sends in this run, if its reader knows that with the first of them. */
  | { readonly _tag: 'Rows'; readonly stream: string; readonly rows: ReadonlyArray<Row>; readonly total?: number }
  /** Records that belong to all of these streams, which derive their rows. */
  | (Omit<SharedRecords, '_tag' | 'at'> & { readonly _tag: 'SharedRows' })
  | { readonly _tag: 'Checkpoint'; readonly stream: string; readonly state: () => unknown }
  /** `skipped`: a stream that has nothing to read, for the reason in the message. */
  | { readonly _tag: 'Note'; readonly level: LogLevel; readonly message: string; readonly skipped?: string }
  /** Only this stream ends; the other streams of the reader go on. */
  | { readonly _tag: 'Failed'; readonly stream: string; readonly failure: Failure }

/** Reads the service once for all selected streams that share it. `Env`: what it reads from. */
export type Reader<Env, Item> = {
  readonly name: string
  /** Whether it is read after all others, also where a run begins with the stream that was interrupted. */
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
  /** How its rows are made of the records of its reader, where a consumer can make them too. */
  readonly derivation?: Derivation
}

/**
 * Declares a stream; the compiler checks key and cursor against the codec. Without a cursor it is full refresh only.
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
    /** Creates a projection for each run, for one that remembers items. */
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

/** An object as the row of a record; a bigint is printed as an integer. */
export const encodeRow = (value: object): Row => ({ json: Buffer.from(printExactJson(value)) })

/** An object with the selected top-level attributes alone; with all of them if there is no selection. */
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
