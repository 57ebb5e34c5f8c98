import * as O from 'fp-ts/Option'
import {
  type CutRecord,
  createOffsetReader,
  digestFilters,
  type FieldOffsets,
  fieldText,
  filterFrom,
  hasField,
  rawFieldText,
  type ScanFilters,
} from '../export'

const namedFields = { id: 'value', reviewModifiedTime: 'value' } as const
/** A child record gets these members from its review; members of the same names that it already has are left out. */
const reviewKeyFields = { reviewId: 'value', reviewModifiedTime: 'value' } as const
const contentKeyFields = { ...reviewKeyFields, contentId: 'value' } as const

/** The fields of a review that streams read: a cutter must record their offsets. */
export const reviewFieldTree = {
  modifiedTime: 'value',
  location: namedFields,
  provider: { ...namedFields, npi: 'value' },
  source: namedFields,
  contents: [
    {
      ...reviewKeyFields,
      id: 'value',
      sentiments: [{ ...contentKeyFields, id: 'value', category: 'value', subCategory: 'value' }],
      liabilities: [{ ...contentKeyFields, liabilityId: 'value' }],
    },
  ],
  taskDetails: reviewKeyFields,
  engagements: [{ ...reviewKeyFields, position: 'value' }],
} as const

/** The fields of a review as offsets in its output text. Every attribute has its declared type or is null. */
export type ReviewFields = {
  readonly json: Uint8Array
  readonly members: ReviewMembers
  /** The contents that have an id: without one, neither a content nor its children have a key. */
  readonly contents: NonNullable<ReviewMembers['contents']>['elements']
  /** `"reviewModifiedTime":…`, as JSON text in latin1: the member that a child record gets. */
  readonly modifiedTimeMember: string
  /** `"reviewId":…,"reviewModifiedTime":…`: the review and the version that a child record belongs to. */
  readonly versionMembers: string
}
export type ReviewMembers = FieldOffsets<typeof reviewFieldTree>

/** A review of an export page; `readFields` locates its fields at the first call and keeps them. */
export type ReviewItem = { readonly record: CutRecord; readonly readFields: () => ReviewFields }

const locateFields = createOffsetReader(reviewFieldTree)

const readReviewFields = (record: CutRecord): ReviewFields => {
  const { json } = record
  const members = locateFields(record)
  const { modifiedTime } = members
  const contents = (members.contents?.elements ?? []).filter(({ members: { id } }) => hasField(json, id))
  const modifiedTimeMember = `"reviewModifiedTime":${modifiedTime === undefined ? 'null' : rawFieldText(json, modifiedTime)}`
  return {
    json,
    members,
    contents,
    modifiedTimeMember,
    versionMembers: `"reviewId":${record.id},${modifiedTimeMember}`,
  }
}

export const createReviewItem = (record: CutRecord): ReviewItem => {
  let fields: ReviewFields | undefined
  return {
    record,
    readFields: () => {
      fields ??= readReviewFields(record)
      return fields
    },
  }
}

/** Which entities are taken from the reviews: their locations, and their providers by which attribute. */
export type ReviewEntitySettings = { readonly locations: boolean; readonly providers: 'none' | 'id' | 'npi' }

/** A scan of the reviews that was read to its end: the time it began at (milliseconds), and the state after it. */
export type CompleteScan = { readonly from: number; readonly state: unknown }

/** The entities that a run has found in the reviews so far, as `kind:id`; the review export adds to it as it is read. */
export type EntityIndex = { readonly keys: Set<string>; readonly completeScans: CompleteScan[] }

export const createEntityIndex = (): EntityIndex => ({ keys: new Set(), completeScans: [] })

/** The parts of a `SourceEnv` that concern the index. */
type IndexEnv = {
  readonly startDate: number
  readonly lookback: number
  readonly filters: ScanFilters
  readonly entities: { readonly fromReviews: ReviewEntitySettings }
  readonly entityIndex: EntityIndex
}

/** A digest of which entities the config takes from which reviews; none if it takes no entities from reviews. */
export const digestEntitySelection = ({
  entities: { fromReviews },
  filters,
}: Pick<IndexEnv, 'entities' | 'filters'>): O.Option<string> => {
  const { locations, providers } = fromReviews
  return locations || providers !== 'none'
    ? O.some(`${locations ? 'locations' : ''} ${providers} ${digestFilters(filters)}`)
    : O.none
}

/** Adds a review's location and provider to the index, as far as the config takes them. */
export const indexEntities = (
  { entities: { fromReviews }, entityIndex }: Pick<IndexEnv, 'entities' | 'entityIndex'>,
  { readFields }: ReviewItem,
): void => {
  const { json, members } = readFields()
  const { location, provider } = members
  const locationId = location?.members.id
  if (fromReviews.locations && hasField(json, locationId))
    entityIndex.keys.add(`location:${fieldText(json, locationId)}`)
  const providerField = fromReviews.providers === 'none' ? undefined : provider?.members[fromReviews.providers]
  const providerId = hasField(json, providerField) ? fieldText(json, providerField) : ''
  if (providerId.trim() !== '') entityIndex.keys.add(`person:${providerId}`)
}

/** The scan of this run that covers everything since `slack` (milliseconds) before the lookback of a cursor. */
export const findScanSince = (
  { startDate, lookback, entityIndex }: Pick<IndexEnv, 'startDate' | 'lookback' | 'entityIndex'>,
  cursor: O.Option<number>,
  slack: number,
): O.Option<CompleteScan> => {
  const start = filterFrom(startDate, cursor, lookback + slack)
  return O.fromNullable(entityIndex.completeScans.find(({ from }) => from <= start))
}
