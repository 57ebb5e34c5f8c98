import * as t from 'io-ts'
import {
  commentsResponse,
  lookupResponse,
  reviewsResponse,
  visitRecordResponse,
  withApplicationError,
} from './envelope'
import { CommentsEntity, ReviewsEntity } from './model/entity'
import { IssuedToken, TokenRequest } from './model/issued-token'
import { Location, LocationSyncResult } from './model/location'
import { DeletedExportRequest, DeletedReview, ExportRequest, Review } from './model/review'
import { CommentsFilter, CommentsForm, CommentsQuery, ReviewsFilter, ReviewsRequest } from './model/transparency'
import { VisitRecord } from './model/visit-record'
import { bytesResponse, defineRoute, jsonResponse } from './route'

/** Operation 1: reviews and summary of one person, location or roll-up entity. */
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

/** Operation 2: comments and summary of one person, location or roll-up entity. */
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

/** Operation 3: the same for many. The service also takes the form's keys in the query, but never both. */
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

/** Operation 4: visits, reported one by one. Sent twice, only a record with a visitRecordId counts once. */
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

/** Operation 5: locations to create, update and deactivate; sent twice, they are what they were. */
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

/** Operation 6: reviews that arrived or changed after a time. The answer is left as bytes. */
export const exportReviews = defineRoute({
  name: 'export reviews',
  method: 'POST',
  path: '/api/reputation/v1/reviews',
  tokenHeader: 'accessToken',
  encoding: 'json',
  request: ExportRequest,
  response: bytesResponse(Review),
  idempotent: true,
})

/** Operation 7: reviews that were deleted after a time. The answer is left as bytes. */
export const exportDeletedReviews = defineRoute({
  name: 'export deleted reviews',
  method: 'POST',
  path: '/api/reputation/v1/deleted-reviews',
  tokenHeader: 'accessToken',
  encoding: 'json',
  request: DeletedExportRequest,
  response: bytesResponse(DeletedReview),
  idempotent: true,
})

const lookupRoute = (what: string) =>
  defineRoute({
    name: `look up ${what}`,
    method: 'GET',
    path: `/api/reputation/v1/lookup/${what}`,
    tokenHeader: 'accessToken',
    encoding: 'query',
    request: t.type({}),
    response: lookupResponse,
    idempotent: true,
  })

/** Operation 8, sources. Its method, path and payload are not shown: these are the sandbox's, a config may name others. */
export const lookupSources = lookupRoute('sources')

/** Operation 8, categories of analysed data. */
export const lookupCategories = lookupRoute('categories')

/** A token for an application's id and secret (Authentication 2); what is not shown of it is as the config's defaults have it. */
export const issueToken = defineRoute({
  name: 'issue a token',
  method: 'POST',
  path: '/oauth/token',
  tokenHeader: undefined,
  encoding: 'json',
  request: TokenRequest,
  response: jsonResponse(IssuedToken),
  idempotent: true,
})
