import * as E from 'fp-ts/Either'
import {
  type ApiError,
  type CommentsForm,
  type CommentsResponse,
  type ReviewsRequest,
  type ReviewsResponse,
  toInstant,
  toMillis,
} from '../../api'
import type { Database } from '../../snapshot/store'
import type { ReviewRow } from '../data/review-tables'
import {
  countIds,
  findEntities,
  listMentions,
  type RequestedEntity,
  readEntitySummary,
  toComment,
  toReview,
} from './entities'
import { badRequestError, entityNotFoundError, identifierLimitError } from './operation'

type WindowFilter = {
  readonly days?: number
  readonly fromDate?: string | null
  readonly toDate?: string | null
}

/** The window of mention times in milliseconds; `fromDate` and `toDate` together take precedence over `days`. */
type FilterWindow = {
  readonly from: number
  readonly to: number
  /** Null if the dates decide. */
  readonly days: number | null
}

const dayMs = 86_400_000

const filterWindow = ({ days = 365, fromDate, toDate }: WindowFilter, now: number): FilterWindow =>
  typeof fromDate === 'string' && typeof toDate === 'string'
    ? { from: toMillis(fromDate), to: toMillis(toDate), days: null }
    : { from: now - days * dayMs, to: now, days }

/** SQL condition for mention times in the window; both ends belong to it. */
const windowCondition = ({ from, to }: FilterWindow): string =>
  `mention BETWEEN ${timeLiteral(from)} AND ${timeLiteral(to)}`

// Milliseconds within the years 0 to 9999, since neither JavaScript nor DuckDB writes other times as plain text.
const timeLiteral = (millis: number): string => `epoch_ms(${Math.max(-62e12, Math.min(253e12, Math.round(millis)))})`

const windowPeriod = ({ from, to }: FilterWindow): { readonly from: string; readonly to: string } => ({
  from: toInstant(from),
  to: toInstant(to),
})

/** An opaque key for the next page: the time and id of the last row. */
const encodeScrollKey = (row: ReviewRow): string => Buffer.from(`${row.mention}/${row.id}`).toString('base64url')

/** SQL condition for the rows after a scroll key; undefined if the key is invalid. */
const decodeScrollKey = (key: string): string | undefined => {
  const [, millis, id] = /^(-?\d{1,15})\/(\d{1,19})$/.exec(Buffer.from(key, 'base64url').toString('latin1')) ?? []
  return millis === undefined || BigInt(id ?? 0) > 2n ** 63n - 1n
    ? undefined
    : `(mention < epoch_ms(${millis}) OR mention = epoch_ms(${millis}) AND r.id < ${id})`
}

/** Limits for which the specification gives no numbers. */
export type RequestLimits = {
  /** The most rows on a page. A larger `perPage` is reduced to it, which the filter echo shows. */
  readonly maxPerPage: number
  /** The most identifiers in one request; more are refused with status 413. */
  readonly maxIdentifiers: number
}

/** Limits, and where published deployments differ from the specification. */
export type TransparencyRules = RequestLimits & {
  /**
   * Operation 1 supports neither `page` nor `fromDate` and `toDate`: pages are requested by `scrollKey`, the window by
   * `days`.
   */
  readonly scrollOnly: boolean
  /** `fromDate` and `toDate` with a fraction of a second are refused. */
  readonly wholeSeconds: boolean
  /** The `minRatingCount` of a request that sends none. */
  readonly minRatingCount: number
}

type Filters = Pick<
  CommentsForm,
  'page' | 'perPage' | 'days' | 'minThreshold' | 'minSurveyCount' | 'minRatingCount' | 'minWordCount' | 'showRatings'
> & { readonly fromDate?: string | null; readonly toDate?: string | null }

const clientId = 'sandbox'

const findFilterProblem = (
  filters: Filters,
  firstPage: number,
  { wholeSeconds }: TransparencyRules,
): string | undefined => {
  const { page = firstPage, perPage = 20, days = 365, minThreshold = 0 } = filters
  if (page < firstPage || page > 1e9) return `page: expected ${firstPage} or more`
  if (perPage < 1) return 'perPage: expected 1 or more'
  if (
    wholeSeconds &&
    [filters.fromDate, filters.toDate].some((time) => typeof time === 'string' && !/T\d\d:\d\d:\d\dZ$/.test(time))
  )
    return "fromDate, toDate: expected the pattern yyyy-MM-dd'T'HH:mm:ss'Z'"
  if (days < 0 || days > 36_500) return 'days: expected 0 to 36500'
  return minThreshold < 0 || minThreshold > 5 ? 'minThreshold: expected 0 to 5' : undefined
}

const applyFilters = (filters: Filters, { maxPerPage, minRatingCount }: TransparencyRules) => ({
  minThreshold: filters.minThreshold ?? 0,
  minSurveyCount: filters.minSurveyCount ?? 0,
  minRatingCount: filters.minRatingCount ?? minRatingCount,
  minWordCount: filters.minWordCount ?? 0,
  showRatings: filters.showRatings ?? true,
  perPage: Math.min(filters.perPage ?? 20, maxPerPage),
})

type AppliedFilters = ReturnType<typeof applyFilters>

const reviewCondition = (
  entity: RequestedEntity,
  window: string,
  { minThreshold, minWordCount }: AppliedFilters,
): string =>
  [
    entity.reviewCondition,
    window,
    ...(minThreshold > 0 ? [`rating >= ${minThreshold}`] : []),
    ...(minWordCount > 0 ? [`words >= ${minWordCount}`] : []),
  ].join(' AND ')

/** The entity has enough surveys and ratings to be shown. */
const isShown = (
  summary: { readonly totalSurveyCount?: unknown; readonly totalRatingCount?: unknown },
  limits: AppliedFilters,
) =>
  Number(summary.totalSurveyCount) >= limits.minSurveyCount && Number(summary.totalRatingCount) >= limits.minRatingCount

/**
 * Operation 1. Pages count from 0; the filter echo has a `scrollKey` for the rows after the page if the request found
 * one entity.
 */
export const serveReviews = async (
  database: Database,
  now: number,
  rules: TransparencyRules,
  sent: ReviewsRequest,
): Promise<E.Either<ApiError, ReviewsResponse>> => {
  const { page: _page, fromDate: _fromDate, toDate: _toDate, ...scrolled } = sent
  const request: ReviewsRequest = rules.scrollOnly ? scrolled : sent
  const ids = {
    personId: request.personId === undefined ? [] : [request.personId],
    locationId: request.locationId === undefined ? [] : [request.locationId],
    entityId: request.entityId === undefined ? [] : [request.entityId],
  }
  const problem = countIds(ids) === 0 ? identifierProblem : findFilterProblem(sent, 0, rules)
  if (problem !== undefined) return E.left(badRequestError(problem))
  const scrollCondition = request.scrollKey === undefined ? 'true' : decodeScrollKey(request.scrollKey)
  if (scrollCondition === undefined) return E.left(badRequestError('scrollKey: expected the key of an earlier answer'))
  const requested = await findEntities(database, ids)
  if (requested.length === 0) return E.left(entityNotFoundError)
  const filters = applyFilters(request, rules)
  const window = filterWindow(request, now)
  const showReviews = request.showReviews ?? true
  const offset = request.scrollKey === undefined ? (request.page ?? 0) * filters.perPage : 0
  let lastRow: ReviewRow | undefined
  const entities: Array<ReviewsResponse['data']['entities'][number]> = []
  for (const entity of requested) {
    const summary = await readEntitySummary(database, entity, windowCondition(window), window.days, filters.showRatings)
    if (!isShown(summary, filters)) continue
    const where = `${reviewCondition(entity, windowCondition(window), filters)} AND ${scrollCondition}`
    const rows = showReviews ? await listMentions({ where, limit: filters.perPage, offset }, database) : []
    lastRow = requested.length === 1 && rows.length === filters.perPage ? rows[rows.length - 1] : undefined
    entities.push({ ...summary, reviews: rows.map((row) => toReview(row, filters.showRatings)) })
  }
  return E.right({
    status: { code: 200, message: 'SUCCESS', type: null },
    data: {
      client: clientId,
      entities,
      filter: {
        ...filters,
        entityId: requested[0]?.serviceId ?? null,
        scrollKey: lastRow === undefined ? null : encodeScrollKey(lastRow),
        person: requested.some(({ isPerson }) => isPerson),
        fromDate: request.fromDate ?? null,
        toDate: request.toDate ?? null,
        period: windowPeriod(window),
        days: window.days,
        showReviews,
      },
    },
  })
}

/** Operations 2 and 3. Pages count from 1; a comment is a review with at least one word. */
export const serveComments = async (
  database: Database,
  now: number,
  rules: TransparencyRules,
  request: CommentsForm,
): Promise<E.Either<ApiError, CommentsResponse>> => {
  const count = countIds(request)
  const problem = count === 0 ? identifierProblem : findFilterProblem(request, 1, rules)
  if (problem !== undefined) return E.left(badRequestError(problem))
  if (count > rules.maxIdentifiers) return E.left(identifierLimitError(rules.maxIdentifiers))
  const requested = await findEntities(database, request)
  if (requested.length === 0) return E.left(entityNotFoundError)
  const filters = applyFilters(request, rules)
  const window = filterWindow(request, now)
  const [page, showComments] = [request.page ?? 1, request.showComments ?? true]
  const entities: Array<CommentsResponse['data']['entities'][number]> = []
  for (const entity of requested) {
    const summary = await readEntitySummary(database, entity, windowCondition(window), window.days, filters.showRatings)
    if (!isShown(summary, filters)) continue
    const where = `${reviewCondition(entity, windowCondition(window), filters)} AND words > 0`
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
      client: clientId,
      entities,
      filter: { ...filters, page, showComments, configVersion: null, days: window.days, period: windowPeriod(window) },
    },
  })
}

const identifierProblem = 'at least one of personId, locationId, entityId is required'
