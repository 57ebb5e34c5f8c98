import type { Option } from 'fp-ts/Option'
import type { SyncMode } from './message'

/** One stream as the caller asks for it. */
export type StreamSelection = {
  readonly name: string
  readonly syncMode: SyncMode
  /** The top-level attributes wanted; none: all of them. */
  readonly attributes: Option<ReadonlySet<string>>
}

/** What a caller asks for, in the caller's order. */
export type Catalog = ReadonlyArray<StreamSelection>

/** Each stream's last state by its name, as it was printed. */
export type SourceState = Readonly<Record<string, unknown>>
