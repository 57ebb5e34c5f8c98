import type { Option } from 'fp-ts/Option'
import * as O from 'fp-ts/Option'
import type { Api } from '../api'
import { digestFilters, fieldText, filterFrom, hasField, type PrivacyAction } from '../export'
import type { BackfillPartition } from './partition'
import type { ReviewItem } from './review-item'

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

/** A scan of the reviews that was read to its end: from when on (milliseconds), and the state that goes on from there. */
export type CompleteScan = { readonly from: number; readonly state: unknown }

/** What a run has seen in the reviews so far, as `kind:id`; filled by the review export while it is read. */
export type EntityIndex = { readonly keys: Set<string>; readonly completeScans: CompleteScan[] }

export const createEntityIndex = (): EntityIndex => ({ keys: new Set(), completeScans: [] })

/** Which entities the config wants of which reviews; none: no such. */
export const digestEntitySelection = ({
  entities: { fromReviews },
  filters,
}: Pick<SourceEnv, 'entities' | 'filters'>): O.Option<string> => {
  const { locations, providers } = fromReviews
  return locations || providers !== 'none'
    ? O.some(`${locations ? 'locations' : ''} ${providers} ${digestFilters(filters)}`)
    : O.none
}

/** Notes the location and the provider that a review names, as the config wants them. */
export const indexEntities = (
  { entities: { fromReviews }, entityIndex }: SourceEnv,
  { readFields }: ReviewItem,
): void => {
  const { json, members } = readFields()
  const { location, provider } = members
  const place = location?.members.id
  if (fromReviews.locations && hasField(json, place)) entityIndex.keys.add(`location:${fieldText(json, place)}`)
  const person = fromReviews.providers === 'none' ? undefined : provider?.members[fromReviews.providers]
  const name = hasField(json, person) ? fieldText(json, person) : ''
  if (name !== '') entityIndex.keys.add(`person:${name}`)
}

/** The scan of this run that saw everything since a cursor, of which `slack` more is to be read back; milliseconds. */
export const findScanSince = (
  { startDate, lookback, entityIndex }: SourceEnv,
  cursor: O.Option<number>,
  slack: number,
): O.Option<CompleteScan> => {
  const needed = filterFrom(startDate, cursor, lookback + slack)
  return O.fromNullable(entityIndex.completeScans.find(({ from }) => from <= needed))
}
