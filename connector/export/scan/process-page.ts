import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import { type Failure, transientFailure } from '../../cdk'
import type { CutRecord } from '../cut/record'
import type { ExportPage } from '../fetch-page'
import { chooseCutoff, infoNote, type RunNote } from './cutoff'
import { assignPositions, checkOrder, type OrderCheck, putNewestLast, type RowHistory } from './history'
import { certifyPage, maxRereads } from './pass'
import { advanceScan } from './progress'
import { collectSentRows } from './sent-rows'
import {
  addToRound,
  firstExactRound,
  isUpToCutoff,
  nextFilterFrom,
  type ScanContext,
  type ScanState,
  windowOverlap,
} from './state'
import { isExact, isSweep, readMentionTime } from './window'

/** What a page leads to: the state after it, and the rows of it that leave. */
export type PageResult = {
  readonly state: ScanState
  readonly rows: ReadonlyArray<CutRecord>
  readonly notes: ReadonlyArray<RunNote>
  /** Milliseconds to wait before the next request. */
  readonly pause?: number
  /** The scan fails after this page, and the next run must begin it anew. */
  readonly failure?: Failure
}

/** `isPrefetched`: it was asked for before the page in front of it was processed. */
type ScannedPage = ExportPage & { readonly isPrefetched: boolean }

/**
 * Processes the page that `before` asked for: measures it, compares it with the history, lets `certifyPage` decide whether it joins
 * the rows read so far, and lets `advanceScan` choose what comes next. Adds the page to `history` unless it is thrown away.
 */
export const processPage =
  (context: ScanContext, history: RowHistory) =>
  (before: ScanState, page: ScannedPage, now: number): E.Either<Failure, PageResult> => {
    const { rows } = page
    const [measured, notes] = measurePage(before, page, now)
    const foundRows = rows.map(({ id }) => history.findRow(id))
    const isLook = before.pass.foundAtStart !== undefined
    const isNew = newRowFilter(measured)
    const [window] = measured.windows
    const isOfWindow = (row: CutRecord): boolean =>
      !isLook && (window?.kind !== 'exactSweep' || readMentionTime(row) === undefined)
    const newRows = putNewestLast(
      rows.filter((row, i) => isNew(row, history.newestTime(foundRows[i])) && isOfWindow(row)),
    )
    const knownPositions = rows.map((row, i) => history.findPosition(row, foundRows[i]))
    const state = lowerLongestPage(history, measured, rows.length, knownPositions.includes(undefined))
    const lastPosition = history.lastPosition()
    const positions = assignPositions(
      knownPositions,
      lastPosition,
      state.pass.offset === 0 ? 0 : lastPosition + 1,
      history.sampledUntil(),
    )
    const endPosition = positions[positions.length - 1] ?? lastPosition
    const isRepeatedPage = state.pass.offset > 0 && rows.length > 0 && history.isLastPage(rows)
    const verdict = certifyPage(context.rules)(state.pass, {
      rows,
      isRefused: page.isRefused === true,
      isPrefetched: page.isPrefetched,
      knownPositions,
      newRows,
      unreadRows: rows.filter((row, i) => knownPositions[i] === undefined && isUpToCutoff(state)(row)),
      longestPage: state.longestPage,
      isLongestPageFull: state.longestPage >= Math.min(state.limit, page.filter.limit ?? state.limit),
      overlap: windowOverlap(state),
      isNarrowWindow: isNarrowWindow(state),
      isRepeatedPage,
      isBelowEchoedLimit:
        page.filter.limit != null && rows.length < page.filter.limit && rows.length !== state.longestFullPage,
      distanceToEnd:
        keepsOrder(state) && !isLateEnd(state, rows, knownPositions, lastPosition)
          ? Math.max(0, Math.round(lastPosition - endPosition))
          : 0,
      isAmongSamples: endPosition < history.sampledUntil(),
      // A row that is older than a day has not changed while it is read, whatever the clock that stamps rows.
      certainTime: Math.max((state.cutoff ?? 0) - day, Math.min(state.cutoff ?? 0, state.rowClockAtStart ?? 0)),
      newestTime: state.newestRowTime ?? Number.NEGATIVE_INFINITY,
      orderCheck: isExact(window)
        ? noOrder
        : checkOrder({
            offset: state.pass.offset,
            rows,
            found: foundRows,
            known: knownPositions,
            isOfPass: history.isOfPass,
            youngFrom: (state.cutoff ?? 0) - context.origin.lookback,
            cutoff: state.cutoff ?? 0,
          }),
      hasRows: hasRows(state, lastPosition),
      rereads: state.rereads,
      lastLength: history.lastLengths(1)[0],
      maxPagesWithoutNewRows: maxPagesWithoutNewRows(state),
    })
    if (verdict._tag === 'Contradiction') return E.right(awaitRows(context, state, verdict.pass, notes))
    if (verdict._tag === 'Uncertified' && page.isRefused === true && isExact(window))
      return E.left(refusedOffsetFailure(context, state))
    if (verdict._tag === 'Rewind') return E.right({ state: { ...state, pass: verdict.pass }, rows: [], notes })

    if (!isLook) history.addPage(rows, positions, state.pass.offset, state.cutoff)
    const sentRows = isSweep(window) ? newRows.filter((row) => readMentionTime(row) === undefined) : newRows
    const collectedRows = isSweep(window) ? sentRows : isLook ? [] : rows.filter(isUpToCutoff(state))
    const isEndInDoubt = verdict._tag === 'Next' && verdict.pass.isConfirmingEnd && verdict.pass.missingRows > 0
    const accepted: ScanState = {
      ...state,
      pageCount: state.pageCount + 1,
      sentRows: collectSentRows(state.sentRows, collectedRows, nextFilterFrom(context.origin, state)),
      rowsWithoutMention: state.rowsWithoutMention + (isSweep(window) ? sentRows.length : 0),
      exactRounds:
        state.exactRounds &&
        addToRound(state.exactRounds, state, state.pass.offset, isRepeatedPage ? [] : rows, sentRows),
      rereads: isEndInDoubt ? state.rereads : 0,
    }
    return pipe(
      advanceScan(context, history, accepted, page, verdict),
      E.map(([next, moreNotes]) => ({ state: next, rows: sentRows, notes: [...notes, ...moreNotes] })),
    )
  }

const day = 86_400_000

const noOrder: OrderCheck = { hasUnreadRow: false, insertedRows: 0, isInPlace: false }

/** How many milliseconds to wait before an end that contradicts what was read is asked for again: 15.5 s in all. */
const rereadPauses: ReadonlyArray<number> = Array.from({ length: maxRereads }, (_, n) => 500 * 2 ** n)

/** Waits for rows that must be there, as while the service swaps an index. If they do not come, the scan fails: it has no certain end. */
const awaitRows = (
  { operation }: ScanContext,
  state: ScanState,
  pass: ScanState['pass'],
  notes: ReadonlyArray<RunNote>,
): PageResult => {
  const pause = rereadPauses[state.rereads]
  const next = { state: { ...state, pass, rereads: state.rereads + 1 }, rows: [] }
  if (pause === undefined)
    return {
      ...next,
      notes,
      failure: transientFailure(
        `${operation}: the list ends before rows that the service has shown, in ${rereadPauses.length + 1} answers within ${rereadPauses.reduce((a, b) => a + b) / 1000} s. The cursor of the stream did not move: run again.`,
      ),
    }
  const note = infoNote(
    `${operation}: the list ends before rows that the service has shown; asking again in ${pause} ms.`,
  )
  return { ...next, notes: [...notes, note], pause }
}

/** Whether the window must have rows, because rows of it were read. */
const hasRows = ({ windows: [window], exactRounds }: ScanState, lastPosition: number): boolean | 'unknown' => {
  if (lastPosition >= 0 || (exactRounds?.versions.size ?? 0) > 0) return true
  return window?.hasRows === false ? 'unknown' : window?.hasRows === true
}

/**
 * Whether a page of known rows after the cutoff ends at the place of the last row read: the list is as long as before, so nothing
 * is missing behind the page. Its rows have changed places; the next run reads them again.
 */
const isLateEnd = (
  state: ScanState,
  rows: ReadonlyArray<CutRecord>,
  knownPositions: ReadonlyArray<number | undefined>,
  lastPosition: number,
): boolean =>
  !knownPositions.includes(undefined) &&
  !rows.some(isUpToCutoff(state)) &&
  state.pass.offset + rows.length === lastPosition + 1

/** A list that grows as fast as it is read must not keep a pass from ending; a round brings many pages without new rows. */
const maxPagesWithoutNewRows = ({ exactRounds, longestPage }: ScanState): number =>
  100 + (exactRounds === undefined ? 0 : Math.ceil((8 * exactRounds.versions.size) / Math.max(1, longestPage)))

/**
 * Three pages of one length in a row, and there are rows that the pass has not read: the service has lowered its limit. A shorter
 * page is not the end. Rows after the cutoff count: many rows changed at once fill pages of their own.
 */
const lowerLongestPage = (history: RowHistory, state: ScanState, length: number, hasUnreadRows: boolean): ScanState => {
  const earlier = history.lastLengths(2)
  return hasUnreadRows && length > 1 && earlier.length === 2 && earlier.every((one) => one === length)
    ? { ...state, longestPage: length }
    : state
}

/** An export that cannot be split can only be read as deep as the service serves it. */
const refusedOffsetFailure = ({ operation }: ScanContext, { pass }: ScanState): Failure =>
  transientFailure(
    `${operation}: the service refuses offset ${pass.offset}, and the export cannot be split into smaller parts, so it cannot be read to its end. The cursor of the stream did not move. Run again; if it stays so, ask the service's operator for deeper offsets, or for sources to read one by one.`,
  )

/** Whether the service may still keep an order: nothing has contradicted it. */
const keepsOrder = ({ windows, isUncertified }: ScanState): boolean => !isExact(windows[0]) && !isUncertified

/** Whether the current window is only a part of what was asked for. */
const isNarrowWindow = ({ windows: [window] }: ScanState): boolean =>
  window?.kind === 'part' && Object.keys({ ...window, hasRows: 0 }).length > 2

/** What a page tells even if it is thrown away: the cutoff (the first page), the length of pages, and how far the clock that stamps rows is. */
const measurePage = (state: ScanState, page: ExportPage, now: number): readonly [ScanState, ReadonlyArray<RunNote>] => {
  const [cutoff, notes] = state.cutoff === undefined ? chooseCutoff(page.servedAt, now) : [state.cutoff, []]
  const rowClock = confirmedTime(page, (page.servedAt ?? now) + second) - Math.max(0, now - state.startedAt)
  return [
    {
      ...state,
      cutoff,
      longestPage: longestPageLength(state, page),
      longestFullPage:
        page.rows.length >= state.limit ? Math.max(state.longestFullPage, page.rows.length) : state.longestFullPage,
      rowClockAtStart: Number.isFinite(rowClock)
        ? Math.max(state.rowClockAtStart ?? rowClock, rowClock)
        : state.rowClockAtStart,
      // Rows of a look at the start are not sent, so they do not count.
      newestRowTime: (state.pass.foundAtStart === undefined ? page.rows : []).reduce(
        (time: number | undefined, { modifiedTime }) =>
          modifiedTime <= cutoff && !(time !== undefined && time > modifiedTime) ? modifiedTime : time,
        state.newestRowTime,
      ),
      exactRounds: state.exactRounds ?? (isExact(state.windows[0]) ? firstExactRound() : undefined),
    },
    notes,
  ]
}

const second = 1000

/**
 * A time that the clock which stamps rows has reached: the newest modifiedTime of a page but one, up to `latest`, the time of the
 * answer. One row that is dated in the future says nothing about that clock.
 */
const confirmedTime = ({ rows }: ExportPage, latest: number): number => {
  let newest = Number.NEGATIVE_INFINITY
  let second = Number.NEGATIVE_INFINITY
  for (const { modifiedTime } of rows) {
    if (modifiedTime > latest) continue
    second = Math.max(second, Math.min(newest, modifiedTime))
    newest = Math.max(newest, modifiedTime)
  }
  return second
}

/** The length of the longest page so far. A page that is full by the limit of its echo replaces it: the service may lower the limit at any time. */
const longestPageLength = ({ longestPage }: ScanState, { rows, filter }: ExportPage): number =>
  filter.limit != null && filter.limit > 0 && rows.length >= filter.limit
    ? rows.length
    : Math.max(longestPage, rows.length)

/**
 * Whether a row is to be sent: it is up to the cutoff, and as far as the history goes neither this version nor a later one was sent.
 * (A version after the cutoff was read but not sent.) `readTime`: that of the newest version in the history.
 */
const newRowFilter = (state: ScanState): ((row: CutRecord, readTime: number | undefined) => boolean) => {
  const isDue = isUpToCutoff(state)
  return (row, readTime) => {
    if (!isDue(row)) return false
    const sentTime = state.exactRounds === undefined ? readTime : state.exactRounds.versions.get(row.id)
    return (
      sentTime === undefined || sentTime < row.modifiedTime || (state.cutoff !== undefined && sentTime > state.cutoff)
    )
  }
}
