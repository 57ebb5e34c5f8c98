import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import { type Failure, transientFailure } from '../../cdk'
import type { CutRecord, ExportPage } from '../export-page'
import { chooseCutoff, type RunNote, warningNote } from './cutoff'
import { assignPositions, type RowHistory, type RowVersion } from './history'
import { certifyPage } from './pass'
import { advanceScan } from './progress'
import { collectSentRows } from './sent-rows'
import {
  type ExactRounds,
  isUpToCutoff,
  nextFilterFrom,
  type ScanContext,
  type ScanState,
  windowOverlap,
} from './state'
import { readMentionTime } from './window'

/** What a page leads to: the state after it, and the rows of it that leave. */
export type PageResult = {
  readonly state: ScanState
  readonly rows: ReadonlyArray<CutRecord>
  readonly notes: ReadonlyArray<RunNote>
}

/**
 * Processes the page that `before` asked for: measures it, compares it with the history, lets `certifyPage` decide whether it joins
 * the rows read so far, and lets `advanceScan` choose what comes next. Adds the page to `history` unless it is thrown away.
 */
export const processPage =
  (context: ScanContext, history: RowHistory) =>
  (before: ScanState, page: ExportPage, now: number): E.Either<Failure, PageResult> => {
    const [state, notes] = measurePage(context, before, page, now)
    const { rows } = page
    const foundRows = rows.map(({ id }) => history.findRow(id))
    const isNew = newRowFilter(state)
    const newRows = rows.filter((row, i) => isNew(row, foundRows[i]))
    const knownPositions = rows.map((row, i) => history.findPosition(row, foundRows[i]))
    const lastPosition = history.lastPosition()
    const positions = assignPositions(knownPositions, lastPosition, state.pass.offset === 0 ? 0 : lastPosition + 1)
    const isSweep = state.windows[0]?.kind === 'sweep'
    const verdict = certifyPage(context.rules)(state.pass, {
      rows,
      knownPositions,
      newRows,
      longestPage: state.longestPage,
      overlap: windowOverlap(state),
      isNarrowWindow: isNarrowWindow(state),
      isUncertifiedSweep: state.isUncertified && isSweep,
      isRepeatedPage: state.pass.offset > 0 && rows.length > 0 && history.isLastPage(rows),
      isBelowEchoedLimit:
        page.filter.limit != null && rows.length < page.filter.limit && rows.length !== state.longestFullPage,
      distanceToEnd: keepsOrder(state)
        ? Math.max(0, Math.round(lastPosition - (positions[positions.length - 1] ?? lastPosition)))
        : 0,
      certainTime: Math.min(state.cutoff ?? 0, state.rowClockAtStart ?? Number.NEGATIVE_INFINITY),
    })
    if (verdict._tag === 'Uncertified' && page.isRefused === true && state.windows[0]?.kind === 'exact')
      return E.left(refusedOffsetFailure(context, state))
    if (verdict._tag === 'Rewind') return E.right({ state: { ...state, pass: verdict.pass }, rows: [], notes })

    history.addPage(rows, positions)
    const sentRows = isSweep ? newRows.filter((row) => readMentionTime(row) === undefined) : newRows
    if (state.exactRounds !== undefined)
      for (const { id, modifiedTime } of newRows) state.exactRounds.versions.set(id, modifiedTime)
    const accepted: ScanState = {
      ...state,
      pageCount: state.pageCount + 1,
      sentRows: collectSentRows(
        state.sentRows,
        isSweep ? sentRows : rows.filter(isUpToCutoff(state)),
        nextFilterFrom(context.origin, state),
      ),
      rowsWithoutMention: state.rowsWithoutMention + (isSweep ? sentRows.length : 0),
      exactRounds: state.exactRounds && { ...state.exactRounds, newRows: state.exactRounds.newRows + newRows.length },
    }
    return pipe(
      advanceScan(context, history, accepted, page, verdict),
      E.map(([next, moreNotes]) => ({ state: next, rows: sentRows, notes: [...notes, ...moreNotes] })),
    )
  }

/** An export that cannot be split can only be read as deep as the service serves it. */
const refusedOffsetFailure = ({ operation }: ScanContext, { pass }: ScanState): Failure =>
  transientFailure(
    `${operation}: the service refuses offset ${pass.offset}, and the export cannot be split into smaller parts, so it cannot be read to its end. The cursor of the stream did not move. Run again; if it stays so, ask the service's operator for deeper offsets, or for sources to read one by one.`,
  )

/** Whether the service may still keep an order: nothing has contradicted it. */
const keepsOrder = ({ windows, isUncertified }: ScanState): boolean => windows[0]?.kind !== 'exact' && !isUncertified

/** Whether the current window is only a part of what was asked for. */
const isNarrowWindow = ({ windows }: ScanState): boolean =>
  windows[0]?.kind === 'part' && Object.keys(windows[0]).length > 1

/** What a page tells even if it is thrown away: the cutoff (the first page), the length of pages, and how far the clock that stamps rows is. */
const measurePage = (
  context: ScanContext,
  state: ScanState,
  page: ExportPage,
  now: number,
): readonly [ScanState, ReadonlyArray<RunNote>] => {
  const [cutoff, notes] = state.cutoff === undefined ? chooseCutoff(page.servedAt, now) : [state.cutoff, []]
  const rowClock = confirmedTime(page, (page.servedAt ?? now) + second) - Math.max(0, now - state.startedAt)
  const { cursor } = context.origin
  const isCursorInFuture = state.cutoff === undefined && cursor._tag === 'Some' && cursor.value > cutoff + 300_000
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
      newestRowTime: page.rows.reduce(
        (time, { modifiedTime }) =>
          modifiedTime <= cutoff && !(time !== undefined && time > modifiedTime) ? modifiedTime : time,
        state.newestRowTime,
      ),
      exactRounds: state.exactRounds ?? (state.windows[0]?.kind === 'exact' ? firstExactRound() : undefined),
    },
    isCursorInFuture
      ? [
          ...notes,
          warningNote(
            `${context.operation}: the cursor in the state (${new Date(cursor.value).toISOString()}) lies in the future. It is kept, and no newer row is read before that time; set it back if it is a mistake.`,
          ),
        ]
      : notes,
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

const firstExactRound = (): ExactRounds => ({ round: 1, emptyRounds: 0, newRows: 0, versions: new Map() })

/**
 * Whether a row is to be sent: it is up to the cutoff, and as far as the history goes neither this version nor a later one was sent.
 * (A version after the cutoff was read but not sent.)
 */
const newRowFilter = (state: ScanState): ((row: CutRecord, found: RowVersion | undefined) => boolean) => {
  const isDue = isUpToCutoff(state)
  return (row, found) => {
    if (!isDue(row)) return false
    const sentTime = state.exactRounds === undefined ? found?.modifiedTime : state.exactRounds.versions.get(row.id)
    return (
      sentTime === undefined || sentTime < row.modifiedTime || (state.cutoff !== undefined && sentTime > state.cutoff)
    )
  }
}
