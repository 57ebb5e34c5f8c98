import * as O from 'fp-ts/Option'
import * as t from 'io-ts'
import { Review } from '../api'
import { defined, defineStream } from '../cdk'
import { createCutter, createReviewFetcher } from '../export'
import { createExportReader, type ExportDefinition } from './export-reader'
import { UnknownAttributes } from './record'
import { createReviewItem, type ReviewItem, reviewFieldTree } from './review-item'
import { digestEntitySelection, indexEntities } from './source'

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
