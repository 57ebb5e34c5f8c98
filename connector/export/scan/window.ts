import * as t from 'io-ts'
import { type ExportRequest, Instant, Integer, toInstant, toMillis } from '../../api'
import type { CutRecord } from '../export-page'
import { floorToSecond } from './cutoff'

const mentionTimeKey = Buffer.from('"mentionTime"')

/** The mention time of a review in milliseconds; `undefined` if it has none. Looks inside only if the name occurs. */
export const readMentionTime = ({ raw }: CutRecord): number | undefined => {
  const text = Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength)
  if (!text.includes(mentionTimeKey)) return undefined
  const review: unknown = JSON.parse(text.toString('utf8'))
  const value =
    typeof review === 'object' && review !== null && 'mentionTime' in review ? review.mentionTime : undefined
  const time = typeof value === 'string' ? toMillis(value) : Number.NaN
  return Number.isNaN(time) ? undefined : time
}

/** What an export may be narrowed to beside its start. */
export type ScanFilters = Omit<ExportRequest, 'modifiedTimeFrom' | 'offset' | 'limit'>

/** All that a scan is limited to: its filters and, for a share of a backfill, its windows. */
export type ScanScope = ScanFilters & { readonly windows?: ReadonlyArray<ScanWindow> }

/**
 * A part of the export, read by a pass of its own. `part` must end certified or is cut; `sweep` reads all again for the
 * reviews without a mention time; `exact` is read until nothing new comes.
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
  /** Mention times of some of its rows, milliseconds; `undefined` where the export has none. */
  readonly mentionTimes: ReadonlyArray<number> | undefined
  readonly cutoff: number
}

/**
 * The windows that together hold all of `window`: by mention time, else by the sources that were asked for, else the exact
 * way. The sources of an echo that nobody asked for are a default selection, which need not name all.
 */
export const splitWindow = (
  filters: ScanFilters,
  window: ScanWindow,
  glimpse: WindowSample,
): ReadonlyArray<ScanWindow> => {
  const halves =
    glimpse.mentionTimes === undefined
      ? []
      : splitByMention({ ...filters, ...window }, glimpse.mentionTimes, glimpse.cutoff)
  if (halves.length > 0) {
    const first = window.mentionTimeAfter === undefined && window.mentionTimeBefore === undefined
    const parts = halves.map((half): ScanWindow => ({ ...window, ...half }))
    return first ? [...parts, { ...window, kind: 'sweep' }] : parts
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

/** Two halves that overlap by a millisecond, since neither bound is known to be inclusive; none where nothing is left to cut. */
const splitByMention = (
  bounds: MentionBounds,
  mentions: ReadonlyArray<number>,
  signpost: number,
): ReadonlyArray<MentionBounds> => {
  const after = bounds.mentionTimeAfter === undefined ? Number.NEGATIVE_INFINITY : toMillis(bounds.mentionTimeAfter)
  const before = bounds.mentionTimeBefore === undefined ? Number.POSITIVE_INFINITY : toMillis(bounds.mentionTimeBefore)
  const heeded = mentions.every((time) => time >= after - second && time <= before + second)
  if (!heeded) return []
  const pivot = choosePivot(after, before, mentions, signpost)
  return pivot === undefined ? [] : [{ ...toMentionBounds(after, pivot + 1) }, { ...toMentionBounds(pivot, before) }]
}

const toMentionBounds = (after: number, before: number): MentionBounds => ({
  ...(Number.isFinite(after) ? { mentionTimeAfter: toInstant(after) } : {}),
  ...(Number.isFinite(before) ? { mentionTimeBefore: toInstant(before) } : {}),
})

/** Where to cut: `after < pivot < before - 1`, at the median of what was seen, just before a whole second if there is one. */
const choosePivot = (
  after: number,
  before: number,
  mentions: ReadonlyArray<number>,
  signpost: number,
): number | undefined => {
  const low = Number.isFinite(after) ? after : Math.min(0, before - 3)
  const high = Number.isFinite(before) ? before : Math.max(signpost + day, after + 3)
  if (before - after < 3 || (mentions.length === 0 && high - low < 3)) return undefined
  const sorted = [...mentions].sort((a, b) => a - b)
  const median = sorted[Math.floor(sorted.length / 2)] ?? Math.floor((low + high) / 2)
  const inside = Math.min(Math.max(median, after + 1), before - 2)
  const rounded = floorToSecond(inside) - 1
  return rounded > after ? rounded : inside
}
