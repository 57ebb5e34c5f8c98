import { pipe } from 'fp-ts/function'
import * as TE from 'fp-ts/TaskEither'
import * as t from 'io-ts'
import { TransparencyReview } from '../api/model/comment'
import type { Row } from '../cdk/message'
import { stream } from '../cdk/stream'
import { commentFilters, pageSize, windowOf } from './comments'
import { feedbackReader } from './entities/reader'
import { OfEntity, recordsOf, Unknown } from './entities/records'

export const TransparencyReviewRecord = t.intersection(
  [OfEntity, TransparencyReview, Unknown],
  'TransparencyReviewRecord',
)

const day = 86_400_000

/** Operation 1: one identifier a request, pages from 0; its answer does not say how many there are. */
export const transparencyReader = feedbackReader({
  name: 'retrieve reviews',
  most: 1,
  firstPage: 0,
  key: 'documentId',
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
  records: recordsOf({
    resource: 'transparency_reviews',
    name: 'retrieve reviews',
    list: 'reviews',
    codec: TransparencyReviewRecord,
    key: 'documentId',
    cursor: 'mentionTime',
  }),
})

export const transparencyReviews = stream({
  name: 'transparency_reviews',
  codec: TransparencyReviewRecord,
  primaryKey: ['entityType', 'entityId', 'documentId'],
  cursor: 'mentionTime',
  reader: transparencyReader,
  project: (row: Row) => [row],
})
