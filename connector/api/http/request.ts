import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import type { Option } from 'fp-ts/Option'
import * as O from 'fp-ts/Option'
import type { TaskEither } from 'fp-ts/TaskEither'
import * as TE from 'fp-ts/TaskEither'
import { configFailure, type Failure, printExactJson } from '../../cdk'
import { type ApiError, isTlsCode, isTokenError, outageKind } from '../error'
import type { Route } from '../route'

/** Whether a host is this machine: localhost or a name under it, 127.0.0.0/8 or ::1. */
export const isLoopback = (hostname: string): boolean =>
  hostname === 'localhost' ||
  hostname.endsWith('.localhost') ||
  hostname === '[::1]' ||
  /^127\.\d+\.\d+\.\d+$/.test(hostname)

/**
 * The URL of the config key `name`. It must be https, unless its host is this machine or `allow_http` is set, and without user
 * name and password.
 */
export const checkUrl = (name: string, url: string, allowHttp: boolean): E.Either<Failure, URL> => {
  const parsed = URL.canParse(url.trim()) ? new URL(url.trim()) : undefined
  const invalid = (problem: string) => E.left(configFailure(`${name} ${problem}`))
  if (parsed === undefined) return invalid('is not a URL. Give one such as https://feedback.example.com.')
  if (parsed.username !== '' || parsed.password !== '')
    return invalid('holds a user name or a password. Take them out and use credentials.')
  if (parsed.hash !== '') return invalid(`ends in "${parsed.hash}". Take everything from # on out.`)
  if (parsed.search !== '' && name === 'base_url')
    return invalid('has a query. Take everything from ? on out: an operation has a path and a query of its own.')
  if (parsed.protocol === 'https:') return E.right(parsed)
  if (parsed.protocol !== 'http:') return invalid(`starts with ${parsed.protocol}//. Use https://.`)
  return allowHttp || isLoopback(parsed.hostname)
    ? E.right(parsed)
    : invalid(
        `is http, which sends the token unencrypted. Use https://${parsed.host}, or set allow_http to true for a service inside your own network.`,
      )
}

/** The URL of the config key `rate_limit.redis_url`. No message repeats it, since it may hold a password. */
export const checkRedisUrl = (url: string): E.Either<Failure, string> =>
  URL.canParse(url) && ['redis:', 'rediss:'].includes(new URL(url).protocol)
    ? E.right(url)
    : E.left(configFailure('rate_limit.redis_url is no Redis URL. Give one such as redis://:password@host:6379.'))

/** A request with its URL, headers and body. */
export type HttpRequest = {
  readonly method: 'GET' | 'POST'
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
  readonly body?: Buffer
}

/** Response headers by lower-case name. */
export type ResponseHeaders = Readonly<Record<string, string | undefined>>

/** A list as repeated keys; a null or undefined value is left out. */
const encodePairs = (value: unknown): URLSearchParams =>
  new URLSearchParams(
    Object.entries(Object(value) as Record<string, unknown>).flatMap(([key, member]) =>
      (Array.isArray(member) ? member : [member])
        .filter((item) => item !== undefined && item !== null)
        .map((item): [string, string] => [key, String(item)]),
    ),
  )

export const encodeJson = (value: unknown): Required<Pick<HttpRequest, 'headers' | 'body'>> => ({
  headers: { 'Content-Type': 'application/json' },
  body: Buffer.from(printExactJson(value)),
})

export const encodeForm = (value: unknown): Required<Pick<HttpRequest, 'headers' | 'body'>> => ({
  headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
  body: Buffer.from(encodePairs(value).toString()),
})

/** The request of an operation. Its path is appended to that of `baseUrl`, so that it can name no other host. */
export const encodeRequest =
  (baseUrl: URL) =>
  <I, O>(route: Route<I, O>) =>
  (input: I): HttpRequest => {
    const url = new URL(baseUrl)
    url.pathname = `${baseUrl.pathname.replace(/\/+$/, '')}${route.path}`
    const value = route.request.encode(input)
    const { method } = route
    switch (route.encoding) {
      case 'json':
        return { method, url, ...encodeJson(value) }
      case 'form':
        return { method, url, ...encodeForm(value) }
      case 'query':
        url.search = encodePairs(value).toString()
        return { method, url, headers: {} }
    }
  }

const parseSeconds = (text: string | undefined): number | undefined => {
  const value = text === undefined || text.trim() === '' ? Number.NaN : Number(text)
  return value >= 0 ? value * 1000 : undefined
}

/** A reset is seconds from now, Unix seconds or Unix milliseconds; the size of the number tells which. */
const parseReset = (text: string | undefined, now: number): number | undefined => {
  const value = parseSeconds(text)
  if (value === undefined) return undefined
  if (value < 1e12) return value
  return Math.max(0, (value < 1e15 ? value : value / 1000) - now)
}

/** The `t` (seconds to the reset) of `RateLimit: "default";r=0;t=30` where nothing remains, and the older `limit=…, reset=30`. */
const parseRateLimit = (text: string | undefined): number | undefined =>
  parseSeconds(/(?:^|[;,\s])(?:t|reset)\s*=\s*"?(\d+(?:\.\d+)?)/i.exec(text ?? '')?.[1])

/** A service that names no end, such as `Retry-After: Infinity`, asks for more than any run waits. */
const longestRetryAfter = 366 * 86_400_000

/**
 * How long the service asks to wait, in milliseconds, a year at most: Retry-After as seconds or as a date, which counts from the Date
 * of the same response so that our clock may be wrong. A 429 without it: the time to the reset in the RateLimit headers.
 */
export const parseRetryAfter = (status: number, headers: ResponseHeaders, now: number): number | undefined => {
  const wait = parseWait(status, headers, now)
  return wait === undefined ? undefined : Math.min(wait, longestRetryAfter)
}

/** The same of a rate limit or an outage that is told inside a 200. */
export const parseOutageWait = (kind: 'limit' | 'outage', headers: ResponseHeaders, now: number): number | undefined =>
  parseRetryAfter(kind === 'limit' ? 429 : 503, headers, now)

/**
 * Milliseconds since 1970 of a date in a header; NaN where it is none. Dates are in GMT, also in the form of asctime, which names no
 * zone (RFC 9110, section 5.6.7).
 */
export const parseHeaderDate = (text = ''): number => {
  const namesZone = /([a-z]|[+-]\d\d:?\d\d)\s*$/i.test(text)
  const isIso = /^\d{4}-/.test(text)
  return Date.parse(namesZone ? text : isIso ? `${text.trim().replace(' ', 'T')}Z` : `${text} GMT`)
}

const parseWait = (status: number, headers: ResponseHeaders, now: number): number | undefined => {
  const date = parseHeaderDate(headers.date)
  const serviceNow = Number.isNaN(date) ? now : date
  const retryAfter = headers['retry-after'] ?? ''
  const asSeconds = parseSeconds(retryAfter)
  if (asSeconds !== undefined) return asSeconds
  const asDate = /[a-z]/i.test(retryAfter) ? parseHeaderDate(retryAfter) : Number.NaN
  if (!Number.isNaN(asDate)) return Math.max(0, asDate - serviceNow)
  if (status !== 429) return undefined
  return (
    parseRateLimit(headers.ratelimit) ??
    parseReset(headers['ratelimit-reset'], serviceNow) ??
    parseReset(headers['x-ratelimit-reset'], serviceNow) ??
    parseReset(headers['x-rate-limit-reset'], serviceNow)
  )
}

/** An earlier attempt of the same request: how it failed, and the milliseconds waited after it. */
export type FailedAttempt = { readonly error: ApiError; readonly delay: number }

/** After how many milliseconds a failed request is sent again; none: never. */
export type RetryPolicy = (error: ApiError, earlier: ReadonlyArray<FailedAttempt>) => Option<number>

export type RetryLimits = {
  /** How often a request that meets faults is sent; a 429 does not count. */
  readonly maxAttempts: number
  /** The longest that one request waits in total; milliseconds. */
  readonly maxWait: number
}

const firstDelay = 500
const maxDelay = 60_000

/** The delay after a failure that `earlier` ones of its kind came before, milliseconds; `random` from 0 to 1 is the jitter. */
export const retryDelay = (earlier: number, random: number): number =>
  Math.min(maxDelay, firstDelay * 2 ** earlier) * (0.5 + random / 2)

/** Codes of failures before the request was sent, so that it may be sent again even if it is not idempotent. */
const connectErrorCodes = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'ECONNTIMEDOUT',
  'EHOSTUNREACH',
  'ENETUNREACH',
])

/** Whether the service may have received a request to which no response came. */
export const mayHaveArrived = ({ code }: Extract<ApiError, { _tag: 'Network' }>): boolean =>
  !connectErrorCodes.has(code)

/** Whether a response is a redirect that names no address: a fault of a gateway, and nothing to configure. */
export const isStrayRedirect = (status: number, { location = '' }: ResponseHeaders): boolean =>
  status >= 300 && status < 400 && (status === 304 || location.trim() === '')

/** Whether a status is of a redirect for the time being, as a gateway may answer during an outage. */
export const isTemporaryRedirect = (status: number): boolean => [302, 303, 307].includes(status)

/** Whether the service or the issuer of tokens asks to wait. */
export const isRateLimitError = (error: ApiError): boolean =>
  outageKind(error) === 'limit' || (error._tag === 'Token' && error.retryAfter !== undefined)

type RetryClass = 'limit' | 'fault' | 'response' | 'final'

/** The rule for an error inside a 200, as for one with the status that it tells. */
const outageRules = { limit: 'limit', outage: 'fault', none: 'response' } as const

/**
 * Which rule applies to an error: that of a rate limit, of a fault of network or service, of an unusable response, or no retry.
 */
const classifyError = (error: ApiError, idempotent: boolean): RetryClass => {
  switch (error._tag) {
    case 'Network':
      if (isTlsCode(error.code) || error.code === 'ABORTED' || error.code.startsWith('ERR_INVALID_')) return 'final'
      return idempotent || connectErrorCodes.has(error.code) ? 'fault' : 'final'
    case 'Http': {
      if (error.status === 429) return 'limit'
      const isTransient =
        error.isStray ||
        isTemporaryRedirect(error.status) ||
        error.status === 408 ||
        (error.status >= 500 && error.status !== 501)
      return idempotent && isTransient ? 'fault' : 'final'
    }
    case 'Token':
      if (error.isUnreadable) return 'response'
      if (error.cause._tag !== 'Transient') return 'final'
      return isRateLimitError(error) ? 'limit' : 'fault'
    case 'Proxy':
    case 'RateLimiter':
      return error.cause._tag === 'Transient' ? 'fault' : 'final'
    case 'Application':
      if (!idempotent || isTokenError(error)) return 'final'
      return outageRules[outageKind(error) ?? 'none']
    case 'Decode':
      return idempotent ? 'response' : 'final'
    case 'Encoding':
    case 'TooLarge':
    case 'Wait':
      return 'final'
  }
}

/**
 * A request that meets network faults, 408, 5xx or a redirect for the time being is sent `maxAttempts` times if it is idempotent or was never sent; one with
 * unusable responses three times; one answered 429 until `maxWait` is used up. An idempotent one to which a 200 tells an outage or
 * a rate limit counts as answered so. Delays double from 0.5 to 60 s, with jitter, and come on top of what the service asks to wait.
 */
export const createRetryPolicy =
  ({ maxAttempts, maxWait }: RetryLimits, random: () => number) =>
  (idempotent: boolean): RetryPolicy => {
    const attempts = {
      limit: Number.POSITIVE_INFINITY,
      fault: maxAttempts,
      response: Math.min(maxAttempts, 3),
      final: 0,
    }
    return (error, earlier) => {
      const retryClass = classifyError(error, idempotent)
      const sameClass = earlier.filter((attempt) => classifyError(attempt.error, idempotent) === retryClass).length
      const retryAfter = 'retryAfter' in error ? (error.retryAfter ?? 0) : 0
      const delay = retryAfter + retryDelay(sameClass, random())
      const waited = earlier.reduce((sum, attempt) => sum + attempt.delay, 0)
      return sameClass + 1 < attempts[retryClass] && waited + delay <= maxWait ? O.some(delay) : O.none
    }
  }

/** Runs `effect` until it succeeds or `policy` gives up; `wait` waits before the next attempt. */
export const retryRequest =
  (policy: RetryPolicy, wait: (failed: FailedAttempt) => TaskEither<never, void>) =>
  <A>(effect: TaskEither<ApiError, A>): TaskEither<ApiError, A> => {
    const attempt = (earlier: ReadonlyArray<FailedAttempt>): TaskEither<ApiError, A> =>
      pipe(
        effect,
        TE.orElse((error) =>
          pipe(
            policy(error, earlier),
            O.match(
              () => TE.left(error),
              (delay) =>
                pipe(
                  wait({ error, delay }),
                  TE.flatMap(() => attempt([...earlier, { error, delay }])),
                ),
            ),
          ),
        ),
      )
    return attempt([])
  }
