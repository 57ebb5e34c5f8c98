import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import type { TaskEither } from 'fp-ts/TaskEither'
import * as TE from 'fp-ts/TaskEither'
import { defined } from '../../cdk'
import { type ApiError, isTokenError, maskMessage, outageKind } from '../error'
import type { RawResponse, Route, SendRequest } from '../route'
import type { Clock, Throttle } from './rate-limit'
import { encodeRequest, type HttpRequest, type ResponseHeaders } from './request'
import {
  createRetryPolicy,
  type FailedAttempt,
  isRateLimitError,
  isStrayRedirect,
  type RetryLimits,
  retryRequest,
} from './retry'
import { parseHeaderDate, parseOutageWait, parseRetryAfter } from './retry-after'
import type { TokenReport, TokenSource } from './token'
import type { HttpResponse, Transport } from './transport'

/** Every string inside a value. */
const collectTexts = (value: unknown): ReadonlyArray<string> =>
  typeof value === 'string'
    ? [value]
    : typeof value === 'object' && value !== null
      ? Object.values(value).flatMap(collectTexts)
      : []

/** The masked message in a body in the documented error format; empty for any other body. */
const readErrorMessage = (body: Buffer, hidden: ReadonlyArray<string>): string => {
  try {
    const { status } = JSON.parse(body.subarray(0, 100_000).toString('utf8'))
    const text = [status.message, status.code].find((part) => typeof part === 'string' || typeof part === 'number')
    return maskMessage(String(text ?? ''), hidden)
  } catch {
    return ''
  }
}

/**
 * The error for a response with an error status or a redirect. `hidden`: secrets and the strings of the request, which
 * the body may repeat.
 */
const toHttpError = (
  { status, headers, body, forwarder }: HttpResponse,
  url: URL,
  now: number,
  hidden: ReadonlyArray<string>,
): ApiError & { _tag: 'Http' } => {
  if (isStrayRedirect(status, headers))
    return { _tag: 'Http', status, message: `the service answered ${status}`, isStray: true }
  if (status < 400) {
    const target = headers.location ?? ''
    const host = URL.canParse(target, url.href) ? new URL(target, url).origin : 'another address'
    const message =
      forwarder === undefined
        ? `base_url redirects to ${host}. Configure the address it redirects to`
        : `base_url, or ${forwarder} before it, redirects to ${host}. Find out which; a proxy may want a log-in first`
    return { _tag: 'Http', status, message }
  }
  const message = readErrorMessage(body, hidden) || `the service answered ${status}`
  const retryAfter = parseRetryAfter(status, headers, now)
  return { _tag: 'Http', status, message, ...defined({ retryAfter, forwarder }) }
}

/** Called as requests are sent. */
export type RequestObserver = {
  /** Called for every request, including token requests. */
  readonly onSend?: () => void
  /** A token was issued. */
  readonly onToken?: (report: TokenReport) => void
  /** Called for every response. `millis`: from sending to the last byte. */
  readonly onRequest?: (request: {
    readonly operation: string
    readonly status: number
    readonly millis: number
    readonly headers: ResponseHeaders
  }) => void
  /** Called before a request is sent again after `delay` milliseconds. */
  readonly onRetry?: (retry: { readonly operation: string; readonly error: ApiError; readonly delay: number }) => void
  /** Called with something that a person should know about the connection. Each notice is sent once. */
  readonly onNotice?: (message: string) => void
  /** Called if the service asks to wait. `until`: milliseconds since 1970. */
  readonly onWait?: (until: number) => void
}

type SendOptions = {
  readonly baseUrl: URL
  readonly token: TokenSource
  readonly throttle: Throttle
  readonly transport: Pick<Transport, 'exchange'>
  readonly retryLimits: RetryLimits
  readonly clock: Clock
  /** Strings that must not appear in any error. */
  readonly secrets: ReadonlyArray<string>
  readonly observer: RequestObserver
}

/**
 * The service's clock when it began to answer: the Date of the response minus its duration. Unknown for a cached
 * response.
 */
const serverTime = ({ headers, millis }: HttpResponse): number | undefined => {
  const date = parseHeaderDate(headers.date)
  return Number.isNaN(date) || Number(headers.age ?? 0) > 0 ? undefined : date - Math.ceil(millis)
}

const toRawResponse = (response: HttpResponse): RawResponse => {
  const { body, release } = response
  const hasNoContent = response.status === 204 || undefined
  return { body, ...defined({ release, hasNoContent, servedAt: serverTime(response) }) }
}

/**
 * The status of an error, or 401 if a body with status 200 reports a token error. Other codes in a body are about the
 * request.
 */
const statusOf = (error: ApiError): number =>
  error._tag === 'Http' ? error.status : isTokenError(error) ? 401 : Number.NaN

/**
 * True if an error may mean that the token expired. The transparency operations (header Access-Token) then answer 401.
 * For the others this is not documented, so it may be 400, 401 or 403. Some deployments report it inside a 200, with an
 * undocumented code; that counts only if the request may be sent twice. An outage or a rate limit reported inside a 200
 * does not count, because another token would not help.
 */
const isTokenExpiry = (header: string, idempotent: boolean, error: ApiError): boolean => {
  if (error._tag === 'Application' && idempotent) return outageKind(error) === undefined
  return header === 'Access-Token' ? statusOf(error) === 401 : [400, 401, 403].includes(statusOf(error))
}

/**
 * The minimum age of a token, in milliseconds, for the error to mean that it expired. A 401 is always about the token.
 */
const minTokenAge = (error: ApiError): number => (statusOf(error) === 401 ? 0 : 60_000)

/** Replaces an error that asks for a wait beyond `limit` by an error that says so. */
const limitWait =
  (limit: number) =>
  (error: ApiError): ApiError =>
    'retryAfter' in error && error.retryAfter !== undefined && error.retryAfter > limit
      ? { _tag: 'Wait', wait: error.retryAfter, limit }
      : error

/**
 * Completes an application error: removes strings of the request that it may repeat, and adds the wait from the headers
 * of an outage or rate limit.
 */
const completeApplicationError =
  ({ headers }: HttpResponse, now: number, hidden: () => ReadonlyArray<string>) =>
  (error: ApiError): ApiError => {
    if (error._tag !== 'Application') return error
    const masked = { ...error, message: maskMessage(error.message, hidden()) }
    const kind = outageKind(error)
    const retryAfter = kind === undefined ? undefined : parseOutageWait(kind, headers, now)
    return { ...masked, ...defined({ retryAfter }) }
  }

/** A request of an operation, through all its attempts until it is answered. */
type Call<O> = {
  readonly route: Pick<Route<unknown, O>, 'name' | 'response' | 'idempotent'>
  readonly request: HttpRequest
  /** The strings in the request, which must not appear in errors. */
  readonly sentTexts: () => ReadonlyArray<string>
}

/** Sends a request once, with or without a token. */
const exchange = <O>(options: SendOptions, call: Call<O>, header?: string, token?: string): TaskEither<ApiError, O> => {
  const { baseUrl, transport, clock, secrets, observer } = options
  const { route, request, sentTexts } = call
  const headers = header === undefined ? request.headers : { ...request.headers, [header]: token ?? '' }
  const hidden = () => [...secrets, ...(token === undefined ? [] : [token]), ...sentTexts()]
  return pipe(
    transport.exchange({ ...request, ...defined({ headers }) }),
    TE.flatMapEither((response) => {
      const { status, millis } = response
      observer.onRequest?.({ operation: route.name, status, millis, headers: response.headers })
      return status >= 200 && status < 300
        ? pipe(
            route.response.decode(toRawResponse(response)),
            E.mapLeft(completeApplicationError(response, clock.now(), hidden)),
          )
        : E.left({
            ...toHttpError(response, request.url, clock.now(), hidden()),
            ...defined({ basePath: status === 404 ? baseUrl.pathname : undefined }),
          })
    }),
  )
}

/**
 * Why a request with a token is sent again: how often a token was refused or had expired before its turn, and the wait
 * before the next attempt.
 */
type Repetition = { readonly refusals: number; readonly expiries: number; readonly wait?: FailedAttempt }

/** After that, the request is sent anyway, and the service says what is wrong. */
const maxExpiries = 3

/** A service with several hosts may not recognize a new token for some hundred milliseconds. */
const newTokenWait = 2_000

/**
 * Decides what follows an error. A refused token is replaced. If the new one is refused too, it may be too new, so the
 * request waits once. After a third refusal, the credentials are wrong.
 */
const afterError = <O>(
  { token }: SendOptions,
  { route }: Call<O>,
  header: string,
  value: string,
  { refusals, expiries }: Repetition,
  error: ApiError,
): E.Either<ApiError, Repetition> => {
  if (refusals === 0 && isTokenExpiry(header, route.idempotent, error) && token.refuse(value, minTokenAge(error)))
    return E.right({ refusals: 1, expiries })
  if (refusals === 1 && statusOf(error) === 401)
    return E.right({ refusals: 2, expiries, wait: { error, delay: newTokenWait } })
  return E.left(error)
}

/**
 * Sends a request when its turn comes. An inner Left means that another attempt must follow. If the token has expired
 * by then, it is not sent and the turn goes unused.
 */
const exchangeInTurn = <O>(
  options: SendOptions,
  call: Call<O>,
  header: string,
  issued: string,
  repetition: Repetition,
): TaskEither<ApiError, E.Either<Repetition, O>> =>
  pipe(
    TE.fromIO(options.token.validToken),
    TE.flatMap((valid): TaskEither<ApiError, E.Either<Repetition, O>> => {
      const { refusals, expiries } = repetition
      if (valid === undefined && expiries < maxExpiries) return TE.right(E.left({ refusals, expiries: expiries + 1 }))
      const value = valid ?? issued
      return pipe(
        exchange(options, call, header, value),
        TE.map((answer) => E.right<Repetition, O>(answer)),
        TE.orElse((error) =>
          pipe(
            afterError(options, call, header, value, repetition, error),
            E.map((next) => E.left<Repetition, O>(next)),
            TE.fromEither,
          ),
        ),
      )
    }),
  )

const waitForRetry =
  ({ observer, clock }: SendOptions, operation: string) =>
  ({ error, delay }: FailedAttempt): TaskEither<never, void> =>
    TE.fromTask(() => {
      observer.onRetry?.({ operation, error, delay })
      if (isRateLimitError(error)) observer.onWait?.(clock.now() + delay)
      return clock.wait(delay)()
    })

/** Sends a request with a token until the answer is something other than a refusal of the token. */
const exchangeWithToken = <O>(
  options: SendOptions,
  call: Call<O>,
  header: string,
  repetition: Repetition = { refusals: 0, expiries: 0 },
): TaskEither<ApiError, O> =>
  pipe(
    repetition.wait === undefined ? TE.right(undefined) : waitForRetry(options, call.route.name)(repetition.wait),
    TE.flatMap(() => options.token.getToken),
    TE.flatMap((issued) => options.throttle.run(exchangeInTurn(options, call, header, issued, repetition))),
    TE.flatMap(E.match((next) => exchangeWithToken(options, call, header, next), TE.right)),
  )

/**
 * SendRequest over HTTP. Each attempt gets a token and then waits for the throttle; a token exchange takes its own
 * turn. The retry policy decides if another attempt follows. So the service and the token issuer together never see
 * more requests than configured.
 */
export const createSend = (options: SendOptions): SendRequest => {
  const { baseUrl, throttle, retryLimits, clock } = options
  const policy = createRetryPolicy(retryLimits, clock.random)
  return (route) => (input) => {
    const call = {
      route,
      request: encodeRequest(baseUrl)(route)(input),
      sentTexts: () => collectTexts(route.request.encode(input)).filter((text) => text.length > 2),
    }
    return pipe(
      route.tokenHeader === undefined
        ? throttle.run(exchange(options, call))
        : exchangeWithToken(options, call, route.tokenHeader),
      TE.mapLeft(limitWait(retryLimits.maxWait)),
      retryRequest(policy(route.idempotent), waitForRetry(options, route.name)),
    )
  }
}
