import * as E from 'fp-ts/Either'
import * as O from 'fp-ts/Option'
import type { Task } from 'fp-ts/Task'
import { Breach, Incomplete, incompleteForGood } from './assumptions'
import { chooseCutoff, confirmedTime, filterFrom, infoNote, nextCursor, type RunNote } from './clock'
import { createKnownRows, type RowsRead, type Tail } from './known-rows'
import { createLimits, type Limits } from './limits'
import {
  type Bounds,
  boundsOfWindow,
  type List,
  type ListPage,
  type ListRow,
  putNewestLast,
  type RowVersion,
  type Window,
} from './list'
import { createPrefetcher } from './prefetch'
import { addRowsSent, type RowsSent } from './sent-rows'

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

/** A read of one list: what it knows, how it asks, and what leaves. Its members change in place. */
export type Session<R extends ListRow> = Omit<Limits, 'own' | 'measure'> & {
  readonly env: ReadEnv<R>
  readonly origin: Origin
  /** The `modifiedTimeFrom` of its requests. */
  readonly from: number
  /** A digest of what else they ask for. */
  readonly scope: string
  readonly progress: Progress
  readonly known: RowsRead
  /** The row was read in this pass, or a newer version of it. */
  readonly isRead: (row: R) => boolean
  /**
   * Up to when nothing is missed, whichever clock stamps the rows; later rows say nothing about the end of the list.
   */
  readonly certain: () => number
  /** The row belongs to this run. */
  readonly isDue: (row: R) => boolean
  readonly ask: (window: Bounds, where: Where) => Promise<ListPage<R>>
  /** Asks for these pages of a window ahead, since they are probably wanted next. */
  readonly prefetch: (pages: ReadonlyArray<readonly [window: Bounds, where: Where]>) => void
  readonly isPrefetched: (window: Bounds, where: Where) => boolean
  /** As many rows as the service gives at a time. */
  readonly isFull: (page: ListPage<R>) => boolean
  /** Waits before the `n`th time (from 0) that an answer is asked for again; false: often enough. */
  readonly pause: (n: number) => Promise<boolean>
  /** The rows of a page that leave, and what is remembered of them. */
  readonly send: (rows: ReadonlyArray<R>, filter?: (row: R) => boolean) => ReadonlyArray<R>
  /** Mention times of some rows that were read, by which a window is shown to be empty. */
  readonly anchors: ReadonlyArray<number>
  readonly remember: (mentionTimes: ReadonlyArray<number>) => void
  readonly note: (note: RunNote) => void
  readonly drainNotes: () => ReadonlyArray<RunNote>
}

/** `from`, `limit`: others than those of the read. */
export type Where = { readonly offset: number; readonly limit?: number; readonly from?: number }

const [second, day] = [1000, 86_400_000]

/** Milliseconds before an answer that cannot be right is asked for again: 15.5 s in all. */
const pauses: ReadonlyArray<number> = [500, 1000, 2000, 4000, 8000]

const maxAnchors = 256

/** Bounds that include every review. We send them when the service's default range would leave some out. */
export const widest = { after: Date.UTC(1900, 0, 1), before: Date.UTC(2200, 0, 1) }

/** `tail`: rows that a stopped run has read. */
export const createSession = <R extends ListRow>(
  env: ReadEnv<R>,
  origin: Origin,
  scope: string,
  progress: Progress,
  tail: Tail,
): Session<R> => {
  const { list, now } = env
  const from = filterFrom(origin.startDate, origin.cursor, origin.lookback)
  const known = createKnownRows(tail)
  const prefetcher = createPrefetcher(list.fetch, now)
  const notes: RunNote[] = []
  const anchors: number[] = []
  /** Bounds for requests that name none. */
  let defaults: Bounds = {}
  const limits = createLimits()

  const toRequest = (window: Bounds, { offset, limit = progress.limit, from: start = from }: Where) => ({
    from: start,
    bounds: { ...defaults, ...boundsOfWindow(window) },
    offset,
    limit: Math.min(limit, progress.limit),
  })
  const measure = ({ rows, servedAt }: ListPage<R>): void => {
    limits.measure(rows.length)
    if (progress.cutoff === undefined) {
      const [cutoff, cutoffNotes] = chooseCutoff(servedAt, now())
      progress.cutoff = cutoff
      notes.push(...cutoffNotes)
    }
    const reached = confirmedTime(rows, (servedAt ?? now()) + second) - Math.max(0, now() - progress.startedAt)
    if (Number.isFinite(reached)) progress.rowClock = Math.max(progress.rowClock ?? reached, reached)
  }
  /** Halves the limit after an answer that is too large. */
  const shrink = (limit: number, failure: Incomplete): void => {
    const half = Math.floor(limit / 2)
    if (half < 1) throw failure
    progress.limit = half
    notes.push(infoNote(`${list.name}: a page is too large; asking for ${half} rows at a time.`))
  }
  /** The service has applied a narrow default range: sets wide bounds, so that the request must be sent again. */
  const hasNarrowDefaults = (window: Bounds, { bounds = {}, servedAt }: ListPage<R>): boolean => {
    if (isNarrower(bounds, boundsOfWindow(window)))
      throw new Breach('A4', 'the service applies other bounds than were asked for')
    if (!leavesOutRows(window, bounds, servedAt ?? now())) return false
    const seen = `${list.name}: the service leaves out rows by a default of its own (${describeBounds(bounds)})`
    if (list.mentionTime === undefined)
      throw incompleteForGood('A1', seen, "No setting changes it; ask the service's operator.")
    if (defaults.after !== undefined)
      throw incompleteForGood(
        'A4',
        `${seen}, also where others are asked for`,
        "Ask the service's operator, or set mention_time_after to the time from which you need reviews.",
      )
    defaults = widest
    return true
  }

  const certain = (): number =>
    // A row that is older than a day has not changed while it is read, whatever the clock that stamps rows.
    Math.max((progress.cutoff ?? 0) - day, Math.min(progress.cutoff ?? 0, progress.rowClock ?? 0))
  const isDue = ({ modifiedTime }: RowVersion): boolean => modifiedTime <= (progress.cutoff ?? 0)
  /** Neither this version nor a later one has left. (One after the cutoff was read but has not left.) */
  const isNew = (row: R): boolean => {
    if (!isDue(row)) return false
    const time = known.newestTime(row.id)
    return time === undefined || time < row.modifiedTime || time > (progress.cutoff ?? 0)
  }

  return {
    ...limits,
    env,
    origin,
    from,
    scope,
    progress,
    known,
    isRead: ({ id, modifiedTime }) => known.hasId(id) && modifiedTime <= (known.newestTime(id) ?? 0),
    certain,
    isDue,
    ask: async (window, where) => {
      for (;;) {
        const request = toRequest(window, where)
        const answer = await prefetcher.take(request)()
        if (E.isLeft(answer)) {
          const failure = new Incomplete(answer.left.failure)
          if (answer.left._tag === 'Failed') throw failure
          shrink(request.limit, failure)
          continue
        }
        const page = answer.right
        measure(page)
        if (!hasNarrowDefaults(window, page)) return page
        page.release?.()
      }
    },
    prefetch: (pages) => prefetcher.prefetch(pages.map(([window, where]) => toRequest(window, where))),
    isPrefetched: (window, where) => prefetcher.isPrefetched(toRequest(window, where)),
    isFull: ({ rows, limit = Number.POSITIVE_INFINITY }) =>
      rows.length >= Math.min(progress.limit, limit > 0 ? limit : Number.POSITIVE_INFINITY, limits.own()),
    pause: async (n) => {
      const millis = pauses[n]
      if (millis === undefined) return false
      prefetcher.prefetch([])
      notes.push(infoNote(`${list.name}: rows that the service has shown are missing; asking again in ${millis} ms.`))
      await env.wait?.(millis)()
      return true
    },
    send: (rows, filter = () => true) => {
      const due = rows.filter((row) => isDue(row) && filter(row))
      addRowsSent(progress.sent, due, nextFilterFrom(origin, progress))
      for (const { modifiedTime } of due)
        if (!(progress.newest !== undefined && progress.newest > modifiedTime)) progress.newest = modifiedTime
      progress.pages += 1
      return putNewestLast(due.filter(isNew))
    },
    anchors,
    remember: (times) => {
      const step = Math.max(1, Math.floor(times.length / 20))
      anchors.push(...times.filter((_, i) => i % step === 0))
      anchors.splice(0, Math.max(0, anchors.length - maxAnchors))
    },
    note: (note) => notes.push(note),
    drainNotes: () => notes.splice(0),
  }
}

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

/** Whether the bounds that an answer tells leave out more than a second of what was asked for. */
const isNarrower = (told: Bounds, asked: Bounds): boolean =>
  (asked.after !== undefined && told.after !== undefined && told.after > asked.after + second) ||
  (asked.before !== undefined && told.before !== undefined && told.before < asked.before - second)

/**
 * Whether bounds that were not asked for leave out rows. Those of 1970 and of now, the usual defaults, leave out none.
 */
export const leavesOutRows = (asked: Bounds, told: Bounds, now: number): boolean =>
  (asked.after === undefined && told.after !== undefined && told.after > day) ||
  (asked.before === undefined && told.before !== undefined && told.before < now - 60 * second)

const describeBounds = ({ after, before }: Bounds): string =>
  [
    ...(after === undefined ? [] : [`mentionTimeAfter ${new Date(after).toISOString()}`]),
    ...(before === undefined ? [] : [`mentionTimeBefore ${new Date(before).toISOString()}`]),
  ].join(' and ')

/** What was read says nothing of the window that comes now. */
export const startWindow = <R extends ListRow>({ known, progress }: Session<R>): void => {
  known.startPass()
  progress.offset = 0
  progress.inserted = 0
}
