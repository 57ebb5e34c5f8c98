import type { IncomingMessage } from 'node:http'
import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as TE from 'fp-ts/TaskEither'
import * as t from 'io-ts'
import {
  type Api,
  type ApiError,
  defineRoute,
  type IssuedToken,
  jsonResponse,
  type LookupQuery,
  type LookupRoutes,
  moveLookup,
  type RawResponse,
  type Route,
  routes,
  toDecodeError,
  toInstant,
} from '../../api'
import { defined, parseExactJson } from '../../cdk'
import { alterRequest, corruptResponse, faultReply } from '../faults/corrupt'
import type { Fault } from '../faults/plan'
import {
  badRequestError,
  bodySizeError,
  expiredTokenError,
  missingTokenError,
  type OperationName,
  permissionError,
  rateLimitError,
  type TokenRegistry,
} from '../operations/operation'
import { apiErrorReply, type Reply } from './reply'

/** The largest body that the server reads. Real requests are much smaller. */
const maxBodyBytes = 64 * 1024 * 1024

/** Reads the whole body; undefined if it is longer than `maxBodyBytes`. */
export const readBody = async (request: IncomingMessage): Promise<Buffer | undefined> => {
  const chunks: Array<Buffer> = []
  let size = 0
  for await (const chunk of request) {
    size += chunk.length
    if (size <= maxBodyBytes) chunks.push(chunk)
  }
  return size > maxBodyBytes ? undefined : Buffer.concat(chunks)
}

const loneSurrogate = /\p{Surrogate}/u

/** All texts in a value are valid Unicode. JSON can contain half of a surrogate pair, which DuckDB cannot store. */
const isWellFormed = (value: unknown): boolean => {
  if (typeof value === 'string') return !loneSurrogate.test(value)
  if (typeof value !== 'object' || value === null) return true
  return Object.entries(value).every(([key, field]) => !loneSurrogate.test(key) && isWellFormed(field))
}

/** The parts of an HTTP request that contain the input of an operation. */
type OperationRequest = {
  readonly query: URLSearchParams
  readonly contentType: string
  readonly body: Buffer
}

/** An operation as the server calls it: its route, and how to decode a request and answer it. */
export type Handler = Pick<Route<never, never>, 'name' | 'method' | 'path' | 'tokenHeader'> & {
  readonly operation: OperationName
  /** The input as a plain value, which `answer` checks. */
  readonly decodeInput: (request: OperationRequest) => E.Either<ApiError, unknown>
  readonly answer: (value: unknown) => Promise<E.Either<ApiError, RawResponse>>
}

/** A key with one value becomes a text, a key with several values a list. */
const decodePairs = (pairs: URLSearchParams): unknown =>
  Object.fromEntries(
    [...new Set(pairs.keys())].map((key) => {
      const values = pairs.getAll(key)
      return [key, values.length === 1 ? values[0] : values]
    }),
  )

const decodeJsonBody = ({ contentType, body }: OperationRequest): E.Either<ApiError, unknown> =>
  /^application\/json\b/i.test(contentType)
    ? pipe(
        // The check also throws if the value is nested too deeply. Such a body is refused in the same way.
        E.tryCatch(
          () => {
            const value = parseExactJson(body.toString('utf8'))
            return { value, wellFormed: isWellFormed(value) }
          },
          () => badRequestError('the body is not JSON'),
        ),
        E.filterOrElse(
          ({ wellFormed }) => wellFormed,
          () => badRequestError('the body has a text that is not valid Unicode'),
        ),
        E.map(({ value }) => value),
      )
    : E.left(badRequestError('expected the header Content-Type: application/json'))

const inputDecoders: Readonly<Record<Route<never, never>['encoding'], Handler['decodeInput']>> = {
  json: decodeJsonBody,
  query: ({ query }) => E.right(decodePairs(query)),
  // The gateway converts a query into a form, which replaces the body.
  form: ({ query, body }) => E.right(decodePairs(query.size > 0 ? query : new URLSearchParams(body.toString('utf8')))),
}

const createHandler =
  (operation: OperationName) =>
  <I, O>(route: Route<I, O>, run: (input: I) => TE.TaskEither<ApiError, O>): Handler => ({
    operation,
    name: route.name,
    method: route.method,
    path: route.path,
    tokenHeader: route.tokenHeader,
    decodeInput: inputDecoders[route.encoding],
    answer: async (value) => {
      const input = route.request.decode(value)
      if (E.isLeft(input)) {
        const { path, message } = toDecodeError(input.left)
        return E.left(badRequestError(`${path}: ${message}`))
      }
      return E.map(route.response.encode)(await run(input.right)())
    },
  })

/** Handlers of the operations that the specification describes, from the same routes that the client uses. */
const createSpecifiedHandlers = (api: Api): ReadonlyArray<Handler> => [
  createHandler('retrieveReviews')(routes.retrieveReviews, api.retrieveReviews),
  createHandler('retrieveComments')(routes.retrieveComments, api.retrieveComments),
  createHandler('retrieveCommentsByForm')(routes.retrieveCommentsByForm, api.retrieveCommentsByForm),
  createHandler('createVisitRecords')(routes.createVisitRecords, api.createVisitRecords),
  createHandler('syncLocations')(routes.syncLocations, api.syncLocations),
  createHandler('exportReviews')(routes.exportReviews, api.exportReviews),
  createHandler('exportDeletedReviews')(routes.exportDeletedReviews, api.exportDeletedReviews),
]

/** The token exchange of published deployments, with an answer that `printPublishedToken` makes. */
export const publishedTokenRoute = defineRoute({ ...routes.issueToken, response: jsonResponse(t.unknown) })

/** A token in the form of published deployments: its expiry is a time in UTC without a zone. */
const printPublishedToken = ({ accessToken, expiresIn }: IssuedToken, now: number): unknown => ({
  accessToken,
  status: { message: 'Success', code: 200 },
  expiresIn: toInstant(now + expiresIn * 1000)
    .slice(0, 19)
    .replace('T', ' '),
})

const publishedCredentialsError: ApiError = {
  _tag: 'Application',
  code: '401',
  message: 'Unknown application, or a wrong secret',
}

/** The sources of published deployments: an array. */
export const publishedSourcesRoute = defineRoute({ ...routes.lookupSources, path: '/api/reputation/v1/sources' })

/** The persons or the locations that a token may request in published deployments. The connector does not use it. */
export const publishedEntitiesRoute = defineRoute({
  ...routes.lookupSources,
  name: 'list entities',
  path: '/api/service/v1/access/entities',
})

const SourceList = t.type({ sources: t.unknown })

/**
 * What the sandbox behaves like: the specification, or observed published deployments where the specification is
 * silent.
 */
export type ServiceKind = 'specification' | 'published'

/**
 * What a published deployment serves in addition to the `Api`. The expiry of a token needs the clock in milliseconds.
 */
export type PublishedService = {
  readonly now: () => number
  readonly listEntities: (query: LookupQuery) => TE.TaskEither<ApiError, unknown>
}

const createPublishedHandlers = (api: Api, { now, listEntities }: PublishedService): ReadonlyArray<Handler> => [
  createHandler('listEntities')(publishedEntitiesRoute, listEntities),
  createHandler('lookupSources')(publishedSourcesRoute, (query) =>
    pipe(
      api.lookupSources(query),
      TE.map((answer) => (SourceList.is(answer) ? answer.sources : answer)),
    ),
  ),
  createHandler('lookupLocations')(routes.lookupLocations, api.lookupLocations),
  createHandler('issueToken')(publishedTokenRoute, (request) =>
    pipe(
      api.issueToken(request),
      TE.bimap(
        () => publishedCredentialsError,
        (issued) => printPublishedToken(issued, now()),
      ),
    ),
  ),
]

const createSandboxHandlers = (api: Api, lookups: LookupRoutes): ReadonlyArray<Handler> => [
  createHandler('lookupSources')(moveLookup(routes.lookupSources, lookups.sources), api.lookupSources),
  createHandler('lookupCategories')(moveLookup(routes.lookupCategories, lookups.categories), api.lookupCategories),
  ...(lookups.locations === undefined
    ? []
    : [createHandler('lookupLocations')(moveLookup(routes.lookupLocations, lookups.locations), api.lookupLocations)]),
  createHandler('issueToken')(routes.issueToken, api.issueToken),
]

/** A handler for each operation of `servedRoutes`, for the specification unless `published` is given. */
export const createHandlers = (
  api: Api,
  lookups: LookupRoutes = {},
  published?: PublishedService,
): ReadonlyArray<Handler> => [
  ...createSpecifiedHandlers(api),
  ...(published === undefined ? createSandboxHandlers(api, lookups) : createPublishedHandlers(api, published)),
]

/** What all requests of a server share. */
export type RequestContext = {
  readonly tokenRegistry: TokenRegistry
  /** Counts a request; returns the milliseconds to wait if it exceeds the rate. */
  readonly checkRate: (now: number) => number | undefined
  /** The clock in milliseconds. */
  readonly now: () => number
  /** An expired token is refused inside a 200 response, as published deployments do. */
  readonly refusesInsideAnswer: boolean
  /** The text of each operation's last answer, for faults that repeat it. */
  readonly lastAnswers: Map<OperationName, string>
}

/**
 * The reply to a request, and its decoded input for the log. Without a reply the server breaks the connection or leaves
 * it open.
 */
type OperationOutcome = { readonly reply?: Reply; readonly input?: unknown }

const readToken = (request: IncomingMessage, { tokenHeader }: Handler): string | undefined => {
  const value = tokenHeader === undefined ? undefined : request.headers[tokenHeader.toLowerCase()]
  return Array.isArray(value) ? value[0] : value
}

/** Checks rate, token and permission; undefined if the request is allowed. */
const checkAccess = (context: RequestContext, handler: Handler, request: IncomingMessage): ApiError | undefined => {
  if (handler.tokenHeader === undefined) return undefined
  const wait = context.checkRate(context.now())
  if (wait !== undefined) return rateLimitError(wait)
  const token = readToken(request, handler)
  const granted = context.tokenRegistry.grantedOperations(token)
  if (granted === undefined && context.refusesInsideAnswer && context.tokenRegistry.isExpired(token))
    return expiredTokenError
  if (granted === undefined) return missingTokenError(handler.operation, handler.tokenHeader)
  return granted.includes(handler.operation) ? undefined : permissionError
}

const refuseRequest = (error: ApiError, input?: unknown): OperationOutcome => {
  const reply = apiErrorReply(error)
  return { input, ...defined({ reply }) }
}

/** Performs one request of an operation, with its fault if it has one. */
export const performOperation = async (
  context: RequestContext,
  handler: Handler,
  fault: Fault | undefined,
  query: URLSearchParams,
  request: IncomingMessage,
): Promise<OperationOutcome> => {
  const body = await readBody(request)
  if (fault?.kind === 'reset' || fault?.kind === 'hang') return {}
  const replacement = fault === undefined ? undefined : faultReply(fault, context.now())
  if (replacement !== undefined) return { reply: replacement }
  if (fault?.kind === 'revoke') context.tokenRegistry.revoke(readToken(request, handler))
  const error = body === undefined ? bodySizeError(maxBodyBytes) : checkAccess(context, handler, request)
  if (error !== undefined || body === undefined) return refuseRequest(error ?? bodySizeError(maxBodyBytes))
  const value = handler.decodeInput({ query, contentType: request.headers['content-type'] ?? '', body })
  if (E.isLeft(value)) return refuseRequest(value.left)
  const answer = await handler.answer(alterRequest(fault, value.right))
  if (E.isLeft(answer)) return refuseRequest(answer.left, value.right)
  const previous = context.lastAnswers.get(handler.operation)
  const reply = { status: 200, body: answer.right.body }
  context.lastAnswers.set(handler.operation, Buffer.from(reply.body).toString('utf8'))
  return { reply: fault === undefined ? reply : corruptResponse(fault, reply, previous), input: value.right }
}
