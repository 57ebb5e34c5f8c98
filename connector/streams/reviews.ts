import * as O from 'fp-ts/Option'
import * as t from 'io-ts'
import { createCutter } from '../api/cut'
import { createReviewFetcher } from '../api/export'
import { Review } from '../api/model/review'
import { defineStream } from '../cdk/stream'
import { digestEntitySelection, indexEntities } from './entities/seen'
import { createExportReader, type ExportDefinition } from './export'
import { createReviewItem, type ReviewItem, reviewFieldTree } from './review-item'
import { UnknownAttributes } from './unknown'

/** What leaves for a review: its declared attributes, and whatever else it brought. */
export const ReviewRecord = t.intersection([Review, UnknownAttributes], 'ReviewRecord')

/** Operation 6. */
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
        ...(actions.export === undefined ? {} : { actions: actions.export }),
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
    return (cut) => {
      const item = createReviewItem(cut)
      indexEntities(source, item)
      return item
    }
  },
  onScanEnd: ({ entityIndex }, scanned) => {
    entityIndex.completeScans.push(scanned)
  },
}

/** Every stream that is made of reviews reads through it. */
export const reviewExportReader = createExportReader(reviewExportOperation)

/** The reviews themselves, as they came. */
export const reviewsStream = defineStream({
  name: 'reviews',
  codec: ReviewRecord,
  primaryKey: ['id'],
  cursor: 'modifiedTime',
  reader: reviewExportReader,
  project: ({ record }: ReviewItem) => [record],
})
