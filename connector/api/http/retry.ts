import { pipe } from 'fp-ts/function'
import type { Option } from 'fp-ts/Option'
import * as O from 'fp-ts/Option'
import type { TaskEither } from 'fp-ts/TaskEither'
import * as TE from 'fp-ts/TaskEither'
import { type ApiError, isTlsCode, isTokenError, outageKind } from '../error'
import type { ResponseHeaders } from './request'

/** An earlier attempt of the same request: its error, and the milliseconds waited after it. */
export type FailedAttempt = { readonly error: ApiError; readonly delay: number }

/** The delay in milliseconds before a failed request is sent again; none means never. */
export type RetryPolicy = (error: ApiError, earlier: ReadonlyArray<FailedAttempt>) => Option<number>

export type RetryLimits = {
  /** How often a failing request is sent; a 429 does not count. */
  readonly maxAttempts: number
  /** How long one request may wait in total, in milliseconds. */
  readonly maxWait: number
}

const firstDelay = 500
const maxDelay = 60_000

/**
 * The delay in milliseconds after a failure with `earlier` failures of the same class before it; `random` from 0 to 1
 * is the jitter.
 */
const retryDelay = (earlier: number, random: number): number =>
  Math.min(maxDelay, firstDelay * 2 ** earlier) * (0.5 + random / 2)

/** Codes of failures before the request was sent. Such a request may be sent again even if it is not idempotent. */
const connectErrorCodes = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'ECONNTIMEDOUT',
  'EHOSTUNREACH',
  'ENETUNREACH',
])

/** True if the service may have received a request that got no response. */
export const mayHaveArrived = ({ code }: Extract<ApiError, { _tag: 'Network' }>): boolean =>
  !connectErrorCodes.has(code)

/** True for a redirect without an address: a gateway's fault, not a matter of configuration. */
export const isStrayRedirect = (status: number, { location = '' }: ResponseHeaders): boolean =>
  status >= 300 && status < 400 && (status === 304 || location.trim() === '')

/** True for the status of a temporary redirect, which a gateway may send during an outage. */
export const isTemporaryRedirect = (status: number): boolean => [302, 303, 307].includes(status)

/** True if the service or the token issuer asks to wait. */
export const isRateLimitError = (error: ApiError): boolean =>
  outageKind(error) === 'limit' || (error._tag === 'Token' && error.retryAfter !== undefined)

type RetryClass = 'limit' | 'fault' | 'response' | 'final'

/** An error inside a 200 follows the rule of the status that it reports. */
const outageRules = { limit: 'limit', outage: 'fault', none: 'response' } as const

/** The rule for an error: rate limit, fault of network or service, unusable response, or no retry. */
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
 * Decides how often a request is repeated. After network faults, 408, 5xx or a temporary redirect, it is sent
 * `maxAttempts` times if it is idempotent or was never sent. After unusable responses, it is sent three times. After a
 * 429, it is repeated until `maxWait` is used up. If an idempotent request gets a 200 that reports an outage or a rate
 * limit, the rule for that error applies. Delays double from 0.5 to 60 s, with jitter, and are added to the wait that
 * the service requests.
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

/** Runs `effect` until it succeeds or `policy` gives up. `wait` waits before the next attempt. */
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
