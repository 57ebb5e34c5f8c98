/**
 * The service as its specification describes it: codecs of its resources (model/), its operations as values (routes), what
 * their responses mean (route) and what can go wrong (error). `createHttpClient` sends requests with rate limit, token and
 * retries; `createApi` makes an `Api`, one function per operation, of any way to send. In: a configuration and the input of an
 * operation. Out: its decoded response, or the bytes of an export, or an `ApiError`.
 */
export { Instant, Int64, Integer, toInstant, toMillis } from '../cdk'
export {
  type ApiError,
  applicationError,
  describeApplicationError,
  isExportError,
  isRefusalInBody,
  isSuccessStatus,
  isTokenError,
  isUnreachableCode,
  maskAttributeName,
  outageKind,
  toFailure,
} from './error'
export { type ClientConfig, type ClientOptions, createHttpClient, type HttpClient } from './http/client'
export { type Clock, systemClock } from './http/rate-limit'
export {
  checkRedisUrl,
  checkUrl,
  createRetryPolicy,
  mayHaveArrived,
  parseHeaderDate,
  type RetryLimits,
  type RetryPolicy,
  retryRequest,
} from './http/request'
export type { TokenReport } from './http/token'
export { type ExpiryFormat, expiryFormat, resolveTokenUrl } from './http/token-exchange'
export { type BufferPool, createBufferPool } from './http/transport'
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
export {
  CommentsResponse,
  defineRoute,
  IssuedToken,
  jsonResponse,
  type RawResponse,
  ReviewsResponse,
  type Route,
  TokenRequest,
  toDecodeError,
} from './route'
export { type Api, createApi, issueToken, type LookupRoutes, moveLookup, routes } from './routes'
