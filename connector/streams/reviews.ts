import * as O from 'fp-ts/Option'
import * as t from 'io-ts'
import { cutter } from '../api/cut'
import { fetchReviews } from '../api/export'
import { Review } from '../api/model/review'
import { stream } from '../cdk/stream'
import { notice, wantedOf } from './entities/seen'
import { type Export, exportReader } from './export'
import { looked, type ReviewItem, reviewItem } from './review-item'
import { Unknown } from './unknown'

/** What leaves for a review: its declared attributes, and whatever else it brought. */
export const ReviewRecord = t.intersection([Review, Unknown], 'ReviewRecord')

/** Operation 6. */
export const reviewOperation: Export<ReviewItem> = {
  name: 'export reviews',
  fetch: (source, streams) => {
    const { api, onUnknown, actions } = source
    return fetchReviews(
      api,
      cutter({
        codec: Review,
        list: 'reviews',
        key: 'id',
        cursor: 'modifiedTime',
        rename: { engagement: 'engagements' },
        undeclared: onUnknown,
        ...(actions.export === undefined ? {} : { actions: actions.export }),
        wanted: streams.some((name) => name !== 'reviews') || O.isSome(wantedOf(source)) ? looked : undefined,
      }),
    )
  },
  filters: ({ filters }) => filters,
  hasMentionTime: true,
  item: (source) => {
    if (O.isNone(wantedOf(source))) return reviewItem
    return (cut) => {
      const item = reviewItem(cut)
      notice(source, item)
      return item
    }
  },
  ended: ({ seen }, scanned) => {
    seen.scans.push(scanned)
  },
}

/** Every stream that is made of reviews reads through it. */
export const reviewExport = exportReader(reviewOperation)

/** The reviews themselves, as they came. */
export const reviews = stream({
  name: 'reviews',
  codec: ReviewRecord,
  primaryKey: ['id'],
  cursor: 'modifiedTime',
  reader: reviewExport,
  project: ({ cut }: ReviewItem) => [cut],
})
