import type * as E from 'fp-ts/Either'
import type { Option } from 'fp-ts/Option'
import type { Task } from 'fp-ts/Task'
import type { TaskEither } from 'fp-ts/TaskEither'
import type * as t from 'io-ts'
import type { Failure } from './failure'
import type { InputRecord, LogLevel } from './message'
import { type JsonSchema, toJsonSchema } from './schema'

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
