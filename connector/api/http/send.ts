import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as O from 'fp-ts/Option'
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
  retryDelay,
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
  /** Something about the connection that a person should know; each is told once. */
  readonly onNotice?: (message: string) => void
  /** The service asks to wait; `until` in milliseconds since 1970. */
  readonly onWait?: (until: number) => void
}

type SendOptions = {
  readonly baseUrl: URL
  readonly token: TokenSource
  readonly throttle: Throttle
  /** Whether a turn may hold two requests after turns that were not used. */
  readonly mayPair: boolean
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
 * what the others answer is not documented, so for them it may be 400, 401 or 403. Deployments have been seen to tell
 * it inside a 200, with a code that is not documented either; it is believed where the request may be sent twice. An
 * outage or a rate limit told so is none: another token does not mend it.
 */
const isTokenExpiry = ({ header, idempotent }: TokenUse, error: ApiError): boolean => {
  if (error._tag === 'Application' && idempotent) return outageKind(error) === undefined
  return header === 'Access-Token' ? statusOf(error) === 401 : [400, 401, 403].includes(statusOf(error))
}

type TokenUse = { readonly header: string; readonly idempotent: boolean }

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

/**
 * `mayRenew`: the token may be refused once. `unusedTurns`: in which the request was not sent, because its token had expired.
 * `early`: the attempts whose token may have been too new.
 */
type AttemptRules = {
  readonly mayRenew: boolean
  readonly unusedTurns: number
  readonly early: ReadonlyArray<FailedAttempt>
}

const maxUnusedTurns = 3

/** With the delays between them at most 3.5 s, so that wrong credentials are told soon. */
const maxEarlyAttempts = 3

/**
 * SendRequest over HTTP. Each attempt gets its token, whose exchange takes a turn of its own, and then waits for the
 * throttle; the retry policy says whether another follows. So the service and the issuer of tokens together see no more
 * requests than configured.
 */
export const createSend = (options: SendOptions): SendRequest => {
  const { baseUrl, token, throttle, mayPair, transport, retryLimits, clock, secrets, observer } = options
  const policy = createRetryPolicy(retryLimits, clock.random)

  return <I, O>(route: Route<I, O>) => {
    const waitForRetry = ({ error, delay }: FailedAttempt): TaskEither<never, void> =>
      TE.fromTask(() => {
        observer.onRetry?.({ operation: route.name, error, delay })
        if (isRateLimitError(error)) observer.onWait?.(clock.now() + delay)
        return clock.wait(delay)()
      })

    /** `hidden`: texts that no error may repeat. */
    const exchange = (request: HttpRequest, hidden: () => ReadonlyArray<string>): TaskEither<ApiError, O> =>
      pipe(
        transport.exchange(request),
        TE.flatMapEither((response) => {
          const { status, millis, headers } = response
          const servedAt = serverTime(response)
          if (servedAt !== undefined) token.noteServiceTime(servedAt)
          observer.onRequest?.({ operation: route.name, status, millis, headers })
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

    return (input: I) => {
      const request = encodeRequest(baseUrl)(route)(input)
      const sentTexts = () => collectTexts(route.request.encode(input)).filter((text) => text.length > 2)

      /** The answer; a Left inside where another attempt must follow, by these rules. */
      const exchangeWithToken = (
        header: string,
        value: string,
        rules: AttemptRules,
      ): TaskEither<ApiError, E.Either<AttemptRules, O>> =>
        pipe(
          exchange({ ...request, headers: { ...request.headers, [header]: value } }, () => [
            ...secrets,
            value,
            ...sentTexts(),
          ]),
          TE.map((answer) => E.right<AttemptRules, O>(answer)),
          TE.orElse((error) => {
            if (
              rules.mayRenew &&
              isTokenExpiry({ header, idempotent: route.idempotent }, error) &&
              token.invalidate(value, minTokenAge(error))
            )
              return TE.right(E.left({ ...rules, mayRenew: false, unusedTurns: 0 }))
            const { early } = rules
            return statusOf(error) === 401 && early.length < maxEarlyAttempts && token.isNew()
              ? TE.right(
                  E.left({ ...rules, early: [...early, { error, delay: retryDelay(early.length, clock.random()) }] }),
                )
              : TE.left(error)
          }),
        )

      /**
       * The token may expire while a request waits for its turn. Then another is exchanged in a turn of its own. Only
       * where tokens live shorter than the time between two turns the request and an exchange share one, in place of
       * those that were not used.
       */
      const exchangeInTurn = (
        header: string,
        issued: string,
        rules: AttemptRules,
      ): TaskEither<ApiError, E.Either<AttemptRules, O>> =>
        pipe(
          TE.Do,
          TE.flatMap(() => {
            const current = token.currentToken()
            if (O.isSome(current)) return exchangeWithToken(header, current.value, rules)
            if (rules.unusedTurns < maxUnusedTurns)
              return TE.right(E.left({ ...rules, unusedTurns: rules.unusedTurns + 1 }))
            return pipe(
              mayPair ? token.renewNow : TE.right(issued),
              TE.flatMap((value) => exchangeWithToken(header, value, rules)),
            )
          }),
        )

      const attempt = (rules: AttemptRules): TaskEither<ApiError, O> => {
        const header = route.tokenHeader
        if (header === undefined) return throttle.run(exchange(request, () => [...secrets, ...sentTexts()]))
        return pipe(
          token.getToken,
          TE.flatMap((issued) => throttle.run(exchangeInTurn(header, issued, rules))),
          TE.flatMap(
            E.match(
              (next) => {
                const failed = next.early.length > rules.early.length ? next.early.at(-1) : undefined
                return failed === undefined ? attempt(next) : TE.flatMap(() => attempt(next))(waitForRetry(failed))
              },
              (answer) => TE.right(answer),
            ),
          ),
        )
      }

      return pipe(
        attempt({ mayRenew: true, unusedTurns: 0, early: [] }),
        TE.mapLeft(limitWait(retryLimits.maxWait)),
        retryRequest(policy(route.idempotent), waitForRetry),
      )
    }
  }
}
