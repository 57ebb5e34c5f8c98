import * as t from 'io-ts'
import { describeAttribute, Instant, Int64, optionalAttributes } from '../api'
import { defineStream, type Row } from '../cdk'
import { createExtractor, type FieldOffset, fieldText, hasField, type ObjectOffsets, rawFieldText } from '../export'
import type { ReviewItem, ReviewMembers } from './review-item'
import { reviewExportReader } from './reviews'

/** The most pairs or versions that a filter remembers; a forgotten one is sent again when it occurs again. */
const maxFilterEntries = 200_000

/** Accepts each pair of names once. */
export const createPairFilter = () => {
  const pairs = new Map<string, Set<string>>()
  let size = 0
  return (first: string, second: string): boolean => {
    const seconds = pairs.get(first)
    if (seconds?.has(second) === true) return false
    if (seconds === undefined) pairs.set(first, new Set([second]))
    else seconds.add(second)
    size += 1
    if (size > maxFilterEntries) {
      pairs.clear()
      size = 0
    }
    return true
  }
}

/**
 * Accepts the first version of each key, and then only versions with a later time and another text: never an older
 * version after a newer one. `time` in milliseconds.
 */
const createVersionFilter = () => {
  const versions = new Map<string, { time: number; text: string }>()
  return (key: string, time: number, readText: () => string): boolean => {
    const last = versions.get(key)
    if (last !== undefined && last.time >= time) return false
    const text = readText()
    if (last === undefined) {
      versions.set(key, { time, text })
      if (versions.size > maxFilterEntries) versions.delete(versions.keys().next().value ?? '')
      return true
    }
    last.time = time
    if (last.text === text) return false
    last.text = text
    return true
  }
}

const reviewModifiedTime = describeAttribute('Last modification of the review it was read from')(Instant)
const dimensionProps = { reviewModifiedTime, id: describeAttribute('Identifier')(Int64) }
const displayName = describeAttribute('Display name')(t.string)

const ReviewLocation = t.intersection([t.type(dimensionProps), optionalAttributes({ name: displayName })], 'Location')
const ReviewProvider = t.intersection(
  [
    t.type(dimensionProps),
    optionalAttributes({ name: displayName, npi: describeAttribute('National provider identifier')(t.string) }),
  ],
  'Provider',
)

const ReviewSource = t.intersection([t.type(dimensionProps), optionalAttributes({ name: displayName })], 'ReviewSource')
const ReviewCategory = t.intersection(
  [
    t.type({
      reviewModifiedTime,
      id: describeAttribute('The category, and after " > " the sub-category where there is one; never empty')(t.string),
    }),
    optionalAttributes({
      category: describeAttribute('Category of the feature an opinion is about')(t.string),
      subCategory: describeAttribute('Its sub-category')(t.string),
    }),
  ],
  'Category',
)

type DimensionObject = ObjectOffsets<{ readonly id: 'value'; readonly reviewModifiedTime: 'value' }>

/** An object that reviews name: sent once in a run, and again only if a newer review shows that it has changed. */
const createDimensionProjector = (findObject: (review: ReviewMembers) => DimensionObject | undefined) => () => {
  const isNewVersion = createVersionFilter()
  const extractObject = createExtractor()
  return ({ record: { modifiedTime }, readFields }: ReviewItem): ReadonlyArray<Row> => {
    const { json, members, modifiedTimeMember } = readFields()
    const object = findObject(members)
    if (object === undefined || !hasField(json, object.members.id)) return []
    return isNewVersion(rawFieldText(json, object.members.id), modifiedTime, () => rawFieldText(json, object))
      ? [extractObject(json, object, [object.members.reviewModifiedTime], modifiedTimeMember)]
      : []
  }
}

const dimensionStreamOptions = { cursor: 'reviewModifiedTime', reader: reviewExportReader } as const

export const locationsStream = defineStream({
  ...dimensionStreamOptions,
  name: 'locations',
  codec: ReviewLocation,
  primaryKey: ['id'],
  derivation: { _tag: 'dimension', member: 'location' },
  projector: createDimensionProjector(({ location }) => location),
})

export const providersStream = defineStream({
  ...dimensionStreamOptions,
  name: 'providers',
  codec: ReviewProvider,
  primaryKey: ['id'],
  derivation: { _tag: 'dimension', member: 'provider' },
  projector: createDimensionProjector(({ provider }) => provider),
})

export const sourcesStream = defineStream({
  ...dimensionStreamOptions,
  name: 'sources',
  codec: ReviewSource,
  primaryKey: ['id'],
  derivation: { _tag: 'dimension', member: 'source' },
  projector: createDimensionProjector(({ source }) => source),
})

export const categoriesStream = defineStream({
  ...dimensionStreamOptions,
  name: 'categories',
  codec: ReviewCategory,
  primaryKey: ['id'],
  derivation: {
    _tag: 'pair',
    steps: [
      { name: 'contents', isList: true },
      { name: 'sentiments', isList: true },
    ],
    names: ['category', 'subCategory'],
  },
  projector: () => {
    // A category is nothing but its key, so a newer review cannot show that it has changed.
    const isNewPair = createPairFilter()
    return ({ readFields }: ReviewItem): ReadonlyArray<Row> => {
      const { json, members, modifiedTimeMember } = readFields()
      const rows: Row[] = []
      for (const content of members.contents?.elements ?? [])
        for (const { members: names } of content.members.sentiments?.elements ?? []) {
          const category = readName(json, names.category)
          const subCategory = readName(json, names.subCategory)
          if (category === noName && subCategory === noName) continue
          if (isNewPair(category, subCategory))
            rows.push({
              json: Buffer.from(
                `{"id":"${categoryId(category, subCategory)}",` +
                  `"category":${category},"subCategory":${subCategory},${modifiedTimeMember}}`,
                'latin1',
              ),
            })
        }
      return rows
    }
  },
})

const noName = 'null'
const mayBeBlank = /^"[\s\x80-\xff]*"$/

/**
 * The key of a category: one text that is never empty, since some destinations take an empty text for null. Both names
 * are JSON texts, of which one may be null; a backslash before each ">" of a name keeps different pairs different.
 */
const categoryId = (category: string, subCategory: string): string => {
  const [first, second] = [category, subCategory].map((name) =>
    name === noName ? '' : name.slice(1, -1).replaceAll(/\\\\|>/g, (found) => `\\\\${found}`),
  )
  return [first, ...(second === '' ? [] : ['>', second])].filter((part) => part !== '').join(' ')
}

/**
 * A name as JSON text (latin1, as `rawFieldText` gives it), the same however the service escapes it; null if it is
 * absent or blank.
 */
const readName = (json: Uint8Array, at: FieldOffset | undefined): string => {
  if (!hasField(json, at)) return noName
  const raw = rawFieldText(json, at)
  // Of spaces beyond ASCII, a byte of each is no space.
  if (!raw.includes('\\')) return mayBeBlank.test(raw) && fieldText(json, at).trim() === '' ? noName : raw
  const text = fieldText(json, at)
  return text.trim() === '' ? noName : Buffer.from(JSON.stringify(text)).toString('latin1')
}
