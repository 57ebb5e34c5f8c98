import * as O from 'fp-ts/Option'
import * as t from 'io-ts'
import { DeletedReview, Review } from '../api'
import { defined, defineStream } from '../cdk'
import {
  type CutRecord,
  createCutter,
  createDeletedReviewFetcher,
  createOffsetReader,
  createReviewFetcher,
  type ExportFilters,
  type FetchPage,
  type FieldOffsets,
  fieldText,
  hasField,
  rawFieldText,
} from '../export'
import { digestFilters, filterFrom } from '../reading'
import { createExportReader, type ExportDefinition } from './export-reader'
import type { CompleteScan, EntityIndex, ReviewEntitySettings, SourceEnv } from './source-env'
import { withSourceLookup } from './source-lookup'
import { UnknownAttributes } from './warnings'

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
  const modifiedTimeMember = `"reviewModifiedTime":${modifiedTime === undefined ? 'null' : rawFieldText(json, modifiedTime)}`
  return {
    json,
    members,
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

/** The parts of a `SourceEnv` that concern the index. */
type IndexEnv = {
  readonly startDate: number
  readonly lookback: number
  readonly filters: ExportFilters
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

/** A record of `reviews`: the declared attributes of a review, and those that are not declared. */
const ReviewRecord = t.intersection([Review, UnknownAttributes], 'ReviewRecord')

/** Operation 6, export reviews. */
export const reviewExportOperation: ExportDefinition<ReviewItem> = {
  name: 'export reviews',
  fetch: (source, streams) => {
    const { api, onUnknown, actions } = source
    return createReviewFetcher(
      api,
      createCutter({
        codec: Review,
        list: 'reviews',
        primaryKey: 'id',
        cursor: 'modifiedTime',
        aliases: { engagement: 'engagements' },
        undeclared: onUnknown,
        ...defined({ actions: actions.export }),
        fields:
          streams.some((name) => name !== 'reviews') || O.isSome(digestEntitySelection(source))
            ? reviewFieldTree
            : undefined,
      }),
    )
  },
  filters: ({ filters }) => filters,
  hasMentionTime: true,
  toItem: (source) => {
    if (O.isNone(digestEntitySelection(source))) return createReviewItem
    return (record) => {
      const item = createReviewItem(record)
      indexEntities(source, item)
      return item
    }
  },
  onScanEnd: ({ entityIndex }, completeScan) => {
    entityIndex.completeScans.push(completeScan)
  },
  otherExport: () => deletionExportOperation,
}

/** The one reader of all streams that are made of reviews. */
export const reviewExportReader = withSourceLookup(createExportReader(reviewExportOperation))

/** The reviews themselves. */
export const reviewsStream = defineStream({
  name: 'reviews',
  codec: ReviewRecord,
  primaryKey: ['id'],
  cursor: 'modifiedTime',
  reader: reviewExportReader,
  derivation: { _tag: 'record' },
  project: ({ record }: ReviewItem) => [record],
})

/** A record of `deleted_reviews`. */
const DeletedReviewRecord = t.intersection([DeletedReview, UnknownAttributes], 'DeletedReviewRecord')

/** Fetches pages of operation 7, export deleted reviews, cut into records. */
export const createDeletionFetcher = ({ api, onUnknown }: Pick<SourceEnv, 'api' | 'onUnknown'>): FetchPage =>
  createDeletedReviewFetcher(
    api,
    createCutter({
      codec: DeletedReview,
      list: 'reviews',
      primaryKey: 'id',
      cursor: 'modifiedTime',
      undeclared: onUnknown,
    }),
  )

/** Operation 7, export deleted reviews; of the filters it takes the sources alone. */
export const deletionExportOperation: ExportDefinition<CutRecord> = {
  name: 'export deleted reviews',
  fetch: createDeletionFetcher,
  filters: ({ filters: { sources } }) => defined({ sources }),
  hasMentionTime: false,
  toItem: () => (record) => record,
  otherExport: () => reviewExportOperation,
}

export const deletionExportReader = createExportReader(deletionExportOperation)

/** The deletions themselves. */
export const deletedReviewsStream = defineStream({
  name: 'deleted_reviews',
  codec: DeletedReviewRecord,
  primaryKey: ['id'],
  cursor: 'modifiedTime',
  reader: deletionExportReader,
  project: (record: CutRecord) => [record],
})
