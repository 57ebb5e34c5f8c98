import type { ReviewItem } from '../review-item'
import type { Source } from '../source'

/** What a run has seen in the reviews so far, as `kind:id`; filled by the review export while it is read. */
export type Seen = { readonly keys: Set<string>; complete: boolean }

/** Notes the location and the provider that a review names, as the config wants them. */
export const notice = ({ entities: { fromReviews }, seen }: Source, item: ReviewItem): void => {
  const { location, provider } = item.review()
  if (fromReviews.locations && location?.id != null) seen.keys.add(`location:${location.id}`)
  const person = fromReviews.providers === 'none' ? null : provider?.[fromReviews.providers]
  if (person != null && person !== '') seen.keys.add(`person:${person}`)
}
