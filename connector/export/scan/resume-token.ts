import { createHash } from 'node:crypto'
import * as E from 'fp-ts/Either'
import * as O from 'fp-ts/Option'
import * as t from 'io-ts'
import { Instant, Integer, toInstant, toMillis } from '../../api'
import { defined } from '../../cdk'
import type { RowHistory, SampledRows } from './history'
import { listSentRows, restoreCollector, SentRows } from './sent-rows'
import {
  certainTime,
  newPass,
  newScanState,
  nextFilterFrom,
  type Pass,
  type ScanOrigin,
  type ScanState,
  windowOverlap,
} from './state'
import { type ScanScope, ScanWindow } from './window'

/** `pass` of a resume token; each key says which member of `Pass` it holds where the names differ. */
const PassToken = t.intersection([
  t.type({
    from: Instant,
    offset: Integer,
    /** `overlapDoublings` */
    growth: Integer,
    /** `pagesSinceOverlapChange` */
    good: Integer,
    /** `rewindsInARow` */
    lost: Integer,
    /** `rewinds` */
    losses: Integer,
    /** `pageCount` */
    pages: Integer,
    /** `fullPagesInARow` */
    full: Integer,
    /** `pagesWithoutNewRows` */
    barren: Integer,
    /** `latePages` */
    late: Integer,
    /** `missingRows` */
    gap: Integer,
    /** `hasRecheckedEnd` */
    doubted: t.boolean,
    /** `isConfirmingEnd` */
    confirming: t.boolean,
  }),
  /** `emptyOffset` */
  t.partial({ emptyAt: Integer, /** `insertedRows` */ inserted: Integer }),
])
type PassToken = t.TypeOf<typeof PassToken>

/** How far an unfinished scan has come: `scan` in a stream's state. The keys are in users' state files and must not change. */
export const ResumeToken = t.intersection([
  t.type({
    /** The `modifiedTimeFrom` of the scan. */
    from: Instant,
    /** A digest of the filters and windows. */
    filters: t.string,
    /** When the scan began, by the local clock. */
    begun: Instant,
    /** Pages accepted so far: tells which of two tokens of one scan is further. */
    taken: Integer,
    /** Still to be read; the first is being read. */
    windows: t.readonlyArray(ScanWindow),
    pass: PassToken,
    /** Sampled rows: `[id, modifiedTime in milliseconds, position in the pass]`. */
    trail: t.readonlyArray(t.tuple([t.string, t.number, t.number])),
    /** `longestPage` */
    longest: Integer,
    limit: Integer,
    /** `isUncertified` */
    flawed: t.boolean,
    /** `rowsWithoutMention` */
    unmentioned: Integer,
    /** The rows read so far that the next run's filter would serve again. */
    recent: SentRows,
  }),
  /** `signpost` is the cutoff; `reached` is `rowClockAtStart` and `newest` is `newestRowTime`. None of them before the first page. */
  t.partial({
    signpost: Instant,
    reached: t.number,
    newest: t.number,
    horizon: t.number,
    /** When the token was made, by the local clock; left out in tokens of version 0.1. */
    saved: Instant,
  }),
])
export type ResumeToken = t.TypeOf<typeof ResumeToken>

/** Reads a token out of a state; none if it has another form. */
export const decodeResumeToken = (value: unknown): O.Option<ResumeToken> =>
  O.fromEither(E.mapLeft(() => undefined)(ResumeToken.decode(value)))

/** A short digest of filters and windows: tells whether a token was made for the same ones. */
export const digestFilters = (filters: ScanScope): string =>
  createHash('sha256')
    .update(JSON.stringify(Object.entries(filters).sort(([a], [b]) => (a < b ? -1 : 1))))
    .digest('base64url')
    .slice(0, 11)

const day = 86_400_000

/** Whether a scan that would start at `from` (milliseconds) may go on from the token instead. Not if it was made over 24 hours ago. */
export const isResumable =
  (planned: { readonly now: number; readonly from: number; readonly filters: ScanScope }) =>
  (token: ResumeToken): boolean =>
    Math.abs(planned.now - toMillis(token.saved ?? token.begun)) < day &&
    token.from === toInstant(planned.from) &&
    token.filters === digestFilters(planned.filters)

/** The time at which the scan of a token began, or somewhat before, by the clock that stamps rows; milliseconds. None before its first row. */
export const scanStartTime = (token: ResumeToken): O.Option<number> => certainTime(fromResumeToken(token))

/** The least advanced of several tokens of one scan; none if they belong to different scans. */
export const leastAdvancedToken = (tokens: ReadonlyArray<ResumeToken>): O.Option<ResumeToken> => {
  const [first, ...others] = tokens
  if (first === undefined) return O.none
  const isOneScan = others.every(
    ({ signpost, from, filters, begun }) =>
      signpost === first.signpost && from === first.from && filters === first.filters && begun === first.begun,
  )
  return isOneScan ? O.some(others.reduce((a, b) => (b.taken < a.taken ? b : a), first)) : O.none
}

/** The rows of the history that a token needs. To be called with the state's own page as the last: later pages change the history. */
export const sampleRows = (state: ScanState, history: RowHistory): SampledRows =>
  state.exactRounds === undefined ? history.sampleRows(windowOverlap(state)) : []

/** An `exact` window starts again after a restart, since its ids are not in the token. */
export const toResumeToken = (
  state: ScanState,
  samples: SampledRows,
  scope: ScanScope,
  origin: ScanOrigin,
  now: number,
): ResumeToken => {
  const { rows: recent, horizon } = listSentRows(state.sentRows, nextFilterFrom(origin, state))
  return {
    from: toInstant(state.from),
    filters: digestFilters(scope),
    begun: toInstant(state.startedAt),
    taken: state.pageCount,
    windows: state.windows,
    pass: toPassToken(state.exactRounds === undefined ? state.pass : newPass(state.pass.from)),
    trail: samples.map(([...row]) => row),
    longest: state.longestPage,
    limit: state.limit,
    flawed: state.isUncertified,
    unmentioned: state.rowsWithoutMention,
    recent,
    saved: toInstant(now),
    ...defined({
      signpost: state.cutoff === undefined ? undefined : toInstant(state.cutoff),
      reached: state.rowClockAtStart,
      newest: state.newestRowTime,
      horizon: Number.isFinite(horizon) ? horizon : undefined,
    }),
  }
}

/**
 * The token of a scan from `origin` that has only these windows left to read and has reached `reached` (milliseconds) in all others;
 * `certain`: up to where nothing was missed.
 */
export const createWindowToken = (
  scope: ScanScope,
  origin: ScanOrigin,
  {
    windows,
    reached,
    certain,
    recent,
    limit,
    now,
  }: {
    readonly windows: ReadonlyArray<ScanWindow>
    readonly reached: number
    readonly certain: number
    readonly recent: SentRows
    readonly limit: number
    readonly now: number
  },
): ResumeToken => {
  const state = newScanState({ origin, now, limit, cutoff: reached, windows })
  return {
    ...toResumeToken({ ...state, newestRowTime: reached, rowClockAtStart: certain }, [], scope, origin, now),
    recent,
  }
}

const toPassToken = (pass: Pass): PassToken => ({
  from: toInstant(pass.from),
  offset: pass.offset,
  growth: pass.overlapDoublings,
  good: pass.pagesSinceOverlapChange,
  lost: pass.rewindsInARow,
  losses: pass.rewinds,
  pages: pass.pageCount,
  full: pass.fullPagesInARow,
  barren: pass.pagesWithoutNewRows,
  late: pass.latePages,
  confirming: pass.isConfirmingEnd,
  gap: pass.missingRows,
  doubted: pass.hasRecheckedEnd,
  ...defined({ emptyAt: pass.emptyOffset, inserted: pass.insertedRows === 0 ? undefined : pass.insertedRows }),
})

export const fromResumeToken = (token: ResumeToken): ScanState => ({
  cutoff: token.signpost === undefined ? undefined : toMillis(token.signpost),
  from: toMillis(token.from),
  startedAt: toMillis(token.begun),
  pageCount: token.taken,
  windows: token.windows,
  pass: fromPassToken(token.pass),
  longestPage: token.longest,
  longestFullPage: 0,
  limit: token.limit,
  isUncertified: token.flawed,
  rowsWithoutMention: token.unmentioned,
  rowClockAtStart: token.reached,
  newestRowTime: token.newest,
  sentRows: restoreCollector(token.horizon ?? Number.NEGATIVE_INFINITY, token.recent),
  exactRounds: undefined,
  rereads: 0,
})

const fromPassToken = (token: PassToken): Pass => ({
  from: toMillis(token.from),
  offset: token.offset,
  overlapDoublings: token.growth,
  pagesSinceOverlapChange: token.good,
  rewindsInARow: token.lost,
  rewinds: token.losses,
  pageCount: token.pages,
  fullPagesInARow: token.full,
  pagesWithoutNewRows: token.barren,
  latePages: token.late,
  isConfirmingEnd: token.confirming,
  missingRows: token.gap,
  hasRecheckedEnd: token.doubted,
  repeatedPages: 0,
  emptyOffset: token.emptyAt,
  isNewestFirst: undefined,
  insertedRows: token.inserted ?? 0,
  isCutShort: false,
  hasCutPages: false,
  foundAtStart: undefined,
})
