import * as t from 'io-ts'
import { type ExportRequest, Instant, Integer, toInstant, toMillis } from '../../api'
import { defined } from '../../cdk'
import type { CutRecord } from '../export-page'
import { floorToSecond } from './cutoff'

const mentionTimeKey = Buffer.from('"mentionTime"')

/** The mention time of a review in milliseconds; `undefined` if it has none. Parses the record only if the name occurs in it. */
export const readMentionTime = ({ raw }: CutRecord): number | undefined => {
  const text = Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength)
  if (!text.includes(mentionTimeKey)) return undefined
  const review: unknown = JSON.parse(text.toString('utf8'))
  const value =
    typeof review === 'object' && review !== null && 'mentionTime' in review ? review.mentionTime : undefined
  const time = typeof value === 'string' ? toMillis(value) : Number.NaN
  return Number.isNaN(time) ? undefined : time
}

/** The filters of an export other than its `modifiedTimeFrom`. */
export type ScanFilters = Omit<ExportRequest, 'modifiedTimeFrom' | 'offset' | 'limit'>

/** All that limits a scan: its filters and, for a share of a backfill, its windows. */
export type ScanScope = ScanFilters & { readonly windows?: ReadonlyArray<ScanWindow> }

/**
 * A part of the export that a pass of its own reads. A `part` that is not certified is split into smaller windows; a `sweep` reads
 * everything once more and sends the reviews without a mention time; an `exact` window is read until nothing new comes.
 */
export const ScanWindow = t.intersection([
  t.type({ kind: t.keyof({ part: null, sweep: null, exact: null }) }),
  t.partial({ mentionTimeAfter: Instant, mentionTimeBefore: Instant, sources: t.readonlyArray(Integer) }),
])
export type ScanWindow = t.TypeOf<typeof ScanWindow>

export const wholeWindow: ScanWindow = { kind: 'part' }

/** The filters of a request for a window. */
export const windowFilters = (filters: ScanFilters, { kind: _, ...bounds }: ScanWindow): ScanFilters => ({
  ...filters,
  ...bounds,
})

/** What is known of a window that could not be certified. */
export type WindowSample = {
  /** Mention times of some of its rows, milliseconds; `undefined` if the export has none. */
  readonly mentionTimes: ReadonlyArray<number> | undefined
  /** Milliseconds. */
  readonly cutoff: number
}

/**
 * The windows that together cover `window`: halves by mention time, or else halves of the sources that were asked for, or else
 * an `exact` window. The sources of an echo do not count if none were asked for: they are a default that need not name all.
 */
export const splitWindow = (
  filters: ScanFilters,
  window: ScanWindow,
  sample: WindowSample,
): ReadonlyArray<ScanWindow> => {
  const halves =
    sample.mentionTimes === undefined
      ? []
      : splitByMention({ ...filters, ...window }, sample.mentionTimes, sample.cutoff)
  if (halves.length > 0) {
    const isWhole = window.mentionTimeAfter === undefined && window.mentionTimeBefore === undefined
    const parts = halves.map((half): ScanWindow => ({ ...window, ...half }))
    return isWhole ? [...parts, { ...window, kind: 'sweep' }] : parts
  }
  const sources = window.sources ?? filters.sources ?? []
  const middle = Math.ceil(sources.length / 2)
  return sources.length > 1
    ? [sources.slice(0, middle), sources.slice(middle)].map((half): ScanWindow => ({ ...window, sources: half }))
    : [{ ...window, kind: 'exact' }]
}

type MentionBounds = Pick<ScanWindow, 'mentionTimeAfter' | 'mentionTimeBefore'>

const second = 1000
const day = 86_400_000

/**
 * Two halves that overlap by a millisecond, because the bounds may be inclusive or not. None if the service ignores the bounds
 * (a row lies outside of them) or the window is too narrow to split.
 */
const splitByMention = (
  bounds: MentionBounds,
  mentionTimes: ReadonlyArray<number>,
  cutoff: number,
): ReadonlyArray<MentionBounds> => {
  const after = bounds.mentionTimeAfter === undefined ? Number.NEGATIVE_INFINITY : toMillis(bounds.mentionTimeAfter)
  const before = bounds.mentionTimeBefore === undefined ? Number.POSITIVE_INFINITY : toMillis(bounds.mentionTimeBefore)
  const areInside = mentionTimes.every((time) => time >= after - second && time <= before + second)
  if (!areInside) return []
  const pivot = choosePivot(after, before, mentionTimes, cutoff)
  return pivot === undefined ? [] : [toMentionBounds(after, pivot + 1), toMentionBounds(pivot, before)]
}

const toMentionBounds = (after: number, before: number): MentionBounds =>
  defined({
    mentionTimeAfter: Number.isFinite(after) ? toInstant(after) : undefined,
    mentionTimeBefore: Number.isFinite(before) ? toInstant(before) : undefined,
  })

/**
 * Where to split, with `after < pivot < before - 1`: the median of the sample, moved to just before a whole second where possible.
 * `undefined` if there is no such time.
 */
const choosePivot = (
  after: number,
  before: number,
  mentionTimes: ReadonlyArray<number>,
  cutoff: number,
): number | undefined => {
  const low = Number.isFinite(after) ? after : Math.min(0, before - 3)
  const high = Number.isFinite(before) ? before : Math.max(cutoff + day, after + 3)
  if (before - after < 3 || (mentionTimes.length === 0 && high - low < 3)) return undefined
  const sorted = [...mentionTimes].sort((a, b) => a - b)
  const median = sorted[Math.floor(sorted.length / 2)] ?? Math.floor((low + high) / 2)
  const pivot = Math.min(Math.max(median, after + 1), before - 2)
  const beforeSecond = floorToSecond(pivot) - 1
  return beforeSecond > after ? beforeSecond : pivot
}
