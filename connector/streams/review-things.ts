import * as t from 'io-ts'
import type { Review } from '../api/model/review'
import { described, Instant, Int64, optional } from '../api/model/scalar'
import { stream } from '../cdk/stream'
import { distinct } from './distinct'
import type { ReviewItem } from './review-item'
import { reviewExport } from './reviews'

const reviewModifiedTime = described('Last modification of the review it was read from')(Instant)
const thing = { reviewModifiedTime, id: described('Identifier')(Int64) }
const name = described('Display name')(t.string)

export const Location = t.intersection([t.type(thing), optional({ name })], 'Location')
export const Provider = t.intersection(
  [t.type(thing), optional({ name, npi: described('National provider identifier')(t.string) })],
  'Provider',
)
export const ReviewSource = t.intersection([t.type(thing), optional({ name })], 'ReviewSource')
export const Category = t.type(
  {
    category: described('Category of the feature an opinion is about')(t.string),
    subCategory: described('Its sub-category; an empty string where there is none')(t.string),
    reviewModifiedTime,
  },
  'Category',
)

/** What a review names, each once a run and again only where a newer review shows it changed. */
const named = (things: (review: Review) => ReadonlyArray<readonly [key: string, thing: object]>) => () => {
  const unseen = distinct()
  return (item: ReviewItem) => {
    const review = item.review()
    return things(review).flatMap(([key, value]) =>
      unseen(key, item.cut.modifiedTime, { ...value, reviewModifiedTime: review.modifiedTime }, value),
    )
  }
}

const one = (value: { readonly id?: Int64 | null } | null | undefined): ReadonlyArray<readonly [string, object]> =>
  value?.id == null ? [] : [[String(value.id), value]]

const shared = { cursor: 'reviewModifiedTime', reader: reviewExport } as const

export const locations = stream({
  ...shared,
  name: 'locations',
  codec: Location,
  primaryKey: ['id'],
  projector: named(({ location }) => one(location)),
})

export const providers = stream({
  ...shared,
  name: 'providers',
  codec: Provider,
  primaryKey: ['id'],
  projector: named(({ provider }) => one(provider)),
})

export const sources = stream({
  ...shared,
  name: 'sources',
  codec: ReviewSource,
  primaryKey: ['id'],
  projector: named(({ source }) => one(source)),
})

export const categories = stream({
  ...shared,
  name: 'categories',
  codec: Category,
  primaryKey: ['category', 'subCategory'],
  projector: named(({ contents }) =>
    (contents ?? []).flatMap((content) =>
      (content?.sentiments ?? []).flatMap((sentiment) => {
        if (sentiment?.category == null) return []
        const value = { category: sentiment.category, subCategory: sentiment.subCategory ?? '' }
        return [[JSON.stringify(value), value] as const]
      }),
    ),
  ),
})
