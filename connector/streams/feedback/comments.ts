import { pipe } from 'fp-ts/function'
import * as TE from 'fp-ts/TaskEither'
import * as t from 'io-ts'
import { Comment, type CommentsResponse, toInstant, toMillis } from '../../api'
import { defined } from '../../cdk'
import { UnknownAttributes } from '../record'
import type { SourceEnv } from '../source-env'
import type { FeedbackPage, FeedbackRequest } from './page'
import { createFeedbackStream } from './reader'
import { EntityColumns } from './records'

export const CommentRecord = t.intersection([EntityColumns, Comment, UnknownAttributes], 'CommentRecord')

/** The filters of operations 2 and 3 as the config has them; the pair of dates takes precedence over days. */
export const toCommentFilters = (
  { feedback }: SourceEnv,
  { from, to, page }: Pick<FeedbackRequest, 'from' | 'to' | 'page'>,
) => ({
  ...feedback.thresholds,
  ...defined({ additionalFields: feedback.additionalFields }),
  fromDate: toInstant(from),
  toDate: toInstant(to),
  page,
  perPage: feedback.perPage,
})

/** The window that an echo tells, milliseconds; in which of its attributes is not quite shown. */
export const echoedWindow = (
  echo: Readonly<Record<string, unknown>> | null | undefined,
): Pick<FeedbackPage, 'window'> => {
  const period = t.UnknownRecord.is(echo?.period) ? echo.period : {}
  const [from, to] = [echo?.fromDate ?? period.from, echo?.toDate ?? period.to].map((time) => toMillis(String(time)))
  return from === undefined || to === undefined || Number.isNaN(from + to) ? {} : { window: { from, to } }
}

/** The page size that the answer echoes, which may be less than was asked for. */
export const echoedPageSize = ({ feedback: { perPage } }: SourceEnv, echoed: number | null | undefined): number =>
  echoed == null || echoed < 1 ? perPage : Math.min(echoed, perPage)

const toFeedbackPage = (source: SourceEnv, { data, servedAt }: CommentsResponse): FeedbackPage => ({
  entities: data.entities.map(({ id, name, comments, totalPages }) => ({
    id,
    name,
    rows: comments ?? [],
    ...(totalPages == null ? {} : { pages: totalPages }),
  })),
  perPage: echoedPageSize(source, data.filter?.perPage),
  ...echoedWindow(data.filter),
  ...defined({ servedAt }),
})

/** Operation 2 for one entity, operation 3 for many (Endpoints). */
export const commentsStream = createFeedbackStream({
  name: 'comments',
  list: 'comments',
  codec: CommentRecord,
  key: 'id',
  operation: {
    name: 'retrieve comments',
    maxIdentifiers: 50,
    firstPage: 1,
    createFetch: (source) => (request) => {
      const filters = toCommentFilters(source, request)
      const [only = ''] = request.ids
      return pipe(
        request.ids.length === 1
          ? source.api.retrieveComments({ ...filters, [`${request.kind}Id`]: only })
          : source.api.retrieveCommentsByForm({ ...filters, [`${request.kind}Id`]: request.ids }),
        TE.map((answer) => toFeedbackPage(source, answer)),
      )
    },
  },
})
