import { defined, toMillis } from '../cdk'
import type { ExportFilters } from '../export'
import type { Window } from '../reading'

/** The share of a backfill that one process reads: `index` of `count`, from 0. */
export type BackfillPartition = { readonly index: number; readonly count: number }

/** Starts of the calendar months (UTC) after `from` and up to `to`, milliseconds. */
const monthsBetween = (from: number, to: number): ReadonlyArray<number> => {
  const first = new Date(from)
  const month = (n: number): number => Date.UTC(first.getUTCFullYear(), first.getUTCMonth() + n, 1)
  const last = new Date(to)
  const count = (last.getUTCFullYear() - first.getUTCFullYear()) * 12 + last.getUTCMonth() - first.getUTCMonth()
  return Array.from({ length: Math.max(0, count) }, (_, n) => month(n + 1))
}

/**
 * The windows of mention time that a process reads: every `count`th calendar month since the start date. So the
 * processes agree on the windows whenever each of them starts, and each gets old and new months. The first window is
 * open to the past, the last to the future. They overlap by a millisecond, since it is unknown if the bounds are
 * inclusive. Reviews without a mention time are in no window; the last process reads them.
 */
export const partitionWindows = (
  { index, count }: BackfillPartition,
  startDate: number,
  now: number,
  filters: ExportFilters,
): ReadonlyArray<Window> => {
  const after = filters.mentionTimeAfter === undefined ? Number.NEGATIVE_INFINITY : toMillis(filters.mentionTimeAfter)
  const before =
    filters.mentionTimeBefore === undefined ? Number.POSITIVE_INFINITY : toMillis(filters.mentionTimeBefore)
  const monthStarts = monthsBetween(startDate, now)
  const windows = Array.from({ length: monthStarts.length + 1 }, (_, n) => ({
    after: Math.max(after, (monthStarts[n - 1] ?? Number.NEGATIVE_INFINITY) - 1),
    before: Math.min(before, monthStarts[n] ?? Number.POSITIVE_INFINITY),
  }))
  const share = windows
    .filter((window, n) => n % count === index && window.after < window.before)
    .map(
      (window): Window =>
        defined({
          after: Number.isFinite(window.after) ? window.after : undefined,
          before: Number.isFinite(window.before) ? window.before : undefined,
        }),
    )
  const unbounded = after === Number.NEGATIVE_INFINITY && before === Number.POSITIVE_INFINITY
  return index === count - 1 && unbounded ? [...share, { unmentioned: true }] : share
}
