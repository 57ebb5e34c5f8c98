import * as t from 'io-ts'
import { DeletedReview } from '../api/model/review'
import { described, optional } from '../api/model/scalar'
import type { Cut } from '../api/page'
import { stream } from '../cdk/stream'
import { deletionExport } from './export'

/** What leaves for a deletion. */
export const DeletedReviewRecord = t.intersection(
  [
    DeletedReview,
    optional({
      unknown_attributes: described('Attributes the service sent that this version does not know, as they came')(
        t.UnknownRecord,
      ),
    }),
  ],
  'DeletedReviewRecord',
)

/** Operation 7. */
export const deletedReviews = stream({
  name: 'deleted_reviews',
  codec: DeletedReviewRecord,
  primaryKey: ['id'],
  cursor: 'modifiedTime',
  reader: deletionExport,
  project: (cut: Cut) => [cut],
})
