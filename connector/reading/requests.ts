import * as E from 'fp-ts/Either'
import { Breach, Incomplete, incompleteForGood } from './assumptions'
import { chooseCutoff, confirmedTime, infoNote } from './clock'
import { type Bounds, boundsOfWindow, type ListPage, type ListRow, type PageRequest } from './list'
import type { Session } from './session'

/** `from`, `limit`: override those of the read. */
export type Where = { readonly offset: number; readonly limit?: number; readonly from?: number }

const [second, day] = [1000, 86_400_000]

/** Bounds that include every review. Sent when the service's default range would leave some out. */
export const widest = { after: Date.UTC(1900, 0, 1), before: Date.UTC(2200, 0, 1) }

const toRequest = <R extends ListRow>(
  { progress, defaults, from: start }: Session<R>,
  window: Bounds,
  { offset, limit = progress.limit, from = start }: Where,
): PageRequest => ({
  from,
  bounds: { ...defaults, ...boundsOfWindow(window) },
  offset,
  limit: Math.min(limit, progress.limit),
})

/** Learns from an answer how many rows the service returns at a time, and its clock. */
const measure = <R extends ListRow>(session: Session<R>, { rows, servedAt }: ListPage<R>): void => {
  const { limits, progress, notes } = session
  const now = session.env.now()
  limits.measure(rows.length)
  if (progress.cutoff === undefined) {
    const [cutoff, cutoffNotes] = chooseCutoff(servedAt, now)
    progress.cutoff = cutoff
    notes.push(...cutoffNotes)
  }
  const reached = confirmedTime(rows, (servedAt ?? now) + second) - Math.max(0, now - progress.startedAt)
  if (Number.isFinite(reached)) progress.rowClock = Math.max(progress.rowClock ?? reached, reached)
}

/** Halves the limit after an answer that is too large. */
const shrink = <R extends ListRow>({ progress, notes, env }: Session<R>, limit: number, failure: Incomplete): void => {
  const half = Math.floor(limit / 2)
  if (half < 1) throw failure
  progress.limit = half
  notes.push(infoNote(`${env.list.name}: a page is too large; asking for ${half} rows at a time.`))
}

/**
 * If the service has applied a narrow default range, sets wide bounds and returns true: the request must be sent again.
 */
const hasNarrowDefaults = <R extends ListRow>(
  session: Session<R>,
  window: Bounds,
  { bounds = {}, servedAt }: ListPage<R>,
): boolean => {
  const { list, now } = session.env
  if (isNarrower(bounds, boundsOfWindow(window)))
    throw new Breach('A4', 'the service applies different bounds from those requested')
  if (!leavesOutRows(window, bounds, servedAt ?? now())) return false
  const seen = `${list.name}: the service leaves out rows by its own default (${describeBounds(bounds)})`
  if (list.mentionTime === undefined)
    throw incompleteForGood('A1', seen, "No setting changes it; ask the service's operator.")
  if (session.defaults.after !== undefined)
    throw incompleteForGood(
      'A4',
      `${seen}, even when others are requested`,
      "Ask the service's operator, or set mention_time_after to the time from which you need reviews.",
    )
  session.defaults = widest
  return true
}

/** A page of a window, requested with a smaller limit or wider bounds if the service makes that necessary. */
export const askPage = async <R extends ListRow>(
  session: Session<R>,
  window: Bounds,
  where: Where,
): Promise<ListPage<R>> => {
  for (;;) {
    const request = toRequest(session, window, where)
    const answer = await session.prefetcher.take(request)()
    if (E.isLeft(answer)) {
      const failure = new Incomplete(answer.left.failure)
      if (answer.left._tag === 'Failed') throw failure
      shrink(session, request.limit, failure)
      continue
    }
    const page = answer.right
    measure(session, page)
    if (!hasNarrowDefaults(session, window, page)) return page
    page.release?.()
  }
}

/** Prefetches the pages of a window that are probably needed next. */
export const prefetchPages = <R extends ListRow>(
  session: Session<R>,
  pages: ReadonlyArray<readonly [window: Bounds, where: Where]>,
): void => session.prefetcher.prefetch(pages.map(([window, where]) => toRequest(session, window, where)))

export const isPrefetched = <R extends ListRow>(session: Session<R>, window: Bounds, where: Where): boolean =>
  session.prefetcher.isPrefetched(toRequest(session, window, where))

/** The page has as many rows as the service returns at a time. */
export const isFullPage = <R extends ListRow>(
  { progress, limits }: Session<R>,
  { rows, limit = Number.POSITIVE_INFINITY }: ListPage<R>,
): boolean => rows.length >= Math.min(progress.limit, limit > 0 ? limit : Number.POSITIVE_INFINITY, limits.own())

/** Milliseconds to wait before requesting an implausible answer again: 15.5 s in total. */
const pauses: ReadonlyArray<number> = [500, 1000, 2000, 4000, 8000]

/** Waits before the `n`th repeat (from 0) of a request; false: it was repeated often enough. */
export const pauseBefore = async <R extends ListRow>(
  { env, notes, prefetcher }: Session<R>,
  n: number,
): Promise<boolean> => {
  const millis = pauses[n]
  if (millis === undefined) return false
  prefetcher.prefetch([])
  notes.push(infoNote(`${env.list.name}: rows that the service has shown are missing; asking again in ${millis} ms.`))
  await env.wait?.(millis)()
  return true
}

/** The bounds in an answer leave out more than a second of what was requested. */
const isNarrower = (told: Bounds, asked: Bounds): boolean =>
  (asked.after !== undefined && told.after !== undefined && told.after > asked.after + second) ||
  (asked.before !== undefined && told.before !== undefined && told.before < asked.before - second)

/** Bounds that nobody asked for leave out rows. The usual defaults, 1970 and now, leave out none. */
export const leavesOutRows = (asked: Bounds, told: Bounds, now: number): boolean =>
  (asked.after === undefined && told.after !== undefined && told.after > day) ||
  (asked.before === undefined && told.before !== undefined && told.before < now - 60 * second)

const describeBounds = ({ after, before }: Bounds): string =>
  [
    ...(after === undefined ? [] : [`mentionTimeAfter ${new Date(after).toISOString()}`]),
    ...(before === undefined ? [] : [`mentionTimeBefore ${new Date(before).toISOString()}`]),
  ].join(' and ')
