import type * as E from 'fp-ts/Either'
import type { Option } from 'fp-ts/Option'
import * as O from 'fp-ts/Option'
import type { Task } from 'fp-ts/Task'
import type { TaskEither } from 'fp-ts/TaskEither'
import type * as t from 'io-ts'
import type { Failure } from './failure'
import type { Feed } from './feed'
import { printExactJson } from './json/decode'
import { declaredColumns, type JsonSchema, toJsonSchema } from './schema'

/** What a sink can do with an object of the service, in Airbyte's words. */
export type SinkOperation = 'append' | 'update' | 'soft_delete'

/** An incoming stream: what its sink needs to know before the first record. */
export type InputStream = {
  /** Unique in the run: the namespace and the name. */
  readonly id: string
  /** The namespace and the name, where `id` is not: letters from streams of one name may differ in all else. */
  readonly origin?: string
  readonly name: string
  /** The name of the sink. */
  readonly objectName: string
  /** The paths of its primary key; empty if it has none. */
  readonly key: ReadonlyArray<ReadonlyArray<string>>
  /** The top-level columns that its schema declares; none if it declares nothing. */
  readonly columns: Option<ReadonlySet<string>>
  /** Whether each of its records means that an object is to be deleted. */
  readonly isDeletion: boolean
}

/** What a sink sends for a record. Items of one key never share a batch and are sent in the order they came. */
export type PreparedItem<Item> = { readonly item: Item; readonly key: string }

export type RecordVerdict =
  | { readonly _tag: 'Accepted' }
  /** `reason` quotes no value of the record. */
  | { readonly _tag: 'Rejected'; readonly reason: string }
  /** The answer does not name the record. */
  | { readonly _tag: 'Unknown' }

/** The answer to a batch. */
export type BatchAnswer =
  /** One verdict for each item, in their order. */
  | { readonly _tag: 'Verdicts'; readonly verdicts: ReadonlyArray<RecordVerdict> }
  /**
   * The service refuses the batch without saying which item is wrong; a smaller batch may pass. `tooLarge`: because
   * of its size alone.
   */
  | { readonly _tag: 'Refused'; readonly reason: string; readonly tooLarge: boolean }
  /**
   * No usable answer, after all retries: either the service fails (`failure`), or it fails on one of the items
   * (`reason`).
   */
  | { readonly _tag: 'Unanswered'; readonly reason: string; readonly failure: Failure }

export type SinkNote = { readonly level: LogLevel; readonly message: string }

/** What a sink sends at the end of the input, beyond its records. */
export type FinalItems<Item> = {
  readonly items: ReadonlyArray<PreparedItem<Item>>
  readonly notes: ReadonlyArray<SinkNote>
}

/**
 * How much of an object the input held. whole: every record there is; changes: some of them; empty: no record of one
 * of its streams, as when a platform clears or a source skips it; unsaid: the caller does not say whether a stream is
 * complete.
 */
export type InputExtent = 'whole' | 'changes' | 'empty' | 'unsaid'

/** A sink in use during one run. */
export type OpenSink<Item> = {
  /**
   * The function that turns a stream's records into items; its Left says what is wrong with the record, by key path.
   */
  readonly prepare: (
    stream: InputStream,
  ) => E.Either<Failure, (record: InputRecord) => E.Either<string, PreparedItem<Item>>>
  /**
   * Sends a batch. `isSuspect`: the service failed on a batch with these items, so fewer attempts are enough.
   * A Left ends the run: the outcome of the items is not known, and the next run may send them again.
   */
  readonly write: (items: ReadonlyArray<Item>, isSuspect: boolean) => TaskEither<Failure, BatchAnswer>
  /** Asks the service whether it answers at all. */
  readonly isReachable: Task<boolean>
  /** Runs once before `finish`, also where no record came. */
  readonly beforeFinish?: Task<void>
  /** Called once, after the last record of an input that is not broken. */
  readonly finish: (extent: InputExtent) => E.Either<Failure, FinalItems<Item>>
  /** Runs once after everything was delivered: what the service shows of what was written. */
  readonly verify?: Task<ReadonlyArray<SinkNote>>
}

/** An object of the service that can be written to. `Env`: what it needs to write, such as a client. */
export type Sink<Env> = {
  readonly name: string
  readonly schema: JsonSchema
  /** The sets of attributes that each identify a record; empty: none has to be chosen. */
  readonly matchingKeys: ReadonlyArray<ReadonlyArray<string>>
  readonly operations: ReadonlyArray<SinkOperation>
  /** Called once a run. */
  readonly open: (env: Env) => TaskEither<Failure, OpenSink<unknown>>
}

/** Declares a sink; the compiler checks the matching keys against the type of the codec. */
export const defineSink = <Env, A>(sink: {
  readonly name: string
  readonly codec: t.Type<A, unknown>
  readonly matchingKeys: ReadonlyArray<ReadonlyArray<keyof A & string>>
  readonly operations: ReadonlyArray<SinkOperation>
  readonly open: (env: Env) => TaskEither<Failure, OpenSink<A>>
}): Sink<Env> => ({
  name: sink.name,
  schema: toJsonSchema(sink.codec),
  matchingKeys: sink.matchingKeys,
  operations: sink.operations,
  open: sink.open as (env: Env) => TaskEither<Failure, OpenSink<unknown>>,
})

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

/**
 * A step into a record: a member that is an object, or a list of objects. `key`: without this member an object is
 * left out; `as`: the name under which the rows made of it carry that key; `index`: the name under which they carry
 * its place in the list, from 0.
 */
export type PartStep = {
  readonly name: string
  readonly isList: boolean
  readonly key?: string
  readonly as?: string
  readonly index?: string
}

/**
 * How the rows of a stream are made of the records of its reader. record: they are these records; part: objects
 * inside them, without the members `omitted`; dimension: an object that many records name, once for each version;
 * pair: each pair of two texts of such objects.
 */
export type Derivation =
  | { readonly _tag: 'record' }
  | { readonly _tag: 'part'; readonly steps: ReadonlyArray<PartStep>; readonly omitted: ReadonlyArray<string> }
  | { readonly _tag: 'dimension'; readonly member: string }
  | { readonly _tag: 'pair'; readonly steps: ReadonlyArray<PartStep>; readonly names: readonly [string, string] }

/** What a consumer must know of a stream before its first record. */
export type StreamInfo = {
  readonly name: string
  readonly schema: JsonSchema
  readonly primaryKey: ReadonlyArray<string>
  readonly cursor: Option<string>
  readonly syncMode: SyncMode
  readonly derivation?: Derivation
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
 * Records of which the consumer makes the rows of several streams, as their derivations say. `hasUndeclared`: objects
 * inside them may have members that no schema declares. Sent only to a consumer that asks for it.
 */
export type SharedRecords = {
  readonly _tag: 'SharedRecords'
  readonly streams: ReadonlyArray<string>
  readonly rows: ReadonlyArray<Row>
  readonly hasUndeclared: boolean
  readonly at: number
}

/**
 * What a run sends, whatever the protocol. Per stream: Started, Running, Records and Checkpoints, Finished or Failed.
 * A state that came in as text is a `JsonText`.
 */
export type Message =
  | { readonly _tag: 'Started'; readonly stream: StreamInfo }
  /** The first record comes next. `total`: how many the stream sends in this run, where that is known. */
  | { readonly _tag: 'Running'; readonly stream: string; readonly total?: number }
  /** `at`: milliseconds since 1970. */
  | { readonly _tag: 'Records'; readonly stream: string; readonly rows: ReadonlyArray<Row>; readonly at: number }
  | SharedRecords
  | CheckpointMessage
  /**
   * `extent`: whether the records were everything there is or only what changed; unknown: the source may have been
   * cut short. Only decoders set it.
   */
  | { readonly _tag: 'Finished'; readonly stream: string; readonly extent?: 'everything' | 'changes' | 'unknown' }
  /**
   * Without a stream: the whole run. `isTold`: a stream before it failed for the same reason, which need not be said
   * again.
   */
  | { readonly _tag: 'Failed'; readonly stream?: string; readonly failure: Failure; readonly isTold?: boolean }
  /** The service makes the stream wait; `until` in milliseconds since 1970. */
  | { readonly _tag: 'Waiting'; readonly stream: string; readonly until: number }
  /** `skipped`: a stream that has nothing to read, for the reason in the message. */
  | { readonly _tag: 'Log'; readonly level: LogLevel; readonly message: string; readonly skipped?: string }
  /**
   * Singer's way to replace a table: the next records have this version; once it is `active`, older rows are deleted.
   * Only decoders send it.
   */
  | { readonly _tag: 'TableVersion'; readonly stream: string; readonly version: number; readonly active: boolean }

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
