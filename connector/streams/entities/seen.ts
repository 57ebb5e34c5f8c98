import * as O from 'fp-ts/Option'
import { isThere, textAt } from '../../api/cut/carve'
import { filterFrom } from '../../api/scan/cursor'
import { filtersDigest } from '../../api/scan/marker'
import type { ReviewItem } from '../review-item'
import type { Source } from '../source'

/** A scan of the reviews that was read to its end: from when on (milliseconds), and the state that goes on from there. */
export type Scanned = { readonly from: number; readonly state: unknown }

/** What a run has seen in the reviews so far, as `kind:id`; filled by the review export while it is read. */
export type Seen = { readonly keys: Set<string>; readonly scans: Scanned[] }

export const nothingSeen = (): Seen => ({ keys: new Set(), scans: [] })

/** Which entities the config wants of which reviews; none: no such. */
export const wantedOf = ({
  entities: { fromReviews },
  filters,
}: Pick<Source, 'entities' | 'filters'>): O.Option<string> => {
  const { locations, providers } = fromReviews
  return locations || providers !== 'none'
    ? O.some(`${locations ? 'locations' : ''} ${providers} ${filtersDigest(filters)}`)
    : O.none
}

/** Notes the location and the provider that a review names, as the config wants them. */
export const notice = ({ entities: { fromReviews }, seen }: Source, { look }: ReviewItem): void => {
  const { json, members } = look()
  const { location, provider } = members
  const place = location?.members.id
  if (fromReviews.locations && isThere(json, place)) seen.keys.add(`location:${textAt(json, place)}`)
  const person = fromReviews.providers === 'none' ? undefined : provider?.members[fromReviews.providers]
  const name = isThere(json, person) ? textAt(json, person) : ''
  if (name !== '') seen.keys.add(`person:${name}`)
}

/** The scan of this run that saw everything since a cursor, of which `slack` more is to be read back; milliseconds. */
export const scanSince = (
  { startDate, lookback, seen }: Source,
  cursor: O.Option<number>,
  slack: number,
): O.Option<Scanned> => {
  const needed = filterFrom(startDate, cursor, lookback + slack)
  return O.fromNullable(seen.scans.find(({ from }) => from <= needed))
}
