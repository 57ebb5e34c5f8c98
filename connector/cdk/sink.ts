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

/** An incoming stream, as its sink needs to know it before the first record. */
export type InputStream = {
  /** Unique in the run: the namespace and the name. */
  readonly id: string
  /**
   * The namespace and name, if they differ from `id`: dead letters from streams of the same name may differ in
   * everything else.
   */
  readonly origin?: string
  readonly name: string
  /** The name of the sink. */
  readonly objectName: string
  /** The paths of its primary key; empty if it has none. */
  readonly key: ReadonlyArray<ReadonlyArray<string>>
  /** The top-level columns that its schema declares; none if it declares nothing. */
  readonly columns: Option<ReadonlySet<string>>
  /** Each of its records deletes an object. */
  readonly isDeletion: boolean
}

/** What a sink sends for a record. Items with the same key never share a batch and are sent in order of arrival. */
export type PreparedItem<Item> = { readonly item: Item; readonly key: string }

export type RecordVerdict =
  | { readonly _tag: 'Accepted' }
  /** `reason` quotes no value of the record. */
  | { readonly _tag: 'Rejected'; readonly reason: string }
  /** The answer does not mention the record. */
  | { readonly _tag: 'Unknown' }

/** The answer to a batch. */
export type BatchAnswer =
  /** One verdict for each item, in order. */
  | { readonly _tag: 'Verdicts'; readonly verdicts: ReadonlyArray<RecordVerdict> }
  /**
   * The service rejects the whole batch without saying which item is wrong; a smaller batch may succeed. `tooLarge`:
   * only because of its size.
   */
  | { readonly _tag: 'Refused'; readonly reason: string; readonly tooLarge: boolean }
  /**
   * No usable answer after all retries: either the service fails (`failure`), or it fails because of one of the items
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
 * How much of an object the input held. whole: every record; changes: some of them; empty: no record of one of its
 * streams, for example because a platform cleared it or the source skipped it; unsaid: the caller does not say if a
 * stream is complete.
 */
export type InputExtent = 'whole' | 'changes' | 'empty' | 'unsaid'

/** A sink in use during one run. */
export type OpenSink<Item> = {
  /**
   * Returns the function that turns a stream's records into items. Its Left names the problem with the record by key
   * path.
   */
  readonly prepare: (
    stream: InputStream,
  ) => E.Either<Failure, (record: InputRecord) => E.Either<string, PreparedItem<Item>>>
  /**
   * Sends a batch. `isSuspect`: the service failed on a batch with these items, so fewer attempts are enough. A Left
   * ends the run. The outcome of the items is then unknown, and the next run may send them again.
   */
  readonly write: (items: ReadonlyArray<Item>, isSuspect: boolean) => TaskEither<Failure, BatchAnswer>
  /** Asks the service for any answer at all. */
  readonly isReachable: Task<boolean>
  /** Runs once before `finish`, even without records. */
  readonly beforeFinish?: Task<void>
  /** Called once, after the last record of an input that is not broken. */
  readonly finish: (extent: InputExtent) => E.Either<Failure, FinalItems<Item>>
  /** Runs once after everything was delivered, and compares what the service shows with what was written. */
  readonly verify?: Task<ReadonlyArray<SinkNote>>
}

/** An object of the service that can be written to. `Env`: what writing needs, such as a client. */
export type Sink<Env> = {
  readonly name: string
  readonly schema: JsonSchema
  /** The sets of attributes that each identify a record. If empty, the user does not choose one. */
  readonly matchingKeys: ReadonlyArray<ReadonlyArray<string>>
  readonly operations: ReadonlyArray<SinkOperation>
  /** Called once per run. */
  readonly open: (env: Env) => TaskEither<Failure, OpenSink<unknown>>
}

/** Declares a sink. The compiler checks the matching keys against the codec's type. */
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
