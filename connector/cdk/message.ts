import type { Option } from 'fp-ts/Option'
import type { Failure } from './failure'
import type { JsonSchema } from './schema'

/** A value that could not be sent as declared (Airbyte's AirbyteRecordMessageMetaChange). */
export type RecordChange = {
  readonly field: string
  readonly change: 'NULLED' | 'TRUNCATED'
  readonly reason: 'SOURCE_SERIALIZATION_ERROR' | 'SOURCE_FIELD_SIZE_LIMITATION' | 'SOURCE_RECORD_SIZE_LIMITATION'
}

/** One record as JSON text in UTF-8: an object, on one line. */
export type Row = {
  readonly json: Uint8Array
  readonly changes?: ReadonlyArray<RecordChange>
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

/** What a run says, whatever the protocol. Per stream: Started, Running, Records and Checkpoints, Finished or Failed. */
export type Message =
  | { readonly _tag: 'Started'; readonly stream: StreamInfo }
  /** The first record is about to come. */
  | { readonly _tag: 'Running'; readonly stream: string }
  /** `at`: milliseconds since 1970. */
  | { readonly _tag: 'Records'; readonly stream: string; readonly rows: ReadonlyArray<Row>; readonly at: number }
  /** All records before it are covered by `state`; `count` of them since the stream's last checkpoint. */
  | { readonly _tag: 'Checkpoint'; readonly stream: string; readonly state: unknown; readonly count: number }
  | { readonly _tag: 'Finished'; readonly stream: string }
  /** Without a stream: the whole run. */
  | { readonly _tag: 'Failed'; readonly stream?: string; readonly failure: Failure }
  /** The service makes the stream wait; `until` in milliseconds since 1970. */
  | { readonly _tag: 'Waiting'; readonly stream: string; readonly until: number }
  | { readonly _tag: 'Log'; readonly level: LogLevel; readonly message: string }
