import type { InputRecord, InputStream } from '../sink'

/** How many records a state covers beyond the one before it. */
export type DestinationStats = { readonly accepted: number; readonly rejected: number }

/** What a destination is told, whatever the protocol. */
export type InputMessage =
  /** Before its first record; again where its schema changes. */
  | { readonly _tag: 'Opened'; readonly inlet: InputStream }
  /** `json`: the record as it came, UTF-8; `bytes`: how much of memory it holds. */
  | {
      readonly _tag: 'Record'
      readonly inlet: string
      readonly columns: InputRecord
      readonly bytes: number
      readonly json: () => Uint8Array
    }
  /** Covers every record before it. `answer`: the line that says so; `inlet`: none if it speaks of all streams. */
  | { readonly _tag: 'State'; readonly inlet?: string; readonly answer: (stats: DestinationStats) => string }
  /** `whole`: its records were everything there is. */
  | { readonly _tag: 'Completed'; readonly inlet: string; readonly whole: boolean }
  /** It ended before it was complete. */
  | { readonly _tag: 'Broken'; readonly inlet: string }
  /** A line that was passed over, and why. */
  | { readonly _tag: 'Skipped'; readonly message: string }
