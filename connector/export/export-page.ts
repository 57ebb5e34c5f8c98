import type { Task } from 'fp-ts/Task'
import type { TaskEither } from 'fp-ts/TaskEither'
import type { ApiError, ExportFilter, ExportRequest } from '../api'
import type { Row } from '../cdk'
import type { OffsetTable } from './cut/offsets'

/** A record of an export page: its key and version, and its text. */
export type CutRecord = Row & {
  /** The digits of the id, exactly as they came. */
  readonly id: string
  /** Milliseconds since 1970. */
  readonly modifiedTime: number
  /** Its text as it came; `json` is the text as it leaves, the same bytes where nothing had to change. */
  readonly raw: Uint8Array
  /** Where its members stand, from which of the notes of its page on, if its cutter was asked. */
  readonly offsets?: OffsetTable | undefined
  readonly offsetsStart?: number
}

/** An answer of an export operation, cut into its records. */
export type ExportPage = {
  readonly rows: ReadonlyArray<CutRecord>
  readonly filter: ExportFilter
  /** Paths of attributes that no codec declares, such as `reviews.contents.mood`. */
  readonly unknownPaths: ReadonlyArray<string>
  /** The filters that the service says it applied more narrowly than asked, such as `sources`. */
  readonly narrowerFilters?: ReadonlyArray<string>
  /** Nobody looks at the rows any more: their bytes may be overwritten. */
  readonly release?: () => void
  /** The service's clock when it began to answer, milliseconds, where it is known. */
  readonly servedAt?: number
}

/** One page of an export, retried, cut and held against its echo; `turn`: what an answer waits for, once here, before it is cut. */
export type FetchPage = (
  request: ExportRequest & { readonly offset: number; readonly limit: number },
  turn?: Task<void>,
) => TaskEither<ApiError, ExportPage>
