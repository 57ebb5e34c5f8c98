/**
 * The service as its specification describes it: codecs of its resources (model/), its operations as values (routes),
 * the meaning of their responses (route), and its errors (error). `createHttpClient` sends requests with rate limit,
 * token and retries. `createApi` makes an `Api`, one function per operation, from any way to send. Input: a
 * configuration, and the input of an operation. Output: its decoded response, the bytes of an export, or an `ApiError`.
 */
export { Instant, Int64, Integer, toInstant, toMillis } from '../cdk'
export { CommentsResponse, ReviewsResponse } from './envelopes'
export {
  type ApiError,
  applicationError,
  describeApplicationError,
  isExportError,
  isRefusalInBody,
  isTokenError,
  isUnreachableCode,
  maskAttributeName,
  outageKind,
  toFailure,
} from './error'
export { type BufferPool, createBufferPool } from './http/buffers'
export { type ClientConfig, type ClientOptions, createHttpClient, type HttpClient } from './http/client'
export { type Clock, systemClock } from './http/rate-limit'
export { createRetryPolicy, mayHaveArrived, type RetryLimits, type RetryPolicy, retryRequest } from './http/retry'
export { parseHeaderDate } from './http/retry-after'
export type { TokenReport } from './http/token'
export { resolveTokenUrl } from './http/token-exchange'
export { expiryFormat } from './http/token-expiry'
export { checkRedisUrl, checkUrl } from './http/url'
export {
  type LookupList,
  type LookupListError,
  type LookupListRequest,
  type LookupPaging,
  type LookupRecord,
  listAnswerNames,
  publishedLocationOrder,
  publishedLocationPaging,
  readLookupList,
} from './lookup-list'
export {
  AnnotationResponse,
  Comment,
  CommentsForm,
  EntitySummary,
  EnvelopeStatus,
  LookupQuery,
  OverallRating,
  Rating,
  ReviewsRequest,
  TransparencyReview,
} from './model/entity'
export { IssuedToken, TokenRequest } from './model/issued-token'
export { type QuestionKind, questionKinds } from './model/question-types'
export {
  Content,
  DeletedExportRequest,
  DeletedReview,
  Engagement,
  ExportFilter,
  ExportRequest,
  Liability,
  Review,
  Sentiment,
  TaskDetails,
} from './model/review'
export { describeAttribute, optionalAttributes, toSecondInstant } from './model/scalar'
export { Location, LocationSyncResult, ManagedLocation, VisitRecord, VisitRecordResult } from './model/written'
export { defineRoute, jsonResponse, type RawResponse, type Route, toDecodeError } from './route'
export { type Api, createApi, issueToken, type LookupRoutes, moveLookup, routes } from './routes'
