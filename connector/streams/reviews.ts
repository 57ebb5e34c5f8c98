import * as O from 'fp-ts/Option'
import * as t from 'io-ts'
import { DeletedReview, Review } from '../api'
import { defined, defineStream } from '../cdk'
import {
  type CutRecord,
  createCutter,
  createDeletedReviewFetcher,
  createReviewFetcher,
  type FetchPage,
} from '../export'
import { createExportReader, type ExportDefinition } from './export-reader'
import { digestEntitySelection, indexEntities } from './index-entities'
import { createReviewItem, type ReviewItem, reviewFieldTree } from './review-item'
import type { SourceEnv } from './source-env'
import { withSourceLookup } from './source-lookup'
import { UnknownAttributes } from './unknown-attributes'

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

/** The shared reader of all streams made from reviews. */
export const reviewExportReader = withSourceLookup(createExportReader(reviewExportOperation))

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

/** Operation 7, export deleted reviews. It only supports the filter by sources. */
export const deletionExportOperation: ExportDefinition<CutRecord> = {
  name: 'export deleted reviews',
  fetch: createDeletionFetcher,
  filters: ({ filters: { sources } }) => defined({ sources }),
  hasMentionTime: false,
  toItem: () => (record) => record,
  otherExport: () => reviewExportOperation,
}

export const deletionExportReader = createExportReader(deletionExportOperation)

export const deletedReviewsStream = defineStream({
  name: 'deleted_reviews',
  codec: DeletedReviewRecord,
  primaryKey: ['id'],
  cursor: 'modifiedTime',
  reader: deletionExportReader,
  project: (record: CutRecord) => [record],
})
