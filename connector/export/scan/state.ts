import * as O from 'fp-ts/Option'
import { filterFrom, nextCursor } from './cutoff'
import type { RowVersion } from './history'
import { newPass, type Pass, type ScanRules } from './pass'
import { emptyCollector, type SentRowCollector } from './sent-rows'
import { isExact, type ScanFilters, type ScanWindow } from './window'

/** Where a run reads from; milliseconds. */
export type ScanOrigin = { readonly startDate: number; readonly cursor: O.Option<number>; readonly lookback: number }

/** What a scan reads and how: the same for all its pages. */
export type ScanContext = {
  /** The name of the operation in messages. */
  readonly operation: string
  readonly hasMentionTime: boolean
  readonly filters: ScanFilters
  readonly origin: ScanOrigin
  readonly rules: ScanRules
  /** The windows that the scan was asked for; none: the whole export. */
  readonly windows?: ReadonlyArray<ScanWindow>
}

/** The rounds over an `exact` window, which is read until nothing new comes. */
export type ExactRounds = {
  readonly round: number
  /** Rounds in a row that brought nothing new. */
  readonly emptyRounds: number
  /** New rows in this round. */
  readonly newRows: number
  /** How many rows the round before brought. */
  readonly rowsBefore: number
  /** The modifiedTime of every row of the window, by id. Changed in place. */
  readonly versions: Map<string, number>
  /** The ids of this round. Changed in place. */
  readonly ids: Set<string>
}

/** How far a scan has come; times in milliseconds. */
export type ScanState = {
  /** None before the first page. */
  readonly cutoff: number | undefined
  /** The `modifiedTimeFrom` of the scan. */
  readonly from: number
  readonly startedAt: number
  /** Pages accepted so far. */
  readonly pageCount: number
  /** Still to be read; the first is being read. */
  readonly windows: ReadonlyArray<ScanWindow>
  readonly pass: Pass
  readonly longestPage: number
  /** The length of the longest page that had as many rows as were asked for. */
  readonly longestFullPage: number
  /** Rows asked for in each request. */
  readonly limit: number
  /** The operator says that the service sorts by modifiedTime, and no page contradicts it. */
  readonly isSorted: boolean
  /** The current pass can no longer be certified. */
  readonly isUncertified: boolean
  /** Reviews without a mention time that the sweep has found. */
  readonly rowsWithoutMention: number
  /** The clock that stamps rows was certainly not behind this time when the scan began. */
  readonly rowClockAtStart: number | undefined
  /** The newest modifiedTime read that is not later than the cutoff. */
  readonly newestRowTime: number | undefined
  readonly sentRows: SentRowCollector
  /** Present while the current window is an `exact` one. */
  readonly exactRounds: ExactRounds | undefined
  /** How many times in a row an end that contradicts what was read has been asked for again. */
  readonly rereads: number
}

export const newScanState = (start: {
  readonly origin: ScanOrigin
  readonly now: number
  readonly limit: number
  readonly isSorted: boolean
  readonly cutoff: number | undefined
  readonly windows: ReadonlyArray<ScanWindow>
}): ScanState => {
  const from = filterFrom(start.origin.startDate, start.origin.cursor, start.origin.lookback)
  return {
    cutoff: start.cutoff,
    from,
    startedAt: start.now,
    pageCount: 0,
    windows: start.windows,
    pass: newPass(from),
    longestPage: 0,
    longestFullPage: 0,
    limit: start.limit,
    isSorted: start.isSorted,
    isUncertified: false,
    rowsWithoutMention: 0,
    rowClockAtStart: undefined,
    newestRowTime: undefined,
    sentRows: emptyCollector,
    exactRounds: undefined,
    rereads: 0,
  }
}

/** If the scan ended now: the time up to which it has missed nothing, whichever clock stamps the rows. */
export const certainTime = ({ cutoff, rowClockAtStart }: ScanState): O.Option<number> =>
  rowClockAtStart === undefined || cutoff === undefined ? O.none : O.some(Math.min(cutoff, rowClockAtStart))

/** Whether a row belongs to this run. Later changes are left to the next one. */
export const isUpToCutoff =
  ({ cutoff }: ScanState) =>
  ({ modifiedTime }: RowVersion): boolean =>
    cutoff !== undefined && modifiedTime <= cutoff

/** If the scan ended now: the `modifiedTimeFrom` of the next run, milliseconds. */
export const nextFilterFrom = (origin: ScanOrigin, state: ScanState): number =>
  filterFrom(origin.startDate, nextCursor(origin.cursor, certainTime(state)), origin.lookback)

/** Rows that two successive pages share: 10 or a fiftieth of the longest page, doubled after each rewind, at most half a page. */
export const overlapSize = (longestPage: number, doublings: number): number =>
  Math.min(Math.floor(longestPage / 2), Math.max(10, Math.floor(longestPage / 50)) * 2 ** doublings)

/** Rows that two successive pages of the current window share: three quarters of a page where no order is kept. */
export const windowOverlap = ({ longestPage, pass, windows }: ScanState): number =>
  isExact(windows[0]) ? Math.floor((longestPage * 3) / 4) : overlapSize(longestPage, pass.overlapDoublings)
