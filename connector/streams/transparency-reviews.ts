import { pipe } from 'fp-ts/function'
import * as TE from 'fp-ts/TaskEither'
import * as t from 'io-ts'
import { TransparencyReview } from '../api/model/comment'
import { commentFilters, pageSize, windowOf } from './comments'
import { feedbackStream } from './entities/feedback-stream'
import { OfEntity } from './entities/records'
import { Unknown } from './unknown'

export const TransparencyReviewRecord = t.intersection(
  [OfEntity, TransparencyReview, Unknown],
  'TransparencyReviewRecord',
)

const day = 86_400_000

/** Operation 1: one identifier a request, pages from 0; its answer does not say how many there are. */
export const transparencyReviews = feedbackStream({
  name: 'transparency_reviews',
  list: 'reviews',
  codec: TransparencyReviewRecord,
  key: 'documentId',
  operation: {
    name: 'retrieve reviews',
    most: 1,
    firstPage: 0,
    ask: (source) => (request) =>
      pipe(
        source.api.retrieveReviews({
          ...commentFilters(source, request),
          // That fromDate and toDate take precedence over days, 365 by default, is only said of comments.
          days: Math.max(1, Math.ceil((source.now() - request.from) / day) + 1),
          [`${request.kind}Id`]: request.ids[0] ?? '',
        }),
        TE.map(({ data, servedAt }) => ({
          listings: data.entities.map(({ id, name, reviews }) => ({ id, name, rows: reviews ?? [] })),
          perPage: pageSize(source, data.filter?.perPage),
          ...windowOf(data.filter),
          ...(servedAt === undefined ? {} : { servedAt }),
        })),
      ),
  },
})
