import * as t from 'io-ts'
import { carve, isThere, type Outline, type Place, rawAt, textAt } from '../api/cut/outline'
import { described, Instant, Int64, optional } from '../api/model/scalar'
import type { Row } from '../cdk/message'
import { stream } from '../cdk/stream'
import { distinct } from './distinct'
import type { ReviewItem, ReviewOutline } from './review-item'
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

/** A thing that a review names: its key, its object, and what of that stays behind. */
type Thing = {
  readonly key: string
  readonly json: Uint8Array
  readonly object: Place
  readonly without?: ReadonlyArray<Place | undefined>
}

/** What a review names, each once a run and again only where a newer review shows it changed. */
const named = (things: (review: ReviewOutline['members'], json: Uint8Array) => ReadonlyArray<Thing>) => () => {
  const unseen = distinct()
  return ({ cut: { json, modifiedTime }, outline }: ReviewItem): ReadonlyArray<Row> => {
    const { members } = outline()
    return things(members, json).flatMap((thing) => {
      if (!unseen(thing.key, modifiedTime, () => rawAt(thing.json, thing.object))) return []
      const version = `"reviewModifiedTime":"${members.modifiedTime === undefined ? '' : textAt(json, members.modifiedTime)}"`
      return [{ json: carve(thing.json, thing.object, thing.without ?? [], version) }]
    })
  }
}

type Named = Outline<{ readonly id: 'value'; readonly reviewModifiedTime: 'value' }>

const one = (object: Named | undefined, json: Uint8Array): ReadonlyArray<Thing> => {
  const { id, reviewModifiedTime } = object?.members ?? {}
  return object === undefined || !isThere(json, id)
    ? []
    : [{ key: textAt(json, id), json, object, without: [reviewModifiedTime] }]
}

const shared = { cursor: 'reviewModifiedTime', reader: reviewExport } as const

export const locations = stream({
  ...shared,
  name: 'locations',
  codec: Location,
  primaryKey: ['id'],
  projector: named(({ location }, json) => one(location, json)),
})

export const providers = stream({
  ...shared,
  name: 'providers',
  codec: Provider,
  primaryKey: ['id'],
  projector: named(({ provider }, json) => one(provider, json)),
})

export const sources = stream({
  ...shared,
  name: 'sources',
  codec: ReviewSource,
  primaryKey: ['id'],
  projector: named(({ source }, json) => one(source, json)),
})

export const categories = stream({
  ...shared,
  name: 'categories',
  codec: Category,
  primaryKey: ['category', 'subCategory'],
  projector: named(({ contents }, json) =>
    (contents?.elements ?? []).flatMap(({ members }) =>
      (members.sentiments?.elements ?? []).flatMap(({ members: { category, subCategory } }) =>
        isThere(json, category) ? [categoryOf(nameAt(json, category), nameAt(json, subCategory))] : [],
      ),
    ),
  ),
})

/** A string as JSON text, the same whichever way the service escapes it (latin1, as `rawAt`). */
const nameAt = (json: Uint8Array, at: Place | undefined): string => {
  if (!isThere(json, at)) return '""'
  const raw = rawAt(json, at)
  return raw.includes('\\') ? Buffer.from(JSON.stringify(textAt(json, at))).toString('latin1') : raw
}

/** Both as JSON texts. */
const categoryOf = (category: string, subCategory: string): Thing => {
  const key = `{"category":${category},"subCategory":${subCategory}}`
  const json = Buffer.from(key, 'latin1')
  return { key, json, object: { key: 0, from: 0, to: json.length } }
}
