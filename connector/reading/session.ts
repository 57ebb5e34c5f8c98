import * as O from 'fp-ts/Option'
import type { Task } from 'fp-ts/Task'
import { filterFrom, nextCursor, type RunNote } from './clock'
import { createKnownRows, type KnownRows, startPass, type Tail } from './known-rows'
import { createLimits, type Limits } from './limits'
import type { Bounds, List, ListRow, Window } from './list'
import { createPrefetcher, type Prefetcher } from './prefetch'
import type { RowsSent } from './sent-rows'

export type ReadEnv<R extends ListRow> = {
  readonly list: List<R>
  /** Milliseconds since 1970, by the local clock. */
  readonly now: () => number
  /** Waits so many milliseconds before an implausible answer is requested again; without it, does not wait. */
  readonly wait?: (millis: number) => Task<void>
  /** The most requests in flight. */
  readonly concurrency: number
  /** Number of rows per request. */
  readonly limit: number
}

/** Where a run reads from; milliseconds. */
export type Origin = {
  readonly startDate: number
  readonly cursor: O.Option<number>
  readonly lookback: number
  /** Rows since then are compared with those that an earlier run sent. */
  readonly rangeFrom?: number
}

/** How far a read has come; times in milliseconds. */
export type Progress = {
  startedAt: number
  /** Later changes are left to the next run. Undefined before the first answer. */
  cutoff: number | undefined
  /** The clock that stamps rows had certainly reached this time when the read began. */
  rowClock: number | undefined
  /** The newest modifiedTime sent. */
  newest: number | undefined
  /** Rows that the next run's filter returns again. */
  readonly sent: RowsSent
  /** Number of rows per request. */
  limit: number
  /** Number of pages sent, which shows which of two tokens of one read is further along. */
  pages: number
  /** Still to be read; the first is being read. */
  windows: ReadonlyArray<Window>
  /** Where the next page of the first window begins. */
  offset: number
  /** How many places rows of the first window have moved towards its end. */
  inserted: number
}

/** A read of one list: its parameters and what it has learned. Its members change in place. */
export type Session<R extends ListRow> = {
  readonly env: ReadEnv<R>
  readonly origin: Origin
  /** The `modifiedTimeFrom` of its requests. */
  readonly from: number
  /** A digest of the other request parameters. */
  readonly scope: string
  readonly progress: Progress
  readonly known: KnownRows
  readonly limits: Limits
  readonly prefetcher: Prefetcher<R>
  /** Bounds for requests that name none. */
  defaults: Bounds
  /** Mention times of some rows that were read, used to show that a window is empty. */
  readonly anchors: number[]
  /** Messages for the user that have not been sent yet. */
  readonly notes: RunNote[]
}

/** `tail`: rows that a stopped run has read. */
export const createSession = <R extends ListRow>(
  env: ReadEnv<R>,
  origin: Origin,
  scope: string,
  progress: Progress,
  tail: Tail,
): Session<R> => ({
  env,
  origin,
  from: filterFrom(origin.startDate, origin.cursor, origin.lookback),
  scope,
  progress,
  known: createKnownRows(tail),
  limits: createLimits(),
  prefetcher: createPrefetcher(env.list.fetch, env.now),
  defaults: {},
  anchors: [],
  notes: [],
})

/** If the read ended now: from when on the next run's `modifiedTimeFrom` needs its rows to be known; milliseconds. */
export const nextFilterFrom = (
  { startDate, cursor, lookback, rangeFrom = Number.POSITIVE_INFINITY }: Origin,
  progress: Progress,
): number => Math.min(filterFrom(startDate, nextCursor(cursor, certainTime(progress)), lookback), rangeFrom)

/** If the read ended now: the time up to which nothing is missing, whichever clock stamps the rows. */
export const certainTime = ({ cutoff, rowClock }: Pick<Progress, 'cutoff' | 'rowClock'>): O.Option<number> =>
  rowClock === undefined || cutoff === undefined ? O.none : O.some(Math.min(cutoff, rowClock))

/** Forgets what was read: it says nothing about the next window. */
export const startWindow = <R extends ListRow>({ known, progress }: Session<R>): void => {
  startPass(known)
  progress.offset = 0
  progress.inserted = 0
}
