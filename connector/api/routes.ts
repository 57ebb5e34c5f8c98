import * as t from 'io-ts'
import { orApplicationError } from './application-error'
import { commentsAnswer, lookupAnswer, reviewsAnswer } from './envelope'
import { CommentsEntity, ReviewsEntity } from './model/entity'
import { DeletedExportRequest, ExportRequest } from './model/export'
import { Location, LocationSyncResult } from './model/location'
import { DeletedReview, Review } from './model/review'
import { IssuedToken, TokenRequest } from './model/token'
import { CommentsFilter, CommentsForm, CommentsQuery, ReviewsFilter, ReviewsRequest } from './model/transparency'
import { VisitRecord } from './model/visit-record'
import { outcomes } from './outcomes'
import { bytes, json, route } from './route'

/** Operation 1: reviews and summary of one person, location or roll-up entity. */
export const retrieveReviews = route({
  name: 'retrieve reviews',
  method: 'POST',
  path: '/api/external/bsr/v2/reviews',
  token: 'Access-Token',
  send: 'json',
  request: ReviewsRequest,
  response: reviewsAnswer(ReviewsEntity, ReviewsFilter),
  idempotent: true,
})

/** Operation 2: comments and summary of one person, location or roll-up entity. */
export const retrieveComments = route({
  name: 'retrieve comments',
  method: 'GET',
  path: '/api/bsr/comments',
  token: 'Access-Token',
  send: 'query',
  request: CommentsQuery,
  response: commentsAnswer(CommentsEntity, CommentsFilter),
  idempotent: true,
})

/** Operation 3: the same for many. The service also takes the form's keys in the query, but never both. */
export const retrieveCommentsByForm = route({
  name: 'retrieve comments by form',
  method: 'POST',
  path: '/api/bsr/comments',
  token: 'Access-Token',
  send: 'form',
  request: CommentsForm,
  response: commentsAnswer(CommentsEntity, CommentsFilter),
  idempotent: true,
})

/** Operation 4: visits, reported one by one. Sent twice, only a record with a visitRecordId counts once. */
export const createVisitRecords = route({
  name: 'create visit records',
  method: 'POST',
  path: '/api/service/visitrecord/create',
  token: 'accessToken',
  send: 'json',
  request: t.readonlyArray(VisitRecord),
  response: orApplicationError(outcomes),
  idempotent: false,
})

/** Operation 5: locations to create, update and deactivate; sent twice, they are what they were. */
export const syncLocations = route({
  name: 'sync locations',
  method: 'POST',
  path: '/api/entity/sync/locations',
  token: 'accessToken',
  send: 'json',
  request: t.readonlyArray(Location),
  response: orApplicationError(json(LocationSyncResult)),
  idempotent: true,
})

/** Operation 6: reviews that arrived or changed after a time. The answer is left as bytes. */
export const exportReviews = route({
  name: 'export reviews',
  method: 'POST',
  path: '/api/reputation/v1/reviews',
  token: 'accessToken',
  send: 'json',
  request: ExportRequest,
  response: bytes(Review),
  idempotent: true,
})

/** Operation 7: reviews that were deleted after a time. The answer is left as bytes. */
export const exportDeletedReviews = route({
  name: 'export deleted reviews',
  method: 'POST',
  path: '/api/reputation/v1/deleted-reviews',
  token: 'accessToken',
  send: 'json',
  request: DeletedExportRequest,
  response: bytes(DeletedReview),
  idempotent: true,
})

const lookup = (what: string) =>
  route({
    name: `look up ${what}`,
    method: 'GET',
    path: `/api/reputation/v1/lookup/${what}`,
    token: 'accessToken',
    send: 'query',
    request: t.type({}),
    response: lookupAnswer,
    idempotent: true,
  })

/** Operation 8, sources. Its method, path and payload are not shown: these are the sandbox's, a config may name others. */
export const lookupSources = lookup('sources')

/** Operation 8, categories of analysed data. */
export const lookupCategories = lookup('categories')

/** A token for an application's id and secret (Authentication 2); what is not shown of it is as the config's defaults have it. */
export const issueToken = route({
  name: 'issue a token',
  method: 'POST',
  path: '/oauth/token',
  token: undefined,
  send: 'json',
  request: TokenRequest,
  response: json(IssuedToken),
  idempotent: true,
})
