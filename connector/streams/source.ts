import type { Option } from 'fp-ts/Option'
import type { Api } from '../api/api'
import type { PrivacyAction } from '../api/cut'
import type { EntityIndex } from './entities/seen'
import type { BackfillPartition } from './partition'

/** A resource of the service that has attributes to hide; paths of privacy begin with it. */
export type ResourceName = 'export' | 'comments' | 'transparency_reviews' | 'entity_ratings'

/** What the streams read from and how: the client and the parts of the config that concern them. Times in milliseconds. */
export type SourceEnv = {
  readonly api: Api
  readonly now: () => number
  readonly startDate: number
  readonly lookback: number
  /** The export filters asked for; what is left out is not filtered. */
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
  /** Pages under way at a time. */
  readonly concurrency: number
  readonly onUnknown: 'keep' | 'drop' | 'fail'
  /** What privacy does to the attributes of a resource, by path within it. */
  readonly actions: Partial<Readonly<Record<ResourceName, Readonly<Record<string, PrivacyAction>>>>>
  /** Whose feedback is read from operations 1 to 3. */
  readonly entities: {
    readonly persons: ReadonlyArray<string>
    readonly locations: ReadonlyArray<string>
    readonly entities: ReadonlyArray<string>
    readonly fromReviews: { readonly locations: boolean; readonly providers: 'none' | 'id' | 'npi' }
  }
  /** How it is read. */
  readonly feedback: {
    readonly thresholds: {
      readonly minThreshold?: number
      readonly minSurveyCount?: number
      readonly minRatingCount?: number
      readonly minWordCount?: number
    }
    readonly additionalFields?: ReadonlyArray<string>
    readonly perPage: number
    /** What a summary looks back on, days. */
    readonly days: number
    readonly lookbackDays: number
  }
  readonly entityIndex: EntityIndex
}
