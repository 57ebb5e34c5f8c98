import type * as E from 'fp-ts/Either'
import type { Option } from 'fp-ts/Option'
import type { Task } from 'fp-ts/Task'
import type { TaskEither } from 'fp-ts/TaskEither'
import type * as t from 'io-ts'
import type { Failure } from './failure'
import type { LogLevel } from './message'
import { type JsonSchema, toJsonSchema } from './schema'

/** What can be done with an object of the service, in Airbyte's words. */
export type SinkOperation = 'append' | 'update' | 'soft_delete'

/** A stream that comes in, as its sink must know it before its first record. */
export type InputStream = {
  /** Namespace and name, which together are unique. */
  readonly id: string
  readonly name: string
  /** The name of the sink. */
  readonly objectName: string
  /** The paths of its primary key; none: it has no key. */
  readonly key: ReadonlyArray<ReadonlyArray<string>>
  /** The top-level attributes it declares; none: it does not say. */
  readonly columns: Option<ReadonlySet<string>>
  /** Whether each of its records says that something is to go. */
  readonly isDeletion: boolean
}

/** A record that came in. */
export type InputRecord = Readonly<Record<string, unknown>>

/** A record made ready to be sent. Items of one key never share a batch, and are sent in the order they came. */
export type PreparedItem<Item> = { readonly item: Item; readonly key: string }

export type RecordVerdict =
  | { readonly _tag: 'Accepted' }
  /** `reason` quotes no value of the record. */
  | { readonly _tag: 'Rejected'; readonly reason: string }
  /** The answer does not tell. */
  | { readonly _tag: 'Unknown' }

/** What an answer says of a batch. */
export type BatchAnswer =
  /** One verdict for each item, in their order. */
  | { readonly _tag: 'Verdicts'; readonly verdicts: ReadonlyArray<RecordVerdict> }
  /** Nothing that could be told apart by item: a smaller batch may pass. `tooLarge`: for its size alone. */
  | { readonly _tag: 'Refused'; readonly reason: string; readonly tooLarge: boolean }
  /** None, though sent time and again: the service fails (`failure`), or it fails on an item (`reason`). */
  | { readonly _tag: 'Unanswered'; readonly reason: string; readonly failure: Failure }

export type SinkNote = { readonly level: LogLevel; readonly message: string }

/** What a whole input calls for beyond its records. */
export type FinalItems<Item> = {
  readonly items: ReadonlyArray<PreparedItem<Item>>
  readonly notes: ReadonlyArray<SinkNote>
}

/** A sink during a run. */
export type OpenSink<Item> = {
  /** How each record of a stream is made ready; a Left says what is wrong with it, by key path. */
  readonly prepare: (
    inlet: InputStream,
  ) => E.Either<Failure, (record: InputRecord) => E.Either<string, PreparedItem<Item>>>
  /** Sends a batch; with less patience where the service is suspected to fail on one of these items. A Left ends the run: nothing is known of them, and they may be sent again. */
  readonly write: (items: ReadonlyArray<Item>, suspected: boolean) => TaskEither<Failure, BatchAnswer>
  /** Whether the service answers at all, now. */
  readonly isReachable: Task<boolean>
  /** Called once, after the last record. `whole`: the input held everything there is. */
  readonly finish: (whole: boolean) => E.Either<Failure, FinalItems<Item>>
}

/** An object of the service that can be written to, its item type forgotten. `Env`: what it writes with. */
export type Sink<Env> = {
  readonly name: string
  readonly schema: JsonSchema
  readonly matchingKeys: ReadonlyArray<string>
  readonly operations: ReadonlyArray<SinkOperation>
  /** Anew for each run. */
  readonly open: (env: Env) => TaskEither<Failure, OpenSink<unknown>>
}

/** Checks the matching keys against the codec's own type, then forgets it. */
export const defineSink = <Env, A>(declared: {
  readonly name: string
  readonly codec: t.Type<A, unknown>
  readonly matchingKeys: ReadonlyArray<keyof A & string>
  readonly operations: ReadonlyArray<SinkOperation>
  readonly open: (env: Env) => TaskEither<Failure, OpenSink<A>>
}): Sink<Env> => ({
  name: declared.name,
  schema: toJsonSchema(declared.codec),
  matchingKeys: declared.matchingKeys,
  operations: declared.operations,
  open: declared.open as (env: Env) => TaskEither<Failure, OpenSink<unknown>>,
})
