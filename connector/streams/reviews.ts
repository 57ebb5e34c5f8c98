import * as t from 'io-ts'
import { Review } from '../api/model/review'
import { described, optional } from '../api/model/scalar'
import type { Cut } from '../api/page'
import { stream } from '../cdk/stream'
import { reviewExport } from './export'

/** What leaves for a review: its declared attributes, and whatever else it brought. */
export const ReviewRecord = t.intersection(
  [
    Review,
    optional({
      unknown_attributes: described('Attributes the service sent that this version does not know, as they came')(
        t.UnknownRecord,
      ),
    }),
  ],
  'ReviewRecord',
)

/** Operation 6, whole. */
export const reviews = stream({
  name: 'reviews',
  codec: ReviewRecord,
  primaryKey: ['id'],
  cursor: 'modifiedTime',
  reader: reviewExport,
  project: (cut: Cut) => [cut],
})
