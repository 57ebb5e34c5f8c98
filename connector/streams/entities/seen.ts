import * as O from 'fp-ts/Option'
import { filterFrom } from '../../api/scan/cursor'
import type { ReviewItem } from '../review-item'
import type { Source } from '../source'

/** A scan of the reviews that was read to its end: from when on (milliseconds), and the state that goes on from there. */
export type Scanned = { readonly from: number; readonly state: unknown }

/** What a run has seen in the reviews so far, as `kind:id`; filled by the review export while it is read. */
export type Seen = { readonly keys: Set<string>; readonly scans: Scanned[] }

export const nothingSeen = (): Seen => ({ keys: new Set(), scans: [] })

/** Which entities the config wants of the reviews; none: no such. */
export const wantedOf = ({ entities: { fromReviews } }: Pick<Source, 'entities'>): O.Option<string> => {
  const { locations, providers } = fromReviews
  return locations || providers !== 'none' ? O.some(`${locations ? 'locations' : ''} ${providers}`) : O.none
}

/** Notes the location and the provider that a review names, as the config wants them. */
export const notice = ({ entities: { fromReviews }, seen }: Source, item: ReviewItem): void => {
  const { location, provider } = item.review()
  if (fromReviews.locations && location?.id != null) seen.keys.add(`location:${location.id}`)
  const person = fromReviews.providers === 'none' ? null : provider?.[fromReviews.providers]
  if (person != null && person !== '') seen.keys.add(`person:${person}`)
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
