import type { Task } from 'fp-ts/Task'
import type { TaskEither } from 'fp-ts/TaskEither'
import type { ApiError, ExportFilter, ExportRequest } from '../api'
import type { Row } from '../cdk'
import type { RecordOffsets } from './cut/offsets'

/** A record of an export page: its key and version, its text, and the offsets of its fields in that text. */
export type CutRecord = Row &
  RecordOffsets & {
    /** The digits of the id, exactly as they came. */
    readonly id: string
    /** Milliseconds since 1970. */
    readonly modifiedTime: number
    /** Its text as it came; `json` is the text as it leaves, the same bytes where nothing had to change. */
    readonly raw: Uint8Array
  }

/** An answer of an export operation, cut into its records. */
export type ExportPage = {
  readonly rows: ReadonlyArray<CutRecord>
  readonly filter: ExportFilter
  /** Paths of attributes that no codec declares, such as `reviews.contents.mood`. */
  readonly unknownPaths: ReadonlyArray<string>
  /** The filters that the service applied more narrowly than the request asked, by its own echo, such as `sources`. */
  readonly narrowerFilters?: ReadonlyArray<string>
  /** The service refused the offset of the request, so there are no rows. */
  readonly isRefused?: boolean
  /** The rows are no longer read: their bytes may be overwritten. */
  readonly release?: () => void
  /** The service's clock when it began to answer, milliseconds since 1970, where it is known. */
  readonly servedAt?: number
}

/** Fetches one page of an export, cuts it and checks it against the request. An answer that has arrived waits for `turn` before it is cut. */
export type FetchPage = (
  request: ExportRequest & { readonly offset: number; readonly limit: number },
  turn?: Task<void>,
) => TaskEither<ApiError, ExportPage>
