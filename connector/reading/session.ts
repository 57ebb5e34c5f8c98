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
  /** Waits so many milliseconds before something is asked again that cannot be right; none: does not wait. */
  readonly wait?: (millis: number) => Task<void>
  /** The most requests at a time. */
  readonly concurrency: number
  /** Rows asked for in each request. */
  readonly limit: number
}

/** Where a run reads from; milliseconds. */
export type Origin = {
  readonly startDate: number
  readonly cursor: O.Option<number>
  readonly lookback: number
  /** Rows since then are compared with those that an earlier run has sent. */
  readonly rangeFrom?: number
}

/** How far a read has come; times in milliseconds. */
export type Progress = {
  startedAt: number
  /** Later changes are left to the next run; none before the first answer. */
  cutoff: number | undefined
  /** The clock that stamps rows was certainly not behind this time when the read began. */
  rowClock: number | undefined
  /** The newest modifiedTime that left. */
  newest: number | undefined
  /** Rows that the next run's filter returns again. */
  readonly sent: RowsSent
  /** Rows asked for in each request. */
  limit: number
  /** Pages that have left: tells which of two tokens of one read is further. */
  pages: number
  /** Still to be read; the first is being read. */
  windows: ReadonlyArray<Window>
  /** Where the next page of the first window begins. */
  offset: number
  /** By how many places rows of the first window that were read have moved towards its end. */
  inserted: number
}

/** A read of one list: what it asks with, and what it knows. Its members change in place. */
export type Session<R extends ListRow> = {
  readonly env: ReadEnv<R>
  readonly origin: Origin
  /** The `modifiedTimeFrom` of its requests. */
  readonly from: number
  /** A digest of what else they ask for. */
  readonly scope: string
  readonly progress: Progress
  readonly known: KnownRows
  readonly limits: Limits
  readonly prefetcher: Prefetcher<R>
  /** Bounds for requests that name none. */
  defaults: Bounds
  /** Mention times of some rows that were read, by which a window is shown to be empty. */
  readonly anchors: number[]
  /** What the user should know, and has not been sent yet. */
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

/**
 * If the read ended now: from when on its rows must be known, for the `modifiedTimeFrom` of the next run; milliseconds.
 */
export const nextFilterFrom = (
  { startDate, cursor, lookback, rangeFrom = Number.POSITIVE_INFINITY }: Origin,
  progress: Progress,
): number => Math.min(filterFrom(startDate, nextCursor(cursor, certainTime(progress)), lookback), rangeFrom)

/** If the read ended now: the time up to which it has missed nothing, whichever clock stamps the rows. */
export const certainTime = ({ cutoff, rowClock }: Pick<Progress, 'cutoff' | 'rowClock'>): O.Option<number> =>
  rowClock === undefined || cutoff === undefined ? O.none : O.some(Math.min(cutoff, rowClock))

/** What was read says nothing of the window that comes now. */
export const startWindow = <R extends ListRow>({ known, progress }: Session<R>): void => {
  startPass(known)
  progress.offset = 0
  progress.inserted = 0
}
