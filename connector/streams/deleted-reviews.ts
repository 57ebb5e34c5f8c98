import * as t from 'io-ts'
import { cutter } from '../api/cut'
import { fetchDeletedReviews } from '../api/export'
import { DeletedReview } from '../api/model/review'
import type { Cut } from '../api/page'
import { stream } from '../cdk/stream'
import { exportReader } from './export'
import { Unknown } from './unknown'

/** What leaves for a deletion. */
export const DeletedReviewRecord = t.intersection([DeletedReview, Unknown], 'DeletedReviewRecord')

/** Operation 7, which can be narrowed by source alone. */
export const deletionExport = exportReader({
  name: 'export deleted reviews',
  fetch: ({ api, onUnknown }) =>
    fetchDeletedReviews(
      api,
      cutter({ codec: DeletedReview, list: 'reviews', key: 'id', cursor: 'modifiedTime', undeclared: onUnknown }),
    ),
  filters: ({ filters: { sources } }) => (sources === undefined ? {} : { sources }),
  hasMentionTime: false,
  item: () => (cut) => cut,
})

/** The deletions themselves. */
export const deletedReviews = stream({
  name: 'deleted_reviews',
  codec: DeletedReviewRecord,
  primaryKey: ['id'],
  cursor: 'modifiedTime',
  reader: deletionExport,
  project: (cut: Cut) => [cut],
})
