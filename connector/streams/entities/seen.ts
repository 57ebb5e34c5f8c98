import * as O from 'fp-ts/Option'
import { fieldText, hasField } from '../../api/cut/carve'
import { filterFrom } from '../../api/scan/cursor'
import { digestFilters } from '../../api/scan/marker'
import type { ReviewItem } from '../review-item'
import type { SourceEnv } from '../source'

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
