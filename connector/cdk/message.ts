import type { Option } from 'fp-ts/Option'
import type { Failure } from './failure'
import type { JsonSchema } from './schema'

/** A value that could not be sent as declared (Airbyte's AirbyteRecordMessageMetaChange). */
export type RecordChange = {
  readonly field: string
  readonly change: 'NULLED' | 'TRUNCATED'
  readonly reason: 'SOURCE_SERIALIZATION_ERROR' | 'SOURCE_FIELD_SIZE_LIMITATION' | 'SOURCE_RECORD_SIZE_LIMITATION'
}

/** A parsed record; integers beyond 2^53 are bigints. */
export type InputRecord = Readonly<Record<string, unknown>>

/** One record as JSON text in UTF-8: an object, on one line. */
export type Row = {
  readonly json: Uint8Array
  readonly changes?: ReadonlyArray<RecordChange>
  /** The parsed record, if it was decoded for a destination. */
  readonly value?: InputRecord
  /** The length of the line that contained it, which stays in memory with it. */
  readonly lineLength?: number
}

export type SyncMode = 'full_refresh' | 'incremental'

/**
 * A step into a record: a member that is an object or a list of objects. `key`: objects without this member are
 * skipped; `as`: the column of the resulting rows for that key; `index`: the column for the position in the list, from
 * 0.
 */
export type PartStep = {
  readonly name: string
  readonly isList: boolean
  readonly key?: string
  readonly as?: string
  readonly index?: string
}

/**
 * How the rows of a stream are made from its reader's records. record: the records themselves; part: objects inside
 * them, without the members `omitted`; dimension: an object that many records refer to, once per version; names: the
 * texts of such objects, each combination once.
 */
export type Derivation =
  | { readonly _tag: 'record' }
  | { readonly _tag: 'part'; readonly steps: ReadonlyArray<PartStep>; readonly omitted: ReadonlyArray<string> }
  | { readonly _tag: 'dimension'; readonly member: string }
  | ({ readonly _tag: 'names' } & NamesDerivation)

/**
 * How rows are made from the texts of objects. The key joins the texts with ">"; with `hasKey`, the first text alone is
 * the key if it exists. `kind`: the column for the lowercase class of one of the texts.
 */
export type NamesDerivation = {
  readonly steps: ReadonlyArray<PartStep>
  readonly names: ReadonlyArray<string>
  readonly hasKey: boolean
  readonly kind?: { readonly column: string; readonly of: string; readonly values: Readonly<Record<string, string>> }
}

/** What a consumer must know about a stream before its first record. */
export type StreamInfo = {
  readonly name: string
  readonly schema: JsonSchema
  readonly primaryKey: ReadonlyArray<string>
  readonly cursor: Option<string>
  readonly syncMode: SyncMode
  readonly derivation?: Derivation
}

export type LogLevel = 'error' | 'warn' | 'info' | 'debug'

/** How many records a destination accepted and rejected since the previous state. */
export type StateCounts = { readonly accepted: number; readonly rejected: number }

/** A state received by a destination, which prints it back. */
type ReceivedState = {
  /** Printed back unchanged: the line of an Airbyte STATE, the value of a Singer STATE. */
  readonly received?: Uint8Array
  readonly counts?: StateCounts
}

/** A state of one stream or of several; it covers all records before it. */
export type CheckpointMessage =
  /** `count`: its records since the stream's last checkpoint; NaN if the source does not count. */
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
 * Records from which the consumer makes the rows of several streams, by their derivations. `hasUndeclared`: objects
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
 * The messages of a run, whatever the protocol. Each stream sends Started, Running, Records and Checkpoints, then
 * Finished or Failed. A state received as text is a `JsonText`.
 */
export type Message =
  | { readonly _tag: 'Started'; readonly stream: StreamInfo }
  /** The first record comes next. `total`: how many the stream sends in this run, if known. */
  | { readonly _tag: 'Running'; readonly stream: string; readonly total?: number }
  /** `at`: milliseconds since 1970. */
  | { readonly _tag: 'Records'; readonly stream: string; readonly rows: ReadonlyArray<Row>; readonly at: number }
  | SharedRecords
  | CheckpointMessage
  /**
   * `extent`: everything if the stream sent all its records, changes if only the changed ones, unknown if the source
   * may have been cut off. Only decoders set it.
   */
  | { readonly _tag: 'Finished'; readonly stream: string; readonly extent?: 'everything' | 'changes' | 'unknown' }
  /**
   * Without a stream: the whole run failed. `isRepeated`: the same failure was already reported for an earlier stream.
   */
  | { readonly _tag: 'Failed'; readonly stream?: string; readonly failure: Failure; readonly isRepeated?: boolean }
  /** The service makes the stream wait; `until` in milliseconds since 1970. */
  | { readonly _tag: 'Waiting'; readonly stream: string; readonly until: number }
  /** `skipped`: a stream with nothing to read; the message gives the reason. */
  | { readonly _tag: 'Log'; readonly level: LogLevel; readonly message: string; readonly skipped?: string }
  /**
   * Singer's way to replace a table: the next records carry this version. Once it is `active`, older rows are deleted.
   * Only decoders send it.
   */
  | { readonly _tag: 'TableVersion'; readonly stream: string; readonly version: number; readonly active: boolean }
