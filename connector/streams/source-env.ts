import type { Option } from 'fp-ts/Option'
import type { Task } from 'fp-ts/Task'
import { type Api, type LookupListRequest, toMillis } from '../api'
import { defined } from '../cdk'
import type { ExportFilters, PrivacyAction } from '../export'
import type { Window } from '../reading'

/** A resource of the service that has attributes to hide; the paths of `privacy` begin with it. */
export type ResourceName = 'export' | 'comments' | 'transparency_reviews' | 'entity_ratings' | 'managed_locations'

/** The share of a backfill that one process reads: `index` of `count`, from 0. */
export type BackfillPartition = { readonly index: number; readonly count: number }

/** How a scan ended: its cutoff in milliseconds, and whether an earlier run had begun it. */
export type ScanEnd = { readonly cutoff: number; readonly isCertified: boolean; readonly isResumed: boolean }

/** What the readers of a run tell of what they send. */
export type AuditLedger = {
  /** By stream. */
  readonly scanEnds: Map<string, ScanEnd>
  /** Of `reviews`: by id, the time of the deletion that was sent; milliseconds. */
  deletedTimes: ReadonlyMap<string, number>
  /** The records of `sync_audit`: of the streams that were read to their end. */
  readonly records: object[]
}

/** Which entities are taken from the reviews: their locations, and their providers by which attribute. */
export type ReviewEntitySettings = { readonly locations: boolean; readonly providers: 'none' | 'id' | 'npi' }

/** A scan of the reviews that was read to its end: the time it began at (milliseconds), and the state after it. */
export type CompleteScan = { readonly from: number; readonly state: unknown }

/** The entities that a run has found in the reviews so far, as `kind:id`; the review export adds to it as it is read. */
export type EntityIndex = { readonly keys: Set<string>; readonly completeScans: CompleteScan[] }

export const createEntityIndex = (): EntityIndex => ({ keys: new Set(), completeScans: [] })

/** What the streams read from, and how: the client and the parts of the config that concern them. Times in milliseconds. */
export type SourceEnv = {
  readonly api: Api
  readonly now: () => number
  /** Waits so many milliseconds before an answer is asked for again that cannot be right; none: does not wait. */
  readonly wait?: (millis: number) => Task<void>
  readonly startDate: number
  readonly lookback: number
  /** The configured filters of the export; an absent one does not filter. */
  readonly filters: {
    readonly sources?: ReadonlyArray<number>
    readonly mentionTimeAfter?: string
    readonly mentionTimeBefore?: string
    readonly additionalFields: ReadonlyArray<string>
  }
  /** The share of a backfill that this process reads; none: all of it. */
  readonly partition: Option<BackfillPartition>
  readonly pageSize: number
  /** The most page requests in flight. */
  readonly concurrency: number
  readonly onUnknown: 'keep' | 'drop' | 'fail'
  /** What privacy does to the attributes of a resource, by their path within it. */
  readonly actions: Partial<Readonly<Record<ResourceName, Readonly<Record<string, PrivacyAction>>>>>
  /** The entities whose feedback operations 1 to 3 read. */
  readonly entities: {
    readonly persons: ReadonlyArray<string>
    readonly locations: ReadonlyArray<string>
    readonly entities: ReadonlyArray<string>
    readonly fromReviews: ReviewEntitySettings
  }
  readonly feedback: {
    readonly thresholds: {
      readonly minThreshold?: number
      readonly minSurveyCount?: number
      readonly minRatingCount?: number
      readonly minWordCount?: number
    }
    readonly additionalFields?: ReadonlyArray<string>
    readonly perPage: number
    /** How many days a summary covers. */
    readonly days: number
    readonly lookbackDays: number
  }
  readonly entityIndex: EntityIndex
  /** A list that stays empty is taken as empty although rows of it are known. */
  readonly acceptEmptyLists?: boolean
  /** None: the config asks for no audit. */
  readonly auditLedger?: AuditLedger
  /** Only the first page of a lookup is read, as a check needs. */
  readonly samplesLookups?: boolean
  /** The published lookup of sources; none: the reviews tell them. */
  readonly sourceLookup?: Pick<LookupListRequest, 'recordsPath' | 'paging' | 'query'>
}

/** Starts of the calendar months (UTC) after `from` and up to `to`, milliseconds. */
const monthsBetween = (from: number, to: number): ReadonlyArray<number> => {
  const first = new Date(from)
  const month = (n: number): number => Date.UTC(first.getUTCFullYear(), first.getUTCMonth() + n, 1)
  const last = new Date(to)
  const count = (last.getUTCFullYear() - first.getUTCFullYear()) * 12 + last.getUTCMonth() - first.getUTCMonth()
  return Array.from({ length: Math.max(0, count) }, (_, n) => month(n + 1))
}

/**
 * The windows of mention time that a process reads: every `count`th calendar month since the start date. So the processes
 * agree on the windows whenever each of them begins, and each gets old and new months. The first window is open to the
 * past, the last to the future; they overlap by a millisecond, since it is not known whether the bounds are inclusive.
 * Reviews without a mention time are in no window: the last process reads them.
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

/** The thresholds of a feedback request. `minRatingCount` is always sent, since the default of some services hides entities. */
export const toThresholds = ({ thresholds }: SourceEnv['feedback']): SourceEnv['feedback']['thresholds'] => ({
  minRatingCount: -1,
  ...thresholds,
})
