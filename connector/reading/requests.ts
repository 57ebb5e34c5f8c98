import * as E from 'fp-ts/Either'
import { Breach, Incomplete, incompleteForGood } from './assumptions'
import { chooseCutoff, confirmedTime, infoNote } from './clock'
import { type Bounds, boundsOfWindow, type ListPage, type ListRow, type PageRequest } from './list'
import type { Session } from './session'

/** `from`, `limit`: others than those of the read. */
export type Where = { readonly offset: number; readonly limit?: number; readonly from?: number }

const [second, day] = [1000, 86_400_000]

/** Bounds that include every review. We send them when the service's default range would leave some out. */
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

/** Learns from an answer how much the service gives at a time, and what its clock shows. */
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

/** The service has applied a narrow default range: sets wide bounds, so that the request must be sent again. */
const hasNarrowDefaults = <R extends ListRow>(
  session: Session<R>,
  window: Bounds,
  { bounds = {}, servedAt }: ListPage<R>,
): boolean => {
  const { list, now } = session.env
  if (isNarrower(bounds, boundsOfWindow(window)))
    throw new Breach('A4', 'the service applies other bounds than were asked for')
  if (!leavesOutRows(window, bounds, servedAt ?? now())) return false
  const seen = `${list.name}: the service leaves out rows by a default of its own (${describeBounds(bounds)})`
  if (list.mentionTime === undefined)
    throw incompleteForGood('A1', seen, "No setting changes it; ask the service's operator.")
  if (session.defaults.after !== undefined)
    throw incompleteForGood(
      'A4',
      `${seen}, also where others are asked for`,
      "Ask the service's operator, or set mention_time_after to the time from which you need reviews.",
    )
  session.defaults = widest
  return true
}

/** A page of a window, with a smaller limit or wider bounds where the service makes that necessary. */
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

/** Asks for these pages of a window ahead, since they are probably wanted next. */
export const prefetchPages = <R extends ListRow>(
  session: Session<R>,
  pages: ReadonlyArray<readonly [window: Bounds, where: Where]>,
): void => session.prefetcher.prefetch(pages.map(([window, where]) => toRequest(session, window, where)))

export const isPrefetched = <R extends ListRow>(session: Session<R>, window: Bounds, where: Where): boolean =>
  session.prefetcher.isPrefetched(toRequest(session, window, where))

/** As many rows as the service gives at a time. */
export const isFullPage = <R extends ListRow>(
  { progress, limits }: Session<R>,
  { rows, limit = Number.POSITIVE_INFINITY }: ListPage<R>,
): boolean => rows.length >= Math.min(progress.limit, limit > 0 ? limit : Number.POSITIVE_INFINITY, limits.own())

/** Milliseconds before an answer that cannot be right is asked for again: 15.5 s in all. */
const pauses: ReadonlyArray<number> = [500, 1000, 2000, 4000, 8000]

/** Waits before the `n`th time (from 0) that an answer is asked for again; false: often enough. */
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
