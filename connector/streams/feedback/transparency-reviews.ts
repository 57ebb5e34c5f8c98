import { pipe } from 'fp-ts/function'
import * as TE from 'fp-ts/TaskEither'
import * as t from 'io-ts'
import { TransparencyReview } from '../../api'
import { defined } from '../../cdk'
import { UnknownAttributes } from '../record'
import { echoedPageSize, echoedWindow, toCommentFilters } from './comments'
import { createFeedbackStream } from './reader'
import { EntityColumns } from './records'

export const TransparencyReviewRecord = t.intersection(
  [EntityColumns, TransparencyReview, UnknownAttributes],
  'TransparencyReviewRecord',
)

const day = 86_400_000

/** Public reviews by entity, operation 1: one identifier a request, pages from 0; an answer does not give their number. */
export const transparencyReviewsStream = createFeedbackStream({
  name: 'transparency_reviews',
  list: 'reviews',
  codec: TransparencyReviewRecord,
  key: 'documentId',
  operation: {
    name: 'retrieve reviews',
    maxIdentifiers: 1,
    firstPage: 0,
    createFetch: (source) => (request) =>
      pipe(
        source.api.retrieveReviews({
          ...toCommentFilters(source, request),
          // The specification gives fromDate and toDate precedence over days (365 by default) for comments only.
          days: Math.max(1, Math.ceil((source.now() - request.from) / day) + 1),
          [`${request.kind}Id`]: request.ids[0] ?? '',
        }),
        TE.map(({ data, servedAt }) => ({
          entities: data.entities.map(({ id, name, reviews }) => ({ id, name, rows: reviews ?? [] })),
          perPage: echoedPageSize(source, data.filter?.perPage),
          ...echoedWindow(data.filter),
          ...defined({ servedAt }),
        })),
      ),
  },
})
