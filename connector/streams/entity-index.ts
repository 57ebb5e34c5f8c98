import * as O from 'fp-ts/Option'
import { digestFilters, fieldText, filterFrom, hasField, type ScanFilters } from '../export'
import type { ReviewItem } from './review-item'

/** Which entities are taken from the reviews: their locations, and their providers by which attribute. */
export type ReviewEntitySettings = { readonly locations: boolean; readonly providers: 'none' | 'id' | 'npi' }

/** A scan of the reviews that was read to its end: the time it began at (milliseconds), and the state after it. */
export type CompleteScan = { readonly from: number; readonly state: unknown }

/** The entities that a run has found in the reviews so far, as `kind:id`; the review export adds to it as it is read. */
export type EntityIndex = { readonly keys: Set<string>; readonly completeScans: CompleteScan[] }

export const createEntityIndex = (): EntityIndex => ({ keys: new Set(), completeScans: [] })

/** The parts of a `SourceEnv` that concern the index. */
type IndexEnv = {
  readonly startDate: number
  readonly lookback: number
  readonly filters: ScanFilters
  readonly entities: { readonly fromReviews: ReviewEntitySettings }
  readonly entityIndex: EntityIndex
}

/** A digest of which entities the config takes from which reviews; none if it takes no entities from reviews. */
export const digestEntitySelection = ({
  entities: { fromReviews },
  filters,
}: Pick<IndexEnv, 'entities' | 'filters'>): O.Option<string> => {
  const { locations, providers } = fromReviews
  return locations || providers !== 'none'
    ? O.some(`${locations ? 'locations' : ''} ${providers} ${digestFilters(filters)}`)
    : O.none
}

/** Adds a review's location and provider to the index, as far as the config takes them. */
export const indexEntities = (
  { entities: { fromReviews }, entityIndex }: Pick<IndexEnv, 'entities' | 'entityIndex'>,
  { readFields }: ReviewItem,
): void => {
  const { json, members } = readFields()
  const { location, provider } = members
  const locationId = location?.members.id
  if (fromReviews.locations && hasField(json, locationId))
    entityIndex.keys.add(`location:${fieldText(json, locationId)}`)
  const providerField = fromReviews.providers === 'none' ? undefined : provider?.members[fromReviews.providers]
  const providerId = hasField(json, providerField) ? fieldText(json, providerField) : ''
  if (providerId.trim() !== '') entityIndex.keys.add(`person:${providerId}`)
}

/** The scan of this run that covers everything since `slack` (milliseconds) before the lookback of a cursor. */
export const findScanSince = (
  { startDate, lookback, entityIndex }: Pick<IndexEnv, 'startDate' | 'lookback' | 'entityIndex'>,
  cursor: O.Option<number>,
  slack: number,
): O.Option<CompleteScan> => {
  const start = filterFrom(startDate, cursor, lookback + slack)
  return O.fromNullable(entityIndex.completeScans.find(({ from }) => from <= start))
}
