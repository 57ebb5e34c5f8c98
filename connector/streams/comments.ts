import { pipe } from 'fp-ts/function'
import * as TE from 'fp-ts/TaskEither'
import * as t from 'io-ts'
import type { CommentsAnswer } from '../api/envelope'
import { Comment } from '../api/model/comment'
import { toInstant, toMillis } from '../api/model/scalar'
import { feedbackStream } from './entities/feedback-stream'
import type { Ask, ListPage } from './entities/listing'
import { OfEntity } from './entities/records'
import type { Source } from './source'
import { Unknown } from './unknown'

export const CommentRecord = t.intersection([OfEntity, Comment, Unknown], 'CommentRecord')

/** The filters of operations 2 and 3 as the config has them; the pair of dates takes precedence over days. */
export const commentFilters = ({ feedback }: Source, { from, to, page }: Pick<Ask, 'from' | 'to' | 'page'>) => ({
  ...feedback.thresholds,
  ...(feedback.additionalFields === undefined ? {} : { additionalFields: feedback.additionalFields }),
  fromDate: toInstant(from),
  toDate: toInstant(to),
  page,
  perPage: feedback.perPage,
})

/** The window that an echo tells, milliseconds; in which of its attributes is not quite shown. */
export const windowOf = (echo: Readonly<Record<string, unknown>> | null | undefined): Pick<ListPage, 'window'> => {
  const period = t.UnknownRecord.is(echo?.period) ? echo.period : {}
  const [from, to] = [echo?.fromDate ?? period.from, echo?.toDate ?? period.to].map((time) => toMillis(String(time)))
  return from === undefined || to === undefined || Number.isNaN(from + to) ? {} : { window: { from, to } }
}

/** The page size that the answer echoes, which may be less than was asked for. */
export const pageSize = ({ feedback: { perPage } }: Source, echoed: number | null | undefined): number =>
  echoed == null || echoed < 1 ? perPage : Math.min(echoed, perPage)

const toPage = (source: Source, { data, servedAt }: CommentsAnswer): ListPage => ({
  listings: data.entities.map(({ id, name, comments, totalPages }) => ({
    id,
    name,
    rows: comments ?? [],
    ...(totalPages == null ? {} : { pages: totalPages }),
  })),
  perPage: pageSize(source, data.filter?.perPage),
  ...windowOf(data.filter),
  ...(servedAt === undefined ? {} : { servedAt }),
})

/** Operation 2 for one entity, operation 3 for many (Endpoints). */
export const comments = feedbackStream({
  name: 'comments',
  list: 'comments',
  codec: CommentRecord,
  key: 'id',
  operation: {
    name: 'retrieve comments',
    most: 50,
    firstPage: 1,
    ask: (source) => (request) => {
      const filters = commentFilters(source, request)
      const [only = ''] = request.ids
      return pipe(
        request.ids.length === 1
          ? source.api.retrieveComments({ ...filters, [`${request.kind}Id`]: only })
          : source.api.retrieveCommentsByForm({ ...filters, [`${request.kind}Id`]: request.ids }),
        TE.map((answer) => toPage(source, answer)),
      )
    },
  },
})
