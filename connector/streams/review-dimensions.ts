import * as t from 'io-ts'
import { describeAttribute, Instant, Int64, optionalAttributes } from '../api'
import { defineStream, type Row } from '../cdk'
import { extractObject, type FieldOffset, fieldText, hasField, type ObjectOffsets, rawFieldText } from '../export'
import type { ReviewItem, ReviewMembers } from './review-item'
import { reviewExportReader } from './reviews'

/** How many things are remembered; one that is forgotten and met again is sent again. */
const maxPairsAndVersions = 200_000

/** Lets a pair of names pass the first time it is met. */
export const createPairFilter = () => {
  const seen = new Map<string, Set<string>>()
  let size = 0
  return (first: string, second: string): boolean => {
    const held = seen.get(first)
    if (held?.has(second) === true) return false
    if (held === undefined) seen.set(first, new Set([second]))
    else held.add(second)
    size += 1
    if (size > maxPairsAndVersions) {
      seen.clear()
      size = 0
    }
    return true
  }
}

/**
 * Lets a thing pass the first time it is met, and again only with a later time and another text: never an older version
 * after a newer. `time` in milliseconds; `text` is what is compared.
 */
export const createVersionFilter = () => {
  const seen = new Map<string, { time: number; text: string }>()
  return (key: string, time: number, text: () => string): boolean => {
    const held = seen.get(key)
    if (held !== undefined && held.time >= time) return false
    const now = text()
    if (held === undefined) {
      seen.set(key, { time, text: now })
      if (seen.size > maxPairsAndVersions) seen.delete(seen.keys().next().value ?? '')
      return true
    }
    held.time = time
    if (held.text === now) return false
    held.text = now
    return true
  }
}

const reviewModifiedTime = describeAttribute('Last modification of the review it was read from')(Instant)
const dimensionProps = { reviewModifiedTime, id: describeAttribute('Identifier')(Int64) }
const displayName = describeAttribute('Display name')(t.string)

export const ReviewLocation = t.intersection(
  [t.type(dimensionProps), optionalAttributes({ name: displayName })],
  'Location',
)
export const ReviewProvider = t.intersection(
  [
    t.type(dimensionProps),
    optionalAttributes({ name: displayName, npi: describeAttribute('National provider identifier')(t.string) }),
  ],
  'Provider',
)
export const ReviewSource = t.intersection(
  [t.type(dimensionProps), optionalAttributes({ name: displayName })],
  'ReviewSource',
)
export const ReviewCategory = t.type(
  {
    category: describeAttribute('Category of the feature an opinion is about')(t.string),
    subCategory: describeAttribute('Its sub-category; an empty string where there is none')(t.string),
    reviewModifiedTime,
  },
  'Category',
)

type DimensionObject = ObjectOffsets<{ readonly id: 'value'; readonly reviewModifiedTime: 'value' }>

/** What a review names, each once a run and again only where a newer review shows it changed. */
const createDimensionProjector = (of: (review: ReviewMembers) => DimensionObject | undefined) => () => {
  const unseen = createVersionFilter()
  return ({ record: { modifiedTime }, readFields }: ReviewItem): ReadonlyArray<Row> => {
    const { json, members, modifiedTimeMember } = readFields()
    const thing = of(members)
    if (thing === undefined || !hasField(json, thing.members.id)) return []
    return unseen(rawFieldText(json, thing.members.id), modifiedTime, () => rawFieldText(json, thing))
      ? [extractObject(json, thing, [thing.members.reviewModifiedTime], modifiedTimeMember)]
      : []
  }
}

const dimensionStreamOptions = { cursor: 'reviewModifiedTime', reader: reviewExportReader } as const

export const locationsStream = defineStream({
  ...dimensionStreamOptions,
  name: 'locations',
  codec: ReviewLocation,
  primaryKey: ['id'],
  projector: createDimensionProjector(({ location }) => location),
})

export const providersStream = defineStream({
  ...dimensionStreamOptions,
  name: 'providers',
  codec: ReviewProvider,
  primaryKey: ['id'],
  projector: createDimensionProjector(({ provider }) => provider),
})

export const sourcesStream = defineStream({
  ...dimensionStreamOptions,
  name: 'sources',
  codec: ReviewSource,
  primaryKey: ['id'],
  projector: createDimensionProjector(({ source }) => source),
})

export const categoriesStream = defineStream({
  ...dimensionStreamOptions,
  name: 'categories',
  codec: ReviewCategory,
  primaryKey: ['category', 'subCategory'],
  projector: () => {
    // The names are the key and all there is of it: a newer review cannot show it changed.
    const unseen = createPairFilter()
    return ({ readFields }: ReviewItem): ReadonlyArray<Row> => {
      const { json, members, modifiedTimeMember } = readFields()
      const rows: Row[] = []
      for (const content of members.contents?.elements ?? [])
        for (const { members: names } of content.members.sentiments?.elements ?? []) {
          if (!hasField(json, names.category)) continue
          const category = readName(json, names.category)
          const subCategory = readName(json, names.subCategory)
          if (unseen(category, subCategory))
            rows.push({
              json: Buffer.from(
                `{"category":${category},"subCategory":${subCategory},${modifiedTimeMember}}`,
                'latin1',
              ),
            })
        }
      return rows
    }
  },
})

/** A string as JSON text, the same whichever way the service escapes it (latin1, as `rawAt`). */
const readName = (json: Uint8Array, at: FieldOffset | undefined): string => {
  if (!hasField(json, at)) return '""'
  const raw = rawFieldText(json, at)
  return raw.includes('\\') ? Buffer.from(JSON.stringify(fieldText(json, at))).toString('latin1') : raw
}
