import type { Option } from 'fp-ts/Option'
import type { Task } from 'fp-ts/Task'
import type { Api, LookupListRequest } from '../api'
import type { PrivacyAction } from '../export'
import type { EntityIndex } from './entity-index'
import type { BackfillPartition } from './partition'

/** A resource of the service that has attributes to hide; the paths of `privacy` begin with it. */
export type ResourceName = 'export' | 'comments' | 'transparency_reviews' | 'entity_ratings' | 'managed_locations'

/** How a scan ended: its cutoff in milliseconds, and if it was certified. */
export type ScanEnd = { readonly cutoff: number; readonly isCertified: boolean; readonly isResumed: boolean }

/** What the readers of a run report about the rows they send. */
export type RunSummary = {
  /** By stream. */
  readonly scanEnds: Map<string, ScanEnd>
  /** For `reviews`: the time of the deletion that was sent, by id; milliseconds. */
  deletedTimes: ReadonlyMap<string, number>
  /** The records of `sync_audit`, for the completed streams. */
  readonly records: object[]
}

/** Which entities are taken from the reviews: their locations, and their providers by which attribute. */
export type ReviewEntitySettings = { readonly locations: boolean; readonly providers: 'none' | 'id' | 'npi' }

/**
 * What the streams read from, and how: the client and the parts of the config that concern them. Times in milliseconds.
 */
export type SourceEnv = {
  readonly api: Api
  readonly now: () => number
  /** Waits so many milliseconds before an implausible answer is requested again; without it, does not wait. */
  readonly wait?: (millis: number) => Task<void>
  readonly startDate: number
  readonly lookback: number
  /** The configured filters of the export. An absent one does not filter. */
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
  /** A list that stays empty counts as empty even if rows of it are known. */
  readonly acceptEmptyLists?: boolean
  /** None: the config requests no audit. */
  readonly runSummary?: RunSummary
  /** Reads only the first page of a lookup, which is enough for a check. */
  readonly samplesLookups?: boolean
  /** The published lookup of sources; undefined: sources come from the reviews. */
  readonly sourceLookup?: Pick<LookupListRequest, 'recordsPath' | 'paging' | 'query'>
}

/**
 * The thresholds of a feedback request. `minRatingCount` is always sent, since some services hide entities by default.
 */
export const toThresholds = ({ thresholds }: SourceEnv['feedback']): SourceEnv['feedback']['thresholds'] => ({
  minRatingCount: -1,
  ...thresholds,
})
