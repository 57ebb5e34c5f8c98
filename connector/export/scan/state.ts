import * as O from 'fp-ts/Option'
import { filterFrom, nextCursor } from './cutoff'
import type { RowVersion } from './history'
import { emptyCollector, type SentRowCollector } from './sent-rows'
import { isExact, type ScanFilters, type ScanWindow } from './window'

/** The safeguards of a pass. Only tests switch one off, to show that rows are lost without it. */
export type ScanRules = { readonly overlap: boolean; readonly witness: boolean; readonly halving: boolean }

export const allScanRules: ScanRules = { overlap: true, witness: true, halving: true }

/** How far a pass over one window has come. A rewind is a page thrown away in favour of one at a lower offset. */
export type Pass = {
  /** The `modifiedTimeFrom` of its requests; milliseconds. */
  readonly from: number
  /** Of the next page to ask for. */
  readonly offset: number
  /** How many times the overlap has been doubled. */
  readonly overlapDoublings: number
  /** Pages with enough witnesses since the overlap changed. */
  readonly pagesSinceOverlapChange: number
  readonly rewindsInARow: number
  readonly rewinds: number
  /** Pages accepted so far. */
  readonly pageCount: number
  /** Pages in a row that are as long as the longest: the next one is worth a prefetch. */
  readonly fullPagesInARow: number
  /** Pages in a row without a new row up to the cutoff. */
  readonly pagesWithoutNewRows: number
  /** Short pages in a row whose new rows are all late: the next run reads these again. */
  readonly latePages: number
  /** The page asked for lies behind what seems to be the last row. */
  readonly isConfirmingEnd: boolean
  /** Rows that were read before and are missing at what seems to be the end. */
  readonly missingRows: number
  /** The end has been asked for again because rows were missing there. */
  readonly hasRecheckedEnd: boolean
  /** How many times in a row a further offset brought exactly the rows of the page before. */
  readonly repeatedPages: number
  /** The offset of the empty page that caused the last rewind. */
  readonly emptyOffset: number | undefined
  /** As far as the rows read so far show; none while all had one modifiedTime. */
  readonly isNewestFirst: boolean | undefined
  /** Rows that came in front of rows read before, as changed rows do where the newest come first. */
  readonly insertedRows: number
  /** The list seems to end before rows of a full page: more was to follow it. */
  readonly isCutShort: boolean
  /** Rows that were there when the scan began followed a page that was shorter than the longest: the service cuts pages at will. */
  readonly hasCutPages: boolean
  /** The pass is over but for a look at the start of the list, for the rows inserted there: how many were found so far. */
  readonly foundAtStart: number | undefined
}

export const newPass = (from: number): Pass => ({
  from,
  offset: 0,
  overlapDoublings: 0,
  pagesSinceOverlapChange: 0,
  rewindsInARow: 0,
  rewinds: 0,
  pageCount: 0,
  fullPagesInARow: 0,
  pagesWithoutNewRows: 0,
  latePages: 0,
  isConfirmingEnd: false,
  missingRows: 0,
  hasRecheckedEnd: false,
  repeatedPages: 0,
  emptyOffset: undefined,
  isNewestFirst: undefined,
  insertedRows: 0,
  isCutShort: false,
  hasCutPages: false,
  foundAtStart: undefined,
})

/** Where a run reads from; milliseconds. */
export type ScanOrigin = {
  readonly startDate: number
  readonly cursor: O.Option<number>
  readonly lookback: number
  /** Rows since then are compared with those that an earlier run has sent. */
  readonly rangeFrom?: number
}

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
  /** How many rows this round brought, each counted once. */
  readonly rowCount: number
  /** How many of them are later than the cutoff. */
  readonly lateRows: number
  /** How many rows the round before brought. */
  readonly rowsBefore: number
  /** How many rows the list has, as far as the pages of this round show. */
  readonly listLength: number
  /** How many rows the list had in the first round; none before its end. */
  readonly firstLength: number | undefined
  /** The modifiedTime of every row that was sent, by id. Changed in place. */
  readonly versions: Map<string, number>
  /** The last round that brought a row, by id and modifiedTime, whether it was sent or not. Changed in place. */
  readonly readIn: Map<string, number>
  /** By place in the list the row that a page showed there last, as in `readIn`. Changed in place. */
  readonly places: string[]
  /** Whether each page of this round showed the rows that these places had, the first round those of its own pages. */
  readonly isStable: boolean
  /** Rounds in a row that were stable to their end. */
  readonly stableRounds: number
}

export const firstExactRound = (): ExactRounds => ({
  round: 1,
  emptyRounds: 0,
  newRows: 0,
  rowCount: 0,
  lateRows: 0,
  rowsBefore: 0,
  listLength: 0,
  firstLength: undefined,
  versions: new Map(),
  readIn: new Map(),
  places: [],
  isStable: true,
  stableRounds: 0,
})

/** Beyond so many rows their number is not compared with the length of the list, to bound memory. */
const maxCountedRows = 2_000_000

/** Whether all rows of a window are counted. */
export const areRowsCounted = ({ readIn }: ExactRounds): boolean => readIn.size < maxCountedRows

/** Adds a page at `offset` to its round. `sentRows`: those of its rows that leave. */
export const addToRound = (
  rounds: ExactRounds,
  { cutoff }: ScanState,
  offset: number,
  rows: ReadonlyArray<RowVersion>,
  sentRows: ReadonlyArray<RowVersion>,
): ExactRounds => {
  const { round, versions, readIn, places } = rounds
  for (const { id, modifiedTime } of sentRows) versions.set(id, modifiedTime)
  let { rowCount, lateRows, isStable } = rounds
  for (const [i, { id, modifiedTime }] of rows.entries()) {
    const key = `${id} ${modifiedTime}`
    const place = offset + i
    if (place > places.length || (places[place] ?? (round === 1 ? key : undefined)) !== key) isStable = false
    if (place <= places.length && place < maxCountedRows) places[place] = key
    if (readIn.get(key) === round) continue
    if (readIn.size < maxCountedRows) readIn.set(key, round)
    rowCount += 1
    if (modifiedTime > (cutoff ?? 0)) lateRows += 1
  }
  const listLength = rows.length === 0 ? rounds.listLength : Math.max(rounds.listLength, offset + rows.length)
  return { ...rounds, newRows: rounds.newRows + sentRows.length, rowCount, lateRows, listLength, isStable }
}

/**
 * Whether a round shows that rows are missing: the list is longer than the rows that were read of it, in whatever round. Rows later
 * than the cutoff that came meanwhile may be among those, and the next run reads them.
 */
export const lacksRows = (rounds: ExactRounds): boolean =>
  areRowsCounted(rounds) && rounds.listLength - rounds.readIn.size > rounds.lateRows / 4

/** How many rounds in a row were stable, once this one has ended. */
export const countStableRounds = ({ isStable, listLength, places, stableRounds }: ExactRounds): number =>
  isStable && listLength === places.length ? stableRounds + 1 : 0

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

/** If the scan ended now: from when on its rows must be known, for the `modifiedTimeFrom` of the next run; milliseconds. */
export const nextFilterFrom = (origin: ScanOrigin, state: ScanState): number =>
  Math.min(
    filterFrom(origin.startDate, nextCursor(origin.cursor, certainTime(state)), origin.lookback),
    origin.rangeFrom ?? Number.POSITIVE_INFINITY,
  )

/** Rows that two successive pages share: 10 or a fiftieth of the longest page, doubled after each rewind, at most half a page. */
export const overlapSize = (longestPage: number, doublings: number): number =>
  Math.min(Math.floor(longestPage / 2), Math.max(10, Math.floor(longestPage / 50)) * 2 ** doublings)

/** Rows that two successive pages of the current window share: three quarters of a page where no order is kept. */
export const windowOverlap = ({ longestPage, pass, windows }: ScanState): number =>
  isExact(windows[0]) ? Math.floor((longestPage * 3) / 4) : overlapSize(longestPage, pass.overlapDoublings)
