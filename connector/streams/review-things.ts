import * as t from 'io-ts'
import { carve, isThere, type Outline, type Place, rawAt, textAt } from '../api/cut/outline'
import { described, Instant, Int64, optional } from '../api/model/scalar'
import type { Row } from '../cdk/message'
import { stream } from '../cdk/stream'
import { distinct } from './distinct'
import { modified, type ReviewItem, type ReviewOutline } from './review-item'
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

/** Takes a thing by its key; `found` answers its object, and what of that stays behind. */
type Meet = (key: string, found: () => Thing) => void
type Thing = { readonly json: Uint8Array; readonly object: Place; readonly without?: Place | undefined }
type Members = ReviewOutline['members']

/** What a review names, each once a run and again only where a newer review shows it changed. */
const named = (find: (review: Members, json: Uint8Array, meet: Meet) => void) => () => {
  const unseen = distinct()
  return ({ cut, outline }: ReviewItem): ReadonlyArray<Row> => {
    const rows: Row[] = []
    find(outline().members, cut.json, (key, found) => {
      if (!unseen(key, cut.modifiedTime, () => rawAt(found().json, found().object))) return
      const { json, object, without } = found()
      rows.push({ json: carve(json, object, [without], modified(cut, outline())) })
    })
    return rows
  }
}

type Named = Outline<{ readonly id: 'value'; readonly reviewModifiedTime: 'value' }>

const one = (object: Named | undefined, json: Uint8Array, meet: Meet): void => {
  const { id, reviewModifiedTime } = object?.members ?? {}
  if (object !== undefined && isThere(json, id))
    meet(rawAt(json, id), () => ({ json, object, without: reviewModifiedTime }))
}

const shared = { cursor: 'reviewModifiedTime', reader: reviewExport } as const

export const locations = stream({
  ...shared,
  name: 'locations',
  codec: Location,
  primaryKey: ['id'],
  projector: named(({ location }, json, meet) => one(location, json, meet)),
})

export const providers = stream({
  ...shared,
  name: 'providers',
  codec: Provider,
  primaryKey: ['id'],
  projector: named(({ provider }, json, meet) => one(provider, json, meet)),
})

export const sources = stream({
  ...shared,
  name: 'sources',
  codec: ReviewSource,
  primaryKey: ['id'],
  projector: named(({ source }, json, meet) => one(source, json, meet)),
})

export const categories = stream({
  ...shared,
  name: 'categories',
  codec: Category,
  primaryKey: ['category', 'subCategory'],
  projector: named(({ contents }, json, meet) => {
    for (const content of contents?.elements ?? [])
      for (const { members } of content.members.sentiments?.elements ?? [])
        if (isThere(json, members.category)) {
          const key = `{"category":${nameAt(json, members.category)},"subCategory":${nameAt(json, members.subCategory)}}`
          meet(key, () => ({ json: Buffer.from(key, 'latin1'), object: { key: 0, from: 0, to: key.length } }))
        }
  }),
})

/** A string as JSON text, the same whichever way the service escapes it (latin1, as `rawAt`). */
const nameAt = (json: Uint8Array, at: Place | undefined): string => {
  if (!isThere(json, at)) return '""'
  const raw = rawAt(json, at)
  return raw.includes('\\') ? Buffer.from(JSON.stringify(textAt(json, at))).toString('latin1') : raw
}
