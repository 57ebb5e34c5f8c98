import * as t from 'io-ts'
import { DeletedReview } from '../api'
import { defined, defineStream } from '../cdk'
import { type CutRecord, createCutter, createDeletedReviewFetcher } from '../export'
import { createExportReader } from './export-reader'
import { UnknownAttributes } from './record'

/** A record of `deleted_reviews`. */
const DeletedReviewRecord = t.intersection([DeletedReview, UnknownAttributes], 'DeletedReviewRecord')

/** Operation 7, export deleted reviews; of the filters it takes the sources alone. */
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
  filters: ({ filters: { sources } }) => defined({ sources }),
  hasMentionTime: false,
  toItem: () => (record) => record,
})

/** The deletions themselves. */
export const deletedReviewsStream = defineStream({
  name: 'deleted_reviews',
  codec: DeletedReviewRecord,
  primaryKey: ['id'],
  cursor: 'modifiedTime',
  reader: deletionExportReader,
  project: (record: CutRecord) => [record],
})
