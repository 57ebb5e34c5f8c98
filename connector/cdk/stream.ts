import type { Option } from 'fp-ts/Option'
import * as O from 'fp-ts/Option'
import type * as t from 'io-ts'
import type { Failure } from './failure'
import type { Feed } from './feed'
import { printExactJson } from './json/decode'
import { type JsonSchema, toJsonSchema } from './schema'

/** A value that could not be sent as declared (Airbyte's AirbyteRecordMessageMetaChange). */
export type RecordChange = {
  readonly field: string
  readonly change: 'NULLED' | 'TRUNCATED'
  readonly reason: 'SOURCE_SERIALIZATION_ERROR' | 'SOURCE_FIELD_SIZE_LIMITATION' | 'SOURCE_RECORD_SIZE_LIMITATION'
}

/** A record that was parsed; integers beyond 2^53 are bigints. */
export type InputRecord = Readonly<Record<string, unknown>>

/** One record as JSON text in UTF-8: an object, on one line. */
export type Row = {
  readonly json: Uint8Array
  readonly changes?: ReadonlyArray<RecordChange>
  /** The parsed record, where it was decoded for a destination. */
  readonly value?: InputRecord
  /** The length of the line it came in, which stays in memory with it. */
  readonly lineLength?: number
}

export type SyncMode = 'full_refresh' | 'incremental'

/** What a consumer must know of a stream before its first record. */
export type StreamInfo = {
  readonly name: string
  readonly schema: JsonSchema
  readonly primaryKey: ReadonlyArray<string>
  readonly cursor: Option<string>
  readonly syncMode: SyncMode
}

export type LogLevel = 'error' | 'warn' | 'info' | 'debug'

/** How many records a destination accepted and rejected since the state before. */
export type StateCounts = { readonly accepted: number; readonly rejected: number }

/** A state that came in for a destination, which prints it back. */
type ReceivedState = {
  /** What to print back unchanged: the line of an Airbyte STATE, the value of a Singer STATE. */
  readonly received?: Uint8Array
  readonly counts?: StateCounts
}

/** A state of one stream or of several; it covers all records before it. */
export type CheckpointMessage =
  /** `count`: its records since the stream's last checkpoint; NaN where the source does not count. */
  | (ReceivedState & {
      readonly _tag: 'Checkpoint'
      readonly stream: string
      readonly state: unknown
      readonly count: number
    })
  /** One state for several streams: GLOBAL and LEGACY of Airbyte, each STATE of Singer. Only decoders send it. */
  | (ReceivedState & {
      readonly _tag: 'SharedCheckpoint'
      readonly states: ReadonlyArray<{ readonly stream: string; readonly state: unknown }>
    })

/**
 * What a run sends, whatever the protocol. Per stream: Started, Running, Records and Checkpoints, Finished or Failed. A state
 * that came in as text is a `JsonText`.
 */
export type Message =
  | { readonly _tag: 'Started'; readonly stream: StreamInfo }
  /** The first record comes next. */
  | { readonly _tag: 'Running'; readonly stream: string }
  /** `at`: milliseconds since 1970. */
  | { readonly _tag: 'Records'; readonly stream: string; readonly rows: ReadonlyArray<Row>; readonly at: number }
  | CheckpointMessage
  /** `extent`: whether the records were everything there is or only what changed; unknown: the source may have been cut short. Only decoders set it. */
  | { readonly _tag: 'Finished'; readonly stream: string; readonly extent?: 'everything' | 'changes' | 'unknown' }
  /** Without a stream: the whole run. `isTold`: a stream before it failed for the same reason, which need not be said again. */
  | { readonly _tag: 'Failed'; readonly stream?: string; readonly failure: Failure; readonly isTold?: boolean }
  /** The service makes the stream wait; `until` in milliseconds since 1970. */
  | { readonly _tag: 'Waiting'; readonly stream: string; readonly until: number }
  /** `skipped`: a stream that has nothing to read, for the reason in the message. */
  | { readonly _tag: 'Log'; readonly level: LogLevel; readonly message: string; readonly skipped?: string }
  /** Singer's way to replace a table: the next records have this version; once it is `active`, older rows are deleted. Only decoders send it. */
  | { readonly _tag: 'TableVersion'; readonly stream: string; readonly version: number; readonly active: boolean }

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
}

/**
 * What happens while a reader reads. A checkpoint covers all rows before it and none after it. Its state is built when it is sent;
 * the reader may have read on by then, so `state` must not read variables that change.
 */
export type ReaderEvent =
  | { readonly _tag: 'Rows'; readonly stream: string; readonly rows: ReadonlyArray<Row> }
  | { readonly _tag: 'Checkpoint'; readonly stream: string; readonly state: () => unknown }
  /** `skipped`: a stream that has nothing to read, for the reason in the message. */
  | { readonly _tag: 'Note'; readonly level: LogLevel; readonly message: string; readonly skipped?: string }
  /** Only this stream ends; the other streams of the reader go on. */
  | { readonly _tag: 'Failed'; readonly stream: string; readonly failure: Failure }

/** Reads the service once for all selected streams that share it. `Env`: what it reads from. */
export type Reader<Env, Item> = {
  readonly name: string
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
}

/** Declares a stream; the compiler checks key and cursor against the codec. Without a cursor it is full refresh only. */
export const defineStream = <Env, Item, A>(
  declared: {
    readonly name: string
    readonly codec: t.Type<A, unknown>
    readonly primaryKey: ReadonlyArray<keyof A & string>
    readonly cursor?: keyof A & string
    readonly reader: Reader<Env, Item>
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
