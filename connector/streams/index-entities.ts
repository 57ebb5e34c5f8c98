import * as O from 'fp-ts/Option'
import { type ExportFilters, fieldText, hasField } from '../export'
import { digestFilters, filterFrom } from '../reading'
import type { CompleteScan, EntityIndex } from './entity-index'
import type { ReviewItem } from './review-item'
import type { ReviewEntitySettings } from './source-env'

/** The parts of a `SourceEnv` that concern the index. */
type IndexEnv = {
  readonly startDate: number
  readonly lookback: number
  readonly filters: ExportFilters
  readonly entities: { readonly fromReviews: ReviewEntitySettings }
  readonly entityIndex: EntityIndex
}

/** A digest of which entities the config takes from which reviews; undefined if it takes none. */
export const digestEntitySelection = ({
  entities: { fromReviews },
  filters,
}: Pick<IndexEnv, 'entities' | 'filters'>): O.Option<string> => {
  const { locations, providers } = fromReviews
  return locations || providers !== 'none'
    ? O.some(`${locations ? 'locations' : ''} ${providers} ${digestFilters(filters)}`)
    : O.none
}

/** Adds a review's location and provider to the index, as configured. */
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
