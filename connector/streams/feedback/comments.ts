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

/** The configured filters, with the window of a request; the service prefers the pair of dates to `days`. */
export const toCommentFilters = (
  { feedback }: SourceEnv,
  { from, to, page, perPage = feedback.perPage }: Pick<FeedbackRequest, 'from' | 'to' | 'page' | 'perPage'>,
) => ({
  ...feedback.thresholds,
  ...defined({ additionalFields: feedback.additionalFields }),
  fromDate: toInstant(from),
  toDate: toInstant(to),
  page,
  perPage,
})

/** The window that an answer echoes, milliseconds. The specification leaves open in which of two places it is. */
export const echoedWindow = (
  echo: Readonly<Record<string, unknown>> | null | undefined,
): Pick<FeedbackPage, 'window'> => {
  const period = t.UnknownRecord.is(echo?.period) ? echo.period : {}
  const [from, to] = [echo?.fromDate ?? period.from, echo?.toDate ?? period.to].map((time) => toMillis(String(time)))
  return from === undefined || to === undefined || Number.isNaN(from + to) ? {} : { window: { from, to } }
}

/** The page size that an answer echoes, which may be smaller than the requested one. */
export const echoedPageSize = ({ feedback: { perPage } }: SourceEnv, echoed: number | null | undefined): number =>
  echoed == null || echoed < 1 ? perPage : Math.min(echoed, perPage)

const toFeedbackPage = (source: SourceEnv, { data, servedAt }: CommentsResponse): FeedbackPage => ({
  entities: data.entities.map(({ id, name, comments, totalPages }) => ({
    id,
    name,
    rows: comments ?? [],
    ...defined({ pages: totalPages ?? undefined }),
  })),
  perPage: echoedPageSize(source, data.filter?.perPage),
  ...echoedWindow(data.filter),
  ...defined({ servedAt }),
})

/** Comments by entity: operation 2 for one entity, operation 3 for many. */
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
      const [id = '', ...others] = request.ids
      return pipe(
        others.length === 0
          ? source.api.retrieveComments({ ...filters, [`${request.kind}Id`]: id })
          : source.api.retrieveCommentsByForm({ ...filters, [`${request.kind}Id`]: request.ids }),
        TE.map((answer) => toFeedbackPage(source, answer)),
      )
    },
  },
})
