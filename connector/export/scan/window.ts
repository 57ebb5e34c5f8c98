import * as t from 'io-ts'
import { type ExportRequest, Instant, Integer, toInstant, toMillis } from '../../api'
import { defined } from '../../cdk'
import type { CutRecord } from '../cut/record'
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
 * everything once more and sends the reviews without a mention time; an `exact` window is read until nothing new comes, and an
 * `exactSweep` is a sweep read in that way.
 */
export const ScanWindow = t.intersection([
  t.type({ kind: t.keyof({ part: null, sweep: null, exact: null, exactSweep: null }) }),
  t.partial({
    mentionTimeAfter: Instant,
    mentionTimeBefore: Instant,
    sources: t.readonlyArray(Integer),
    /** It was cut out of a larger window: whether rows of it were read there. */
    hasRows: t.boolean,
  }),
])
export type ScanWindow = t.TypeOf<typeof ScanWindow>

export const wholeWindow: ScanWindow = { kind: 'part' }

/** Whether a window is read until nothing new comes. */
export const isExact = (window: ScanWindow | undefined): boolean =>
  window?.kind === 'exact' || window?.kind === 'exactSweep'

/** Whether only the reviews without a mention time of a window are sent. */
export const isSweep = (window: ScanWindow | undefined): boolean =>
  window?.kind === 'sweep' || window?.kind === 'exactSweep'

/** The filters of a request for a window. */
export const windowFilters = (filters: ScanFilters, { kind: _, hasRows: __, ...bounds }: ScanWindow): ScanFilters => ({
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
    const parts = halves.map((half): ScanWindow => ({ ...window, ...half }))
    return isBounded(window) ? parts : [...parts, { ...window, kind: 'sweep' }]
  }
  const sources = window.sources ?? filters.sources ?? []
  const middle = Math.ceil(sources.length / 2)
  return sources.length > 1
    ? [sources.slice(0, middle), sources.slice(middle)].map((half): ScanWindow => ({ ...window, sources: half }))
    : [{ ...window, kind: 'exact' }]
}

/** Whether a window is limited by mention time. */
const isBounded = ({ mentionTimeAfter, mentionTimeBefore }: MentionBounds): boolean =>
  mentionTimeAfter !== undefined || mentionTimeBefore !== undefined

const lowerBound = ({ mentionTimeAfter }: MentionBounds): number =>
  mentionTimeAfter === undefined ? Number.NEGATIVE_INFINITY : toMillis(mentionTimeAfter)
const upperBound = ({ mentionTimeBefore }: MentionBounds): number =>
  mentionTimeBefore === undefined ? Number.POSITIVE_INFINITY : toMillis(mentionTimeBefore)

/** Whether a window surely has one of the rows with these mention times, whether its bounds are inclusive or not. */
export const containsMention = (window: MentionBounds, mentionTimes: ReadonlyArray<number>): boolean =>
  mentionTimes.some((time) => time > lowerBound(window) && time < upperBound(window))

/** Whether a sample shows that the service ignores the bounds of a window: it has no mention time, or one outside of them. */
export const ignoresBounds = (window: ScanWindow, mentionTimes: ReadonlyArray<number | undefined>): boolean =>
  isBounded(window) &&
  mentionTimes.some(
    (time) => time === undefined || time < lowerBound(window) - second || time > upperBound(window) + second,
  )

/**
 * The windows that are left where smaller ones by mention time would not have fewer rows: for each window that the scan was asked for
 * and that is not read to its end yet, an `exact` one.
 */
export const toExactWindows = (
  asked: ReadonlyArray<ScanWindow>,
  left: ReadonlyArray<ScanWindow>,
): ReadonlyArray<ScanWindow> => {
  const outer = left.map(
    (window) =>
      asked.find((one) => lowerBound(one) <= lowerBound(window) && upperBound(one) >= upperBound(window)) ?? window,
  )
  return [...new Set(outer)].map((window) => ({ ...window, kind: window.kind === 'sweep' ? 'exactSweep' : 'exact' }))
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
  const [after, before] = [lowerBound(bounds), upperBound(bounds)]
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
  const low = Number.isFinite(after) ? after : Math.min(0, before)
  const high = Number.isFinite(before) ? before : Math.max(cutoff + day, after)
  if (before - after < 3) return undefined
  const sorted = [...mentionTimes].sort((a, b) => a - b)
  const median = sorted[Math.floor(sorted.length / 2)] ?? Math.floor((low + high) / 2)
  const pivot = Math.min(Math.max(median, after + 1), before - 2)
  const beforeSecond = floorToSecond(pivot) - 1
  return beforeSecond > after ? beforeSecond : pivot
}
