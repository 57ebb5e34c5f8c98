import * as t from 'io-ts'
import { carve, isThere, rawAt, textAt } from '../api/cut/carve'
import type { Outline, Place } from '../api/cut/outline'
import { described, Instant, Int64, optional } from '../api/model/scalar'
import type { Row } from '../cdk/message'
import { stream } from '../cdk/stream'
import { distinct, distinctPairs } from './distinct'
import type { Members, ReviewItem } from './review-item'
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

type Thing = Outline<{ readonly id: 'value'; readonly reviewModifiedTime: 'value' }>

/** What a review names, each once a run and again only where a newer review shows it changed. */
const named = (of: (review: Members) => Thing | undefined) => () => {
  const unseen = distinct()
  return ({ cut: { modifiedTime }, look }: ReviewItem): ReadonlyArray<Row> => {
    const { json, members, modified } = look()
    const thing = of(members)
    if (thing === undefined || !isThere(json, thing.members.id)) return []
    return unseen(rawAt(json, thing.members.id), modifiedTime, () => rawAt(json, thing))
      ? [carve(json, thing, [thing.members.reviewModifiedTime], modified)]
      : []
  }
}

const shared = { cursor: 'reviewModifiedTime', reader: reviewExport } as const

export const locations = stream({
  ...shared,
  name: 'locations',
  codec: Location,
  primaryKey: ['id'],
  projector: named(({ location }) => location),
})

export const providers = stream({
  ...shared,
  name: 'providers',
  codec: Provider,
  primaryKey: ['id'],
  projector: named(({ provider }) => provider),
})

export const sources = stream({
  ...shared,
  name: 'sources',
  codec: ReviewSource,
  primaryKey: ['id'],
  projector: named(({ source }) => source),
})

export const categories = stream({
  ...shared,
  name: 'categories',
  codec: Category,
  primaryKey: ['category', 'subCategory'],
  projector: () => {
    // The names are the key and all there is of it: a newer review cannot show it changed.
    const unseen = distinctPairs()
    return ({ look }: ReviewItem): ReadonlyArray<Row> => {
      const { json, members, modified } = look()
      const rows: Row[] = []
      for (const content of members.contents?.elements ?? [])
        for (const { members: names } of content.members.sentiments?.elements ?? []) {
          if (!isThere(json, names.category)) continue
          const category = nameAt(json, names.category)
          const subCategory = nameAt(json, names.subCategory)
          if (unseen(category, subCategory))
            rows.push({
              json: Buffer.from(`{"category":${category},"subCategory":${subCategory},${modified}}`, 'latin1'),
            })
        }
      return rows
    }
  },
})

/** A string as JSON text, the same whichever way the service escapes it (latin1, as `rawAt`). */
const nameAt = (json: Uint8Array, at: Place | undefined): string => {
  if (!isThere(json, at)) return '""'
  const raw = rawAt(json, at)
  return raw.includes('\\') ? Buffer.from(JSON.stringify(textAt(json, at))).toString('latin1') : raw
}
