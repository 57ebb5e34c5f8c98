import type { Option } from 'fp-ts/Option'
import type { Task } from 'fp-ts/Task'
import type { Api } from '../api'
import type { PrivacyAction } from '../export'
import type { EntityIndex, ReviewEntitySettings } from './entity-index'
import type { BackfillPartition } from './partition'

/** A resource of the service that has attributes to hide; the paths of `privacy` begin with it. */
export type ResourceName = 'export' | 'comments' | 'transparency_reviews' | 'entity_ratings'

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
  readonly order: 'unspecified' | 'modified_time'
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
}
