import { pipe } from 'fp-ts/function'
import type { Option } from 'fp-ts/Option'
import * as O from 'fp-ts/Option'
import type { TaskEither } from 'fp-ts/TaskEither'
import * as TE from 'fp-ts/TaskEither'
import { type ApiError, isTlsCode } from '../error'
import type { ResponseHeaders } from './request'

const parseSeconds = (text: string | undefined): number | undefined => {
  const value = text === undefined || text.trim() === '' ? Number.NaN : Number(text)
  return Number.isFinite(value) && value >= 0 ? value * 1000 : undefined
}

/** A reset is told as seconds from now, or as a point in time (Unix seconds or milliseconds): told apart by size. */
const parseReset = (text: string | undefined, now: number): number | undefined => {
  const value = parseSeconds(text)
  if (value === undefined) return undefined
  if (value < 1e12) return value
  return Math.max(0, (value < 1e15 ? value : value / 1000) - now)
}

/** The `t` (seconds to the reset) of `RateLimit: "default";r=0;t=30` where nothing remains, and the older `limit=…, reset=30`. */
const parseRateLimit = (text: string | undefined): number | undefined =>
  parseSeconds(/(?:^|[;,\s])(?:t|reset)\s*=\s*"?(\d+(?:\.\d+)?)/i.exec(text ?? '')?.[1])

/**
 * How long the service asks to be left alone, in milliseconds: Retry-After as seconds or as a date, held against the
 * answer's own Date so that our clock may be wrong; else, for a 429, what the RateLimit headers tell of the reset.
 */
export const parseRetryAfter = (status: number, headers: ResponseHeaders, now: number): number | undefined => {
  const served = Date.parse(headers.date ?? '')
  const theirs = Number.isNaN(served) ? now : served
  const given = headers['retry-after']
  const asSeconds = parseSeconds(given)
  if (asSeconds !== undefined) return asSeconds
  const asDate = /[a-z]/i.test(given ?? '') ? Date.parse(given ?? '') : Number.NaN
  if (!Number.isNaN(asDate)) return Math.max(0, asDate - theirs)
  if (status !== 429) return undefined
  return (
    parseRateLimit(headers.ratelimit) ??
    parseReset(headers['ratelimit-reset'], theirs) ??
    parseReset(headers['x-ratelimit-reset'], theirs) ??
    parseReset(headers['x-rate-limit-reset'], theirs)
  )
}

/** An earlier try of the same request: how it failed, and how long we waited after it. */
export type FailedAttempt = { readonly error: ApiError; readonly delay: number }

/** After how many milliseconds a request that failed is sent again, if at all. */
export type RetryPolicy = (error: ApiError, tried: ReadonlyArray<FailedAttempt>) => Option<number>

export type RetryLimits = {
  /** How often a request is sent that meets faults; answers 429 do not count. */
  readonly maxAttempts: number
  /** The longest that one request waits in all, milliseconds. */
  readonly maxWait: number
}

const firstDelay = 500
const maxDelay = 60_000

/** Failures that come before a request has left, so that even one that is not idempotent may be sent again. */
const connectErrorCodes = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'ECONNTIMEDOUT',
  'EHOSTUNREACH',
  'ENETUNREACH',
])

/** Whether a request may have arrived though no answer came. */
export const mayHaveArrived = ({ code }: Extract<ApiError, { _tag: 'Network' }>): boolean =>
  !connectErrorCodes.has(code)

/** The service, or the issuer of tokens, asks to wait. */
export const isRateLimitError = (error: ApiError): boolean =>
  (error._tag === 'Http' && error.status === 429) || (error._tag === 'Token' && error.retryAfter !== undefined)

type RetryClass = 'limit' | 'fault' | 'answer' | 'final'

/** What a failure calls for: patience; a second try of the network or the service; of its answer; or none. */
const classifyError = (error: ApiError, idempotent: boolean): RetryClass => {
  switch (error._tag) {
    case 'Network':
      if (isTlsCode(error.code) || error.code === 'ABORTED' || error.code.startsWith('ERR_INVALID_')) return 'final'
      return idempotent || connectErrorCodes.has(error.code) ? 'fault' : 'final'
    case 'Http': {
      if (error.status === 429) return 'limit'
      const passing = error.status === 408 || (error.status >= 500 && error.status !== 501)
      return idempotent && passing ? 'fault' : 'final'
    }
    case 'Token':
    case 'RateLimiter':
      return error.cause._tag === 'Transient' ? (isRateLimitError(error) ? 'limit' : 'fault') : 'final'
    case 'Decode':
    case 'Application':
      return idempotent ? 'answer' : 'final'
    case 'TooLarge':
    case 'Wait':
      return 'final'
  }
}

/**
 * Faults of the network, 408 and 5xx are tried `attempts` times in all if the request is idempotent, or never left; answers
 * that make no sense three times; 429 until `maxWait` is used up. Waits double from 0.5 to 60 s, with jitter; what the
 * service asks to wait comes on top, so it is a floor.
 */
export const createRetryPolicy =
  ({ maxAttempts, maxWait }: RetryLimits, random: () => number) =>
  (idempotent: boolean): RetryPolicy => {
    const most = { limit: Number.POSITIVE_INFINITY, fault: maxAttempts, answer: Math.min(maxAttempts, 3), final: 0 }
    return (error, tried) => {
      const which = classifyError(error, idempotent)
      const kin = tried.filter((past) => classifyError(past.error, idempotent) === which).length
      const asked = 'retryAfter' in error ? (error.retryAfter ?? 0) : 0
      const delay = asked + Math.min(maxDelay, firstDelay * 2 ** kin) * (0.5 + random() / 2)
      const waited = tried.reduce((sum, past) => sum + past.delay, 0)
      return kin + 1 < most[which] && waited + delay <= maxWait ? O.some(delay) : O.none
    }
  }

/** Runs `effect` until it succeeds or `policy` gives up; `pause` does the waiting. */
export const retryRequest =
  (policy: RetryPolicy, pause: (tried: FailedAttempt) => TaskEither<never, void>) =>
  <A>(effect: TaskEither<ApiError, A>): TaskEither<ApiError, A> => {
    const attempt = (tried: ReadonlyArray<FailedAttempt>): TaskEither<ApiError, A> =>
      pipe(
        effect,
        TE.orElse((error) =>
          pipe(
            policy(error, tried),
            O.match(
              () => TE.left(error),
              (delay) =>
                pipe(
                  pause({ error, delay }),
                  TE.chainW(() => attempt([...tried, { error, delay }])),
                ),
            ),
          ),
        ),
      )
    return attempt([])
  }
