import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import type { TaskEither } from 'fp-ts/TaskEither'
import * as t from 'io-ts'
import {
  commentsResponse,
  ErrorBody,
  lookupResponse,
  reviewsResponse,
  visitRecordResponse,
  withApplicationError,
} from './envelopes'
import { type ApiError, applicationError, isExportError, isTokenError } from './error'
import {
  CommentsEntity,
  CommentsFilter,
  CommentsForm,
  CommentsQuery,
  LookupQuery,
  ReviewsEntity,
  ReviewsFilter,
  ReviewsRequest,
} from './model/entity'
import { IssuedToken, TokenRequest } from './model/issued-token'
import { DeletedExportRequest, DeletedReview, ExportRequest, Review } from './model/review'
import { Location, LocationSyncResult, VisitRecord } from './model/written'
import {
  bytesResponse,
  decodeWith,
  defineRoute,
  jsonResponse,
  parseBodyLoosely,
  type ResponseCodec,
  type Route,
  type SendRequest,
} from './route'

/** Reviews and summary of one person, location or roll-up entity. */
export const retrieveReviews = defineRoute({
  name: 'retrieve reviews',
  method: 'POST',
  path: '/api/external/bsr/v2/reviews',
  tokenHeader: 'Access-Token',
  encoding: 'json',
  request: ReviewsRequest,
  response: reviewsResponse(ReviewsEntity, ReviewsFilter),
  idempotent: true,
})

/** Comments and summary of one person, location or roll-up entity. */
export const retrieveComments = defineRoute({
  name: 'retrieve comments',
  method: 'GET',
  path: '/api/bsr/comments',
  tokenHeader: 'Access-Token',
  encoding: 'query',
  request: CommentsQuery,
  response: commentsResponse(CommentsEntity, CommentsFilter),
  idempotent: true,
})

/**
 * Comments and summaries of many entities. The service accepts the form's keys in the query too, but not in both at
 * once.
 */
export const retrieveCommentsByForm = defineRoute({
  name: 'retrieve comments by form',
  method: 'POST',
  path: '/api/bsr/comments',
  tokenHeader: 'Access-Token',
  encoding: 'form',
  request: CommentsForm,
  response: commentsResponse(CommentsEntity, CommentsFilter),
  idempotent: true,
})

/**
 * Records visits. The response has an outcome per visit. A visit that is sent twice counts once only if it has a
 * visitRecordId.
 */
export const createVisitRecords = defineRoute({
  name: 'create visit records',
  method: 'POST',
  path: '/api/service/visitrecord/create',
  tokenHeader: 'accessToken',
  encoding: 'json',
  request: t.readonlyArray(VisitRecord),
  response: withApplicationError(visitRecordResponse),
  idempotent: false,
})

/** Creates, updates and deactivates locations. Sending the same locations again changes nothing. */
export const syncLocations = defineRoute({
  name: 'sync locations',
  method: 'POST',
  path: '/api/entity/sync/locations',
  tokenHeader: 'accessToken',
  encoding: 'json',
  request: t.readonlyArray(Location),
  response: withApplicationError(jsonResponse(LocationSyncResult)),
  idempotent: true,
})

/** An error body is short. */
const maxErrorBytes = 16_384

const ExportErrorBody = t.intersection([ErrorBody, t.partial({ reviews: t.unknown })])

/**
 * Decodes as `response` does, unless a short body reports an error. This is checked early, because the records of an
 * export are read later, when neither another token nor another attempt is possible.
 */
const withExportError = <A>(response: ResponseCodec<A>): ResponseCodec<A> => ({
  ...response,
  decode: (raw) => {
    const body =
      raw.body.length > maxErrorBytes
        ? E.left(undefined)
        : pipe(parseBodyLoosely(raw.body), E.flatMap(decodeWith(ExportErrorBody)))
    if (E.isLeft(body)) return response.decode(raw)
    const { status, reviews } = body.right
    const rows = Array.isArray(reviews) ? reviews.length : undefined
    const error = applicationError(status, 'no message', rows === undefined ? '$.reviews' : undefined)
    const isError = isTokenError(error) || isExportError(status, rows)
    return isError ? E.left(error) : response.decode(raw)
  },
})

/** Reviews that arrived or changed after a time. The response stays as bytes. */
export const exportReviews = defineRoute({
  name: 'export reviews',
  method: 'POST',
  path: '/api/reputation/v1/reviews',
  tokenHeader: 'accessToken',
  encoding: 'json',
  request: ExportRequest,
  response: withExportError(bytesResponse(Review)),
  idempotent: true,
})

/** Reviews that were deleted after a time. The response stays as bytes. */
export const exportDeletedReviews = defineRoute({
  name: 'export deleted reviews',
  method: 'POST',
  path: '/api/reputation/v1/deleted-reviews',
  tokenHeader: 'accessToken',
  encoding: 'json',
  request: DeletedExportRequest,
  response: withExportError(bytesResponse(DeletedReview)),
  idempotent: true,
})

const lookupRoute = (subject: string, path: string) =>
  defineRoute({
    name: `look up ${subject}`,
    method: 'GET',
    path,
    tokenHeader: 'accessToken',
    encoding: 'query',
    request: LookupQuery,
    response: lookupResponse,
    idempotent: true,
  })

/**
 * The review sources. The service's specification gives no method, path or payload for lookups. These are the
 * sandbox's; a config may name others.
 */
export const lookupSources = lookupRoute('sources', '/api/reputation/v1/lookup/sources')

/** The categories of text analytics. Method and path as for `lookupSources`. */
export const lookupCategories = lookupRoute('categories', '/api/reputation/v1/lookup/categories')

/**
 * The locations that the service manages, in pages. The specification lacks this operation, but deployments offer it.
 */
export const lookupLocations = lookupRoute('locations', '/api/v2/entity/locations')

/**
 * A token for an application's id and secret. The service's specification does not describe it. This is what published
 * deployments accept, and the default of the config.
 */
export const issueToken = defineRoute({
  name: 'issue a token',
  method: 'POST',
  path: '/api/service/v1/token/create',
  tokenHeader: undefined,
  encoding: 'form',
  request: TokenRequest,
  response: jsonResponse(IssuedToken),
  idempotent: true,
})

/** Every operation by its name. */
export const routes = {
  retrieveReviews,
  retrieveComments,
  retrieveCommentsByForm,
  createVisitRecords,
  syncLocations,
  exportReviews,
  exportDeletedReviews,
  lookupSources,
  lookupCategories,
  lookupLocations,
  issueToken,
} as const

type Input<R> = R extends Route<infer I, infer _> ? I : never
type Output<R> = R extends Route<infer _, infer O> ? O : never

/** The service, as one function per operation. Implemented by the HTTP client and by the sandbox. */
export type Api = {
  readonly [K in keyof typeof routes]: (
    input: Input<(typeof routes)[K]>,
  ) => TaskEither<ApiError, Output<(typeof routes)[K]>>
}

/** Method and path of the lookups, if they differ from those above. The service's specification gives neither. */
export type LookupRoutes = Partial<
  Record<'sources' | 'categories' | 'locations', Pick<Route<unknown, unknown>, 'method' | 'path'>>
>

/** A lookup with a different method and path. A POST sends its empty input as JSON. */
export const moveLookup = <I, O>(
  route: Route<I, O>,
  target: Pick<Route<unknown, unknown>, 'method' | 'path'> | undefined,
): Route<I, O> =>
  target === undefined ? route : { ...route, ...target, encoding: target.method === 'GET' ? 'query' : 'json' }

/** An `Api` that sends its requests with `send`. */
export const createApi = (send: SendRequest, lookups: LookupRoutes = {}): Api => ({
  retrieveReviews: send(retrieveReviews),
  retrieveComments: send(retrieveComments),
  retrieveCommentsByForm: send(retrieveCommentsByForm),
  createVisitRecords: send(createVisitRecords),
  syncLocations: send(syncLocations),
  exportReviews: send(exportReviews),
  exportDeletedReviews: send(exportDeletedReviews),
  lookupSources: send(moveLookup(lookupSources, lookups.sources)),
  lookupCategories: send(moveLookup(lookupCategories, lookups.categories)),
  lookupLocations: send(moveLookup(lookupLocations, lookups.locations)),
  issueToken: send(issueToken),
})
