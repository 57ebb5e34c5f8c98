import * as t from 'io-ts'
import { describeAttribute, Instant, Int64, optionalAttributes } from '../api'
import { defineStream, type Row } from '../cdk'
import { createExtractor, hasField, type ObjectOffsets, rawFieldText } from '../export'
import type { ReviewItem, ReviewMembers } from './review-item'
import { reviewExportReader } from './reviews'

/** The most names or versions that a filter remembers. A forgotten one is sent again when it comes again. */
export const maxFilterEntries = 200_000

/**
 * Accepts the first version of each key, and then only versions with a later time and a different text, so never an
 * older version after a newer one. `time` in milliseconds.
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

export const reviewModifiedTime = describeAttribute('Last modification of the review it was read from')(Instant)
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
type DimensionObject = ObjectOffsets<{ readonly id: 'value'; readonly reviewModifiedTime: 'value' }>

/** An object that reviews name. Sent once in a run, and again only if a newer review shows that it has changed. */
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

export const dimensionStreamOptions = { cursor: 'reviewModifiedTime', reader: reviewExportReader } as const

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
