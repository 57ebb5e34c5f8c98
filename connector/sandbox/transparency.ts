import * as E from 'fp-ts/Either'
import type { CommentsAnswer, ReviewsAnswer } from '../api/envelope'
import type { ApiError } from '../api/error'
import type { CommentsForm, ReviewsRequest } from '../api/model/transparency'
import type { Database } from '../snapshot/database'
import { countOf, type Found, findEntities } from './entities'
import { listMentions, toComment, toReview } from './mentions'
import { badRequest, notFound, tooMany } from './refusals'
import type { ReviewRow } from './review-rows'
import { afterKey, scrollKeyOf } from './scroll-key'
import { summaryOf } from './summary'
import { periodOf, windowOf, within } from './window'

/** What nobody is told about the service's limits; each can be set. */
export type Limits = {
  /** The most rows of a page; more are not refused, the filter echo says what was applied. */
  readonly perPage: number
  /** The most identifiers of one request (Errors, 413). */
  readonly identifiers: number
}

type Filters = Pick<
  CommentsForm,
  'page' | 'perPage' | 'days' | 'minThreshold' | 'minSurveyCount' | 'minRatingCount' | 'minWordCount' | 'showRatings'
> & { readonly fromDate?: string | null; readonly toDate?: string | null }

const client = 'sandbox'

const wrong = (filters: Filters, firstPage: number): string | undefined => {
  const { page = firstPage, perPage = 20, days = 365, minThreshold = 0 } = filters
  if (page < firstPage || page > 1e9) return `page: expected ${firstPage} or more`
  if (perPage < 1) return 'perPage: expected 1 or more'
  if (days < 0 || days > 36_500) return 'days: expected 0 to 36500'
  return minThreshold < 0 || minThreshold > 5 ? 'minThreshold: expected 0 to 5' : undefined
}

const applied = (filters: Filters, { perPage }: Limits) => ({
  minThreshold: filters.minThreshold ?? 0,
  minSurveyCount: filters.minSurveyCount ?? 0,
  minRatingCount: filters.minRatingCount ?? -1,
  minWordCount: filters.minWordCount ?? 0,
  showRatings: filters.showRatings ?? true,
  perPage: Math.min(filters.perPage ?? 20, perPage),
})
type Applied = ReturnType<typeof applied>

const rowsWhere = (entity: Found, window: string, { minThreshold, minWordCount }: Applied): string =>
  [
    entity.reviews,
    window,
    ...(minThreshold > 0 ? [`rating >= ${minThreshold}`] : []),
    ...(minWordCount > 0 ? [`words >= ${minWordCount}`] : []),
  ].join(' AND ')

/** Entities with too few surveys or ratings are not shown. */
const shown = (
  summary: { readonly totalSurveyCount?: unknown; readonly totalRatingCount?: unknown },
  limits: Applied,
) =>
  Number(summary.totalSurveyCount) >= limits.minSurveyCount && Number(summary.totalRatingCount) >= limits.minRatingCount

/** Operation 1. Pages count from 0; `scrollKey` of the echo goes on behind the last row of the only entity. */
export const retrieveReviews = async (
  database: Database,
  now: number,
  limits: Limits,
  request: ReviewsRequest,
): Promise<E.Either<ApiError, ReviewsAnswer>> => {
  const asked = {
    personId: request.personId === undefined ? [] : [request.personId],
    locationId: request.locationId === undefined ? [] : [request.locationId],
    entityId: request.entityId === undefined ? [] : [request.entityId],
  }
  const fault = countOf(asked) === 0 ? needsIdentifier : wrong(request, 0)
  if (fault !== undefined) return E.left(badRequest(fault))
  const after = request.scrollKey === undefined ? 'true' : afterKey(request.scrollKey)
  if (after === undefined) return E.left(badRequest('scrollKey: expected one that an answer gave'))
  const found = await findEntities(database, asked)
  if (found.length === 0) return E.left(notFound)
  const filters = applied(request, limits)
  const window = windowOf(request, now)
  const showReviews = request.showReviews ?? true
  const offset = request.scrollKey === undefined ? (request.page ?? 0) * filters.perPage : 0
  let last: ReviewRow | undefined
  const entities: Array<ReviewsAnswer['data']['entities'][number]> = []
  for (const entity of found) {
    const summary = await summaryOf(database, entity, within(window), window.days, filters.showRatings)
    if (!shown(summary, filters)) continue
    const where = `${rowsWhere(entity, within(window), filters)} AND ${after}`
    const rows = showReviews ? await listMentions({ where, limit: filters.perPage, offset }, database) : []
    last = found.length === 1 && rows.length === filters.perPage ? rows[rows.length - 1] : undefined
    entities.push({ ...summary, reviews: rows.map((row) => toReview(row, filters.showRatings)) })
  }
  return E.right({
    status: { code: 200, message: 'SUCCESS', type: null },
    data: {
      client,
      entities,
      filter: {
        ...filters,
        entityId: found[0]?.number ?? null,
        scrollKey: last === undefined ? null : scrollKeyOf(last),
        person: found.some(({ person }) => person),
        fromDate: request.fromDate ?? null,
        toDate: request.toDate ?? null,
        period: periodOf(window),
        days: window.days,
        showReviews,
      },
    },
  })
}

/** Operations 2 and 3. Pages count from 1; a comment is a review with words. */
export const retrieveComments = async (
  database: Database,
  now: number,
  limits: Limits,
  request: CommentsForm,
): Promise<E.Either<ApiError, CommentsAnswer>> => {
  const count = countOf(request)
  const fault = count === 0 ? needsIdentifier : wrong(request, 1)
  if (fault !== undefined) return E.left(badRequest(fault))
  if (count > limits.identifiers) return E.left(tooMany(limits.identifiers))
  const found = await findEntities(database, request)
  if (found.length === 0) return E.left(notFound)
  const filters = applied(request, limits)
  const window = windowOf(request, now)
  const [page, showComments] = [request.page ?? 1, request.showComments ?? true]
  const entities: Array<CommentsAnswer['data']['entities'][number]> = []
  for (const entity of found) {
    const summary = await summaryOf(database, entity, within(window), window.days, filters.showRatings)
    if (!shown(summary, filters)) continue
    const where = `${rowsWhere(entity, within(window), filters)} AND words > 0`
    const total = Number(await database.scalar(`SELECT count(*) FROM review WHERE ${where}`))
    const offset = (page - 1) * filters.perPage
    const rows = showComments ? await listMentions({ where, limit: filters.perPage, offset }, database) : []
    entities.push({
      ...summary,
      comments: rows.map((row) => toComment(row, filters.showRatings)),
      totalPages: Math.ceil(total / filters.perPage),
    })
  }
  return E.right({
    status: { code: '200', message: 'success', type: null },
    data: {
      client,
      entities,
      filter: { ...filters, page, showComments, configVersion: null, days: window.days, period: periodOf(window) },
    },
  })
}

const needsIdentifier = 'at least one of personId, locationId, entityId is required'
