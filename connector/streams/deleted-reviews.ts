import * as t from 'io-ts'
import { DeletedReview } from '../api'
import { defineStream } from '../cdk'
import { type CutRecord, createCutter, createDeletedReviewFetcher } from '../export'
import { createExportReader } from './export-reader'
import { UnknownAttributes } from './record'

/** What leaves for a deletion. */
export const DeletedReviewRecord = t.intersection([DeletedReview, UnknownAttributes], 'DeletedReviewRecord')

/** Operation 7, which can be narrowed by source alone. */
export const deletionExportReader = createExportReader({
  name: 'export deleted reviews',
  fetch: ({ api, onUnknown }) =>
    createDeletedReviewFetcher(
      api,
      createCutter({
        codec: DeletedReview,
        list: 'reviews',
        primaryKey: 'id',
        cursor: 'modifiedTime',
        undeclared: onUnknown,
      }),
    ),
  filters: ({ filters: { sources } }) => (sources === undefined ? {} : { sources }),
  hasMentionTime: false,
  toItem: () => (cut) => cut,
})

/** The deletions themselves. */
export const deletedReviewsStream = defineStream({
  name: 'deleted_reviews',
  codec: DeletedReviewRecord,
  primaryKey: ['id'],
  cursor: 'modifiedTime',
  reader: deletionExportReader,
  project: (cut: CutRecord) => [cut],
})
