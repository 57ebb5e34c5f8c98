import { pipe } from 'fp-ts/function'
import * as TE from 'fp-ts/TaskEither'
import * as t from 'io-ts'
import {
  type ApiError,
  Comment,
  type CommentsResponse,
  isRefusalInBody,
  type ReviewsResponse,
  TransparencyReview,
  toSecondInstant,
} from '../../api'
import { defined } from '../../cdk'
import { ceilToSecond } from '../../reading'
import { type SourceEnv, toThresholds } from '../source-env'
import { UnknownAttributes } from '../unknown-attributes'
import type { EntityAnswer, EntityOperation, EntityRequest, FetchEntities } from './answer'
import { EntityColumns } from './records'
import { createEntityStream } from './stream'

export const CommentRecord = t.intersection([EntityColumns, Comment, UnknownAttributes], 'CommentRecord')

/**
 * The filters of a request: the thresholds, and its window both as dates (whole seconds at or outside its ends) and as
 * days back to its start. A service that uses the dates prefers them.
 */
const toFilters = (source: SourceEnv, request: EntityRequest) => {
  const { feedback } = source
  const { from, to, page, perPage = feedback.perPage, byDays = false, scrollKey } = request
  return {
    ...toThresholds(feedback),
    ...defined({ additionalFields: feedback.additionalFields }),
    ...(byDays ? {} : { fromDate: toSecondInstant(from), toDate: toSecondInstant(ceilToSecond(to)) }),
    days: requestedDays(source, request),
    ...(scrollKey === undefined ? { page } : { scrollKey }),
    perPage,
  }
}

const day = 86_400_000

/** The days back to the window's start, plus one for a service whose days begin at midnight. */
const requestedDays = ({ now }: SourceEnv, { from, to, days }: EntityRequest): number =>
  days ?? Math.max(1, Math.ceil((Math.max(to, now()) - from) / day) + 1)

/** The page size echoed in an answer, which may be smaller than requested. */
const echoedPageSize = (requested: number, echoed: number | null | undefined): number =>
  echoed == null || echoed < 1 ? requested : Math.min(echoed, requested)

/** What an answer's echo and headers say about its rows. */
const describePage = (
  source: SourceEnv,
  request: EntityRequest,
  {
    data: { filter },
    servedAt,
  }: Pick<CommentsResponse | ReviewsResponse, 'servedAt'> & {
    readonly data: Pick<CommentsResponse['data'], 'filter'>
  },
): Omit<EntityAnswer, 'entities'> => ({
  perPage: echoedPageSize(request.perPage ?? source.feedback.perPage, filter?.perPage),
  days: requestedDays(source, request),
  ...coveredDays(filter?.days, requestedDays(source, request)),
  ...defined({ scrollKey: filter?.scrollKey || undefined, servedAt }),
})

/** The days echoed in an answer, if fewer than requested. */
const coveredDays = (echoed: unknown, requested: number): Pick<EntityAnswer, 'coveredDays'> =>
  typeof echoed === 'number' && echoed >= 0 && echoed < requested ? { coveredDays: echoed } : {}

/**
 * A service may answer like this for a page after the last one. Outages, limits, refused tokens and internal errors do
 * not count, since an existing page may fail with them too.
 */
const mayRefusePage = (error: ApiError): boolean =>
  error._tag === 'Http'
    ? [400, 404, 410, 416].includes(error.status)
    : error._tag === 'Application' && isRefusalInBody(error) && !/(?<!\d)(403|5\d\d)(?!\d)/.test(error.code)

/**
 * Treats a refused later page as a page without rows, since the specification does not say how the service answers a
 * page after the last one. For a single entity, the first page must still work and must not announce more pages.
 * Several entities must each be requested alone, since the page may be refused for the one with the fewest rows.
 */
const withRefusedPages =
  (firstPage: number, fetch: FetchEntities): FetchEntities =>
  (request) =>
    pipe(
      fetch(request),
      TE.orElse((error): ReturnType<FetchEntities> => {
        const { page, ids, scrollKey } = request
        if (page === firstPage || scrollKey !== undefined || !mayRefusePage(error)) return TE.left(error)
        if (ids.length > 1) return TE.right({ entities: [], perPage: Number.POSITIVE_INFINITY, isRefused: true })
        return pipe(
          fetch({ ...request, page: firstPage }),
          TE.flatMap(
            ({ entities, scrollKey: _, ...first }): ReturnType<FetchEntities> =>
              entities.some(({ pages = 0 }) => pages > page - firstPage)
                ? TE.left(error)
                : TE.right({ ...first, entities: [], isRefused: true }),
          ),
        )
      }),
    )

/** Comments by entity: operation 2 for one entity, operation 3 for many. */
export const commentsOperation: EntityOperation = {
  name: 'retrieve comments',
  key: 'id',
  maxIdentifiers: 50,
  firstPage: 1,
  createFetch: (source) =>
    withRefusedPages(1, (request) => {
      const filters = toFilters(source, request)
      const [id = '', ...others] = request.ids
      return pipe(
        others.length === 0
          ? source.api.retrieveComments({ ...filters, [`${request.kind}Id`]: id })
          : source.api.retrieveCommentsByForm({ ...filters, [`${request.kind}Id`]: request.ids }),
        TE.map((answer) => ({
          entities: answer.data.entities.map(({ id: entityId, name, comments, totalPages }) => ({
            id: entityId,
            name,
            rows: comments ?? [],
            ...defined({ pages: totalPages ?? undefined }),
          })),
          ...describePage(source, request, answer),
        })),
      )
    }),
}

export const commentsStream = createEntityStream({
  name: 'comments',
  list: 'comments',
  codec: CommentRecord,
  key: 'id',
  operation: commentsOperation,
})

export const TransparencyReviewRecord = t.intersection(
  [EntityColumns, TransparencyReview, UnknownAttributes],
  'TransparencyReviewRecord',
)

/**
 * Public reviews by entity, operation 1: one identifier per request, pages from 0. Answers do not give the number of
 * pages.
 */
export const publicReviewsOperation: EntityOperation = {
  name: 'retrieve reviews',
  key: 'documentId',
  maxIdentifiers: 1,
  firstPage: 0,
  createFetch: (source) =>
    withRefusedPages(0, (request) =>
      pipe(
        source.api.retrieveReviews({ ...toFilters(source, request), [`${request.kind}Id`]: request.ids[0] ?? '' }),
        TE.map((answer) => ({
          entities: answer.data.entities.map(({ id, name, reviews }) => ({ id, name, rows: reviews ?? [] })),
          ...describePage(source, request, answer),
        })),
      ),
    ),
}

export const transparencyReviewsStream = createEntityStream({
  name: 'transparency_reviews',
  list: 'reviews',
  codec: TransparencyReviewRecord,
  key: 'documentId',
  operation: publicReviewsOperation,
})
