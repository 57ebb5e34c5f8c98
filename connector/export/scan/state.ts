import * as O from 'fp-ts/Option'
import { toInstant, toMillis } from '../../api'
import { defined } from '../../cdk'
import { filterFrom, nextCursor } from './cutoff'
import type { RowHistory, RowVersion, SampledRows } from './history'
import { newPass, overlapSize, type Pass, type ScanRules } from './pass'
import { digestFilters, type ResumeToken } from './resume-token'
import { emptyCollector, restoreCollector, type SentRowCollector, sentRowsSince } from './sent-rows'
import type { ScanFilters, ScanScope, ScanWindow } from './window'

/** Where a run reads from; milliseconds. */
export type ScanOrigin = { readonly startDate: number; readonly cursor: O.Option<number>; readonly lookback: number }

/** A part that is read until nothing new comes: all its rows by id. Changed in place. */
export type ExactRounds = {
  readonly round: number
  /** Rounds in a row that brought nothing new. */
  readonly emptyRounds: number
  readonly newRows: number
  readonly versions: Map<string, number>
}

/** Where a scan stands; times in milliseconds. */
export type ScanState = {
  readonly cutoff: number | undefined
  readonly from: number
  readonly startedAt: number
  readonly pageCount: number
  readonly windows: ReadonlyArray<ScanWindow>
  readonly pass: Pass
  readonly longestPage: number
  /** The longest page that held all the rows it was asked for. */
  readonly longestFullPage: number
  readonly limit: number
  /** The service is still believed to serve in the order of modifiedTime. */
  readonly isSorted: boolean
  /** The pass under way cannot be certified any more. */
  readonly isUncertifiable: boolean
  /** Reviews without a mention time that a sweep has met. */
  readonly rowsWithoutMention: number
  /** A time that the clock which stamps rows had certainly reached when the scan began. */
  readonly rowClock: number | undefined
  /** The newest modifiedTime met that is not later than the signpost. */
  readonly newestRowTime: number | undefined
  readonly sentRows: SentRowCollector
  readonly exactRounds: ExactRounds | undefined
}

export const newScanState = (start: {
  readonly from: ScanOrigin
  readonly now: number
  readonly limit: number
  readonly sorted: boolean
  readonly signpost: number | undefined
  readonly windows: ReadonlyArray<ScanWindow>
}): ScanState => {
  const from = filterFrom(start.from.startDate, start.from.cursor, start.from.lookback)
  return {
    cutoff: start.signpost,
    from,
    startedAt: start.now,
    pageCount: 0,
    windows: start.windows,
    pass: newPass(from),
    longestPage: 0,
    longestFullPage: 0,
    limit: start.limit,
    isSorted: start.sorted,
    isUncertifiable: false,
    rowsWithoutMention: 0,
    rowClock: undefined,
    newestRowTime: undefined,
    sentRows: emptyCollector,
    exactRounds: undefined,
  }
}

/** The time up to which nothing can have been missed if the scan ended now, by whichever clock rows are stamped. */
export const certainTime = ({ cutoff, rowClock }: ScanState): O.Option<number> =>
  rowClock === undefined || cutoff === undefined ? O.none : O.some(Math.min(cutoff, rowClock))

/** Does the row belong to this run? Later changes are the next one's. */
export const isUpToCutoff =
  ({ cutoff }: ScanState) =>
  ({ modifiedTime }: RowVersion): boolean =>
    cutoff !== undefined && modifiedTime <= cutoff

/** What the next run's filter would be if the scan ended now. */
export const nextFilterFrom = (from: ScanOrigin, state: ScanState): number =>
  filterFrom(from.startDate, nextCursor(from.cursor, certainTime(state)), from.lookback)

/** Rows that two successive pages of the window under way share. */
export const windowOverlap = ({ longestPage, pass, windows }: ScanState): number =>
  windows[0]?.kind === 'exact' ? Math.floor((longestPage * 3) / 4) : overlapSize(longestPage, pass.growth)

/** What a marker keeps of the memory. Taken when the state is: the next page changes the memory. */
export const sampleRows = (state: ScanState, memory: RowHistory): SampledRows =>
  state.exactRounds === undefined ? memory.sampleRows(windowOverlap(state)) : []

export const toResumeToken = (
  state: ScanState,
  trail: SampledRows,
  filters: ScanScope,
  from: ScanOrigin,
): ResumeToken => {
  const { emptyAt, repeats: _, ...pass } = state.exactRounds === undefined ? state.pass : newPass(state.pass.from)
  const { horizon } = state.sentRows
  return {
    from: toInstant(state.from),
    filters: digestFilters(filters),
    begun: toInstant(state.startedAt),
    taken: state.pageCount,
    windows: state.windows,
    pass: { ...pass, from: toInstant(pass.from), ...defined({ emptyAt }) },
    trail: trail.map(([...row]) => row),
    longest: state.longestPage,
    limit: state.limit,
    sorted: state.isSorted,
    flawed: state.isUncertifiable,
    unmentioned: state.rowsWithoutMention,
    recent: sentRowsSince(state.sentRows, nextFilterFrom(from, state)),
    ...(state.cutoff === undefined ? {} : { signpost: toInstant(state.cutoff) }),
    ...defined({ reached: state.rowClock, newest: state.newestRowTime }),
    ...(Number.isFinite(horizon) ? { horizon } : {}),
  }
}

export const fromResumeToken = (marker: ResumeToken): ScanState => ({
  cutoff: marker.signpost === undefined ? undefined : toMillis(marker.signpost),
  from: toMillis(marker.from),
  startedAt: toMillis(marker.begun),
  pageCount: marker.taken,
  windows: marker.windows,
  pass: { ...marker.pass, from: toMillis(marker.pass.from), emptyAt: marker.pass.emptyAt, repeats: 0 },
  longestPage: marker.longest,
  longestFullPage: 0,
  limit: marker.limit,
  isSorted: marker.sorted,
  isUncertifiable: marker.flawed,
  rowsWithoutMention: marker.unmentioned,
  rowClock: marker.reached,
  newestRowTime: marker.newest,
  sentRows: restoreCollector(marker.horizon ?? Number.NEGATIVE_INFINITY, marker.recent),
  exactRounds: undefined,
})

/** What a scan is about; the same for all its pages. */
export type ScanContext = {
  readonly operation: string
  readonly hasMentionTime: boolean
  readonly filters: ScanFilters
  readonly from: ScanOrigin
  readonly rules: ScanRules
}
