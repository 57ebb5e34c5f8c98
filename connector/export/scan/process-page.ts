import * as E from 'fp-ts/Either'
import type { Failure } from '../../cdk'
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

/** What came of a page. */
export type PageResult = {
  readonly state: ScanState
  readonly rows: ReadonlyArray<CutRecord>
  readonly notes: ReadonlyArray<RunNote>
}

/** Judges the page that `state` asked for. Changes `memory`. */
export const processPage =
  (subject: ScanContext, memory: RowHistory) =>
  (before: ScanState, page: ExportPage, now: number): E.Either<Failure, PageResult> => {
    const [state, notes] = applyPage(subject, before, page, now)
    const { rows } = page
    const met = rows.map(({ id }) => memory.findRow(id))
    const isFresh = newRowFilter(state)
    const fresh = rows.filter((row, i) => isFresh(row, met[i]))
    const known = rows.map((row, i) => memory.positionOf(row, met[i]))
    const end = memory.lastPosition()
    const places = assignPositions(known, end, state.pass.offset === 0 ? 0 : end + 1)
    const verdict = certifyPage(subject.rules)(state.pass, {
      rows,
      knownPositions: known,
      newRows: fresh,
      longestPage: state.longestPage,
      overlap: windowOverlap(state),
      isPartWindow: isNarrowWindow(state),
      isRepeatedPage: state.pass.offset > 0 && rows.length > 0 && memory.isLastPage(rows),
      isBelowLimit:
        page.filter.limit != null && rows.length < page.filter.limit && rows.length !== state.longestFullPage,
      isUncertifiable: state.isUncertifiable && state.windows[0]?.kind === 'sweep',
      distanceToEnd: keepsOrder(state) ? Math.max(0, Math.round(end - (places[places.length - 1] ?? end))) : 0,
      certainTime: Math.min(state.cutoff ?? 0, state.rowClock ?? Number.NEGATIVE_INFINITY),
    })
    if (verdict._tag === 'Back') return E.right({ state: { ...state, pass: verdict.pass }, rows: [], notes })

    memory.addPage(rows, places)
    const sweeping = state.windows[0]?.kind === 'sweep'
    const emitted = sweeping ? fresh.filter((row) => readMentionTime(row) === undefined) : fresh
    if (state.exactRounds !== undefined)
      for (const { id, modifiedTime } of fresh) state.exactRounds.versions.set(id, modifiedTime)
    const kept: ScanState = {
      ...state,
      pageCount: state.pageCount + 1,
      sentRows: collectSentRows(
        state.sentRows,
        sweeping ? emitted : rows.filter(isUpToCutoff(state)),
        nextFilterFrom(subject.from, state),
      ),
      rowsWithoutMention: state.rowsWithoutMention + (sweeping ? emitted.length : 0),
      exactRounds: state.exactRounds && { ...state.exactRounds, newRows: state.exactRounds.newRows + fresh.length },
    }
    return E.map(([next, more]: readonly [ScanState, ReadonlyArray<RunNote>]) => ({
      state: next,
      rows: emitted,
      notes: [...notes, ...more],
    }))(advanceScan(subject, memory, kept, page, verdict))
  }

/** Nothing speaks against an order yet. */
const keepsOrder = ({ windows, isUncertifiable }: ScanState): boolean =>
  windows[0]?.kind !== 'exact' && !isUncertifiable

/** The window under way is not all that was asked for. */
const isNarrowWindow = ({ windows }: ScanState): boolean =>
  windows[0]?.kind === 'part' && Object.keys(windows[0]).length > 1

/** The first page sets the signpost; every page tells how far the rows' own clock had come. */
const applyPage = (
  subject: ScanContext,
  state: ScanState,
  page: ExportPage,
  now: number,
): readonly [ScanState, ReadonlyArray<RunNote>] => {
  const [post, notes] = state.cutoff === undefined ? chooseCutoff(page.servedAt, now) : [state.cutoff, []]
  const newest = page.rows.reduce((time, row) => Math.max(time, row.modifiedTime), Number.NEGATIVE_INFINITY)
  const reached = newest - Math.max(0, now - state.startedAt)
  const { cursor } = subject.from
  const early = state.cutoff === undefined && cursor._tag === 'Some' && cursor.value > post + 300_000
  return [
    {
      ...state,
      cutoff: post,
      longestPage: longestPageLength(state, page),
      longestFullPage:
        page.rows.length >= state.limit ? Math.max(state.longestFullPage, page.rows.length) : state.longestFullPage,
      rowClock: Number.isFinite(reached) ? Math.max(state.rowClock ?? reached, reached) : state.rowClock,
      newestRowTime: page.rows.reduce(
        (time, { modifiedTime }) =>
          modifiedTime <= post && !(time !== undefined && time > modifiedTime) ? modifiedTime : time,
        state.newestRowTime,
      ),
      exactRounds: state.exactRounds ?? (state.windows[0]?.kind === 'exact' ? firstExactRound() : undefined),
    },
    early
      ? [
          ...notes,
          warningNote(
            `${subject.operation}: the cursor in the state (${new Date(cursor.value).toISOString()}) lies in the future. It is kept, and nothing newer can be read before then; set it back if that is a mistake.`,
          ),
        ]
      : notes,
  ]
}

/** The longest page so far; a page that is full by the limit its echo tells shows what the service clamps ours to now. */
const longestPageLength = ({ longestPage }: ScanState, { rows, filter }: ExportPage): number =>
  filter.limit != null && filter.limit > 0 && rows.length >= filter.limit
    ? rows.length
    : Math.max(longestPage, rows.length)

const firstExactRound = (): ExactRounds => ({ round: 1, emptyRounds: 0, newRows: 0, versions: new Map() })

/** Up to the signpost, and neither this version nor a later one sent already, as far as that is remembered. */
const newRowFilter = (state: ScanState): ((row: CutRecord, met: RowVersion | undefined) => boolean) => {
  const due = isUpToCutoff(state)
  return (row, met) => {
    if (!due(row)) return false
    const sent = state.exactRounds === undefined ? met?.modifiedTime : state.exactRounds.versions.get(row.id)
    return sent === undefined || sent < row.modifiedTime || (state.cutoff !== undefined && sent > state.cutoff)
  }
}
