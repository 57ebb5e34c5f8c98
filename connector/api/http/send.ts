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

/** The masked message of the documented error body; empty where the body is another one. */
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
 * The error of a response with an error status or a redirect. `hidden`: secrets and the texts of the request, which the
 * body may repeat.
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
  /** A request is sent, one for a token included. */
  readonly onSend?: () => void
  /** A token was issued. */
  readonly onToken?: (report: TokenReport) => void
  /** A response came; `millis` from sending to its last byte. */
  readonly onRequest?: (request: {
    readonly operation: string
    readonly status: number
    readonly millis: number
    readonly headers: ResponseHeaders
  }) => void
  /** A request will be sent again after `delay` milliseconds. */
  readonly onRetry?: (retry: { readonly operation: string; readonly error: ApiError; readonly delay: number }) => void
  /** Something about the connection that a person should know; each is reported once. */
  readonly onNotice?: (message: string) => void
  /** The service asks to wait; `until` in milliseconds since 1970. */
  readonly onWait?: (until: number) => void
}

type SendOptions = {
  readonly baseUrl: URL
  readonly token: TokenSource
  readonly throttle: Throttle
  readonly transport: Pick<Transport, 'exchange'>
  readonly retryLimits: RetryLimits
  readonly clock: Clock
  /** Texts that no error may hold. */
  readonly secrets: ReadonlyArray<string>
  readonly observer: RequestObserver
}

/**
 * The service's clock when it began to answer: the Date of the response minus its duration; unknown for a cached
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

/** The status of an error; 401 where a body with status 200 reports it. Other codes of a body are about the request. */
const statusOf = (error: ApiError): number =>
  error._tag === 'Http' ? error.status : isTokenError(error) ? 401 : Number.NaN

/**
 * Whether an error may mean that the token expired. The transparency operations (header Access-Token) answer 401 then;
 * what the others answer is not documented, so for them it may be 400, 401 or 403. Deployments have been seen to report
 * it inside a 200, with a code that is not documented either; it is believed where the request may be sent twice. An
 * outage or a rate limit reported so is none: another token does not help.
 */
const isTokenExpiry = (header: string, idempotent: boolean, error: ApiError): boolean => {
  if (error._tag === 'Application' && idempotent) return outageKind(error) === undefined
  return header === 'Access-Token' ? statusOf(error) === 401 : [400, 401, 403].includes(statusOf(error))
}

/** How old a token must be for the error to mean that it expired, milliseconds; a 401 is always about the token. */
const minTokenAge = (error: ApiError): number => (statusOf(error) === 401 ? 0 : 60_000)

/** Turns an error that asks for a wait beyond `limit` into one that says so. */
const limitWait =
  (limit: number) =>
  (error: ApiError): ApiError =>
    'retryAfter' in error && error.retryAfter !== undefined && error.retryAfter > limit
      ? { _tag: 'Wait', wait: error.retryAfter, limit }
      : error

/**
 * An application error may repeat texts of the request; the headers beside an outage or a rate limit may say how long
 * to wait.
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

/** A request of an operation, as it is sent again and again until it has its answer. */
type Call<O> = {
  readonly route: Pick<Route<unknown, O>, 'name' | 'response' | 'idempotent'>
  readonly request: HttpRequest
  /** The texts of the request, which no error may repeat. */
  readonly sentTexts: () => ReadonlyArray<string>
}

/** Sends a request once, with a token or without. */
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
 * Why a request with a token is sent again: how often a token was refused, how often it had expired before its turn
 * came, and the wait before the next attempt.
 */
type Repetition = { readonly refusals: number; readonly expiries: number; readonly wait?: FailedAttempt }

/** Then the request is sent as it is, and the service says what is wrong. */
const maxExpiries = 3

/** A service of several hosts may know a new token some hundred milliseconds after its issue only. */
const newTokenWait = 2_000

/**
 * What follows on an error. A token that is refused is replaced by another one; where that is refused, too, it may be
 * too new, and the request waits once. After a third refusal the credentials are wrong.
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
 * Sends a request when its turn has come; a Left inside where another attempt must follow. A token that expired before
 * is not sent, so that turn is not used.
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

/** Sends a request with a token, until its answer says something else than that the token was refused. */
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
 * SendRequest over HTTP. Each attempt gets its token, whose exchange takes a turn of its own, and then waits for the
 * throttle; the retry policy says whether another follows. So the service and the issuer of tokens together see no more
 * requests than configured.
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
