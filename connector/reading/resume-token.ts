import { createHash } from 'node:crypto'
import * as E from 'fp-ts/Either'
import * as O from 'fp-ts/Option'
import * as t from 'io-ts'
import { defined, Instant, Integer, toInstant, toMillis } from '../cdk'
import { filterFrom } from './clock'
import type { Tail } from './known-rows'
import type { Window } from './list'
import { createRowsSent, listRowsSent, SentRows } from './sent-rows'
import { certainTime, nextFilterFrom, type Origin, type Progress } from './session'

/** A token with another version is ignored: the read starts over, and the cursor stays. */
const version = 1

const WindowToken = t.partial({
  after: t.number,
  before: t.number,
  by: t.keyof({ halves: null, rounds: null }),
  unmentioned: t.boolean,
  rows: Integer,
})

/**
 * How far a read has come: `scan` in a stream's state. Times are the service's, except `begun` and `saved`, which come
 * from the local clock.
 */
export const ResumeToken = t.intersection([
  t.type({
    v: t.literal(version),
    /** The `modifiedTimeFrom` of the read. */
    from: Instant,
    /** A digest of the other request parameters. */
    filters: t.string,
    begun: Instant,
    /** Number of pages sent, which shows which of two tokens of one read is further along. */
    pages: Integer,
    /** Still to be read; the first is being read. */
    windows: t.readonlyArray(WindowToken),
    /** Where the next page of the first window begins. */
    offset: Integer,
    /** How many places rows of the first window have moved towards its end. */
    inserted: t.number,
    /** The last rows of the pages before it: `[id, modifiedTime in milliseconds, place among the rows read]`. */
    tail: t.readonlyArray(t.tuple([t.string, t.number, t.number])),
    limit: Integer,
    /** The rows read so far that the next run's filter would return again. */
    recent: SentRows,
    saved: Instant,
  }),
  /** `rowClock`, `newest` and `horizon` (of `recent`) in milliseconds. All missing before the first page. */
  t.partial({ cutoff: Instant, rowClock: t.number, newest: t.number, horizon: t.number }),
])

export type ResumeToken = t.TypeOf<typeof ResumeToken>

/** Reads a token from a state; none if its form or version differs. */
export const decodeResumeToken = (value: unknown): O.Option<ResumeToken> =>
  O.fromEither(E.mapLeft(() => undefined)(ResumeToken.decode(value)))

/** A short digest of a read's parameters, to check that a token was made for the same read. */
export const digestFilters = (filters: object): string =>
  createHash('sha256')
    .update(JSON.stringify(Object.entries(filters).sort(([a], [b]) => (a < b ? -1 : 1))))
    .digest('base64url')
    .slice(0, 11)

const day = 86_400_000

/** A read that would start at `from` (milliseconds) may continue from the token instead. False after 24 hours. */
export const isResumable =
  (planned: { readonly now: number; readonly from: number; readonly filters: string }) =>
  (token: ResumeToken): boolean =>
    Math.abs(planned.now - toMillis(token.saved)) < day &&
    token.from === toInstant(planned.from) &&
    token.filters === planned.filters

/** The token of one read that is least far along; none if the tokens belong to different reads. */
export const leastAdvancedToken = (tokens: ReadonlyArray<ResumeToken>): O.Option<ResumeToken> => {
  const [first, ...others] = tokens
  if (first === undefined) return O.none
  const isOneRead = others.every(
    ({ cutoff, from, filters, begun }) =>
      cutoff === first.cutoff && from === first.from && filters === first.filters && begun === first.begun,
  )
  return isOneRead ? O.some(others.reduce((a, b) => (b.pages < a.pages ? b : a), first)) : O.none
}

/** `now`: milliseconds. */
export const toResumeToken = (
  { from, origin, scope }: { readonly from: number; readonly origin: Origin; readonly scope: string },
  progress: Progress,
  tail: Tail,
  now: number,
): ResumeToken => {
  const { cutoff, rowClock, newest, sent } = progress
  const { rows: recent, horizon } = listRowsSent(sent, nextFilterFrom(origin, progress))
  return {
    v: version,
    from: toInstant(from),
    filters: scope,
    begun: toInstant(progress.startedAt),
    pages: progress.pages,
    windows: progress.windows,
    offset: progress.offset,
    inserted: progress.inserted,
    tail: tail.map(([...row]) => row),
    limit: progress.limit,
    recent,
    saved: toInstant(now),
    ...defined({
      cutoff: cutoff === undefined ? undefined : toInstant(cutoff),
      rowClock,
      newest,
      horizon: Number.isFinite(horizon) ? horizon : undefined,
    }),
  }
}

export const fromResumeToken = (token: ResumeToken): Progress => ({
  startedAt: toMillis(token.begun),
  cutoff: token.cutoff === undefined ? undefined : toMillis(token.cutoff),
  rowClock: token.rowClock,
  newest: token.newest,
  sent: createRowsSent(token.horizon, token.recent),
  limit: token.limit,
  pages: token.pages,
  windows: token.windows,
  // Without rows to find again, there is no place to continue from.
  offset: token.tail.length === 0 ? 0 : token.offset,
  inserted: token.inserted,
})

/**
 * The token of a read from `origin` that has only these windows left. `reached`: how far all others were read, in
 * milliseconds; `certain`: the time up to which nothing is missing.
 */
export const createWindowToken = (
  scope: string,
  origin: Origin,
  left: {
    readonly windows: ReadonlyArray<Window>
    readonly reached: number
    readonly certain: number
    readonly recent: SentRows
    readonly limit: number
    readonly now: number
  },
): ResumeToken => {
  const { windows, reached, certain, recent, limit, now } = left
  const from = filterFrom(origin.startDate, origin.cursor, origin.lookback)
  const progress: Progress = {
    startedAt: now,
    cutoff: reached,
    rowClock: certain,
    newest: reached,
    sent: createRowsSent(),
    limit,
    pages: 0,
    windows,
    offset: 0,
    inserted: 0,
  }
  return { ...toResumeToken({ from, origin, scope }, progress, [], now), recent }
}

/**
 * When the read of a token began, or slightly earlier, by the clock that stamps rows; milliseconds. None before its
 * first row.
 */
export const readStartTime = (token: ResumeToken): O.Option<number> => certainTime(fromResumeToken(token))
