import * as E from 'fp-ts/Either'
import * as O from 'fp-ts/Option'
import * as TE from 'fp-ts/TaskEither'
import { expect, test } from 'vitest'
import type { ApiError } from '../../../connector/api/error'
import type { ResponseHeaders } from '../../../connector/api/http/request'
import { createRetryPolicy, type FailedAttempt, retryRequest } from '../../../connector/api/http/retry'
import { parseRetryAfter } from '../../../connector/api/http/retry-after'
import { configFailure, transientFailure } from '../../../connector/cdk/failure'
import { defined } from '../../../connector/cdk/schema'

const nowMillis = Date.parse('2026-01-01T00:00:00Z')
const date = (millis: number) => new Date(millis).toUTCString()

/** Longer than any run waits, and a time that a date can hold. */
const longest = 366 * 86_400_000

test.each<[string, number, ResponseHeaders, number | undefined]>([
  ['seconds', 429, { 'retry-after': '30' }, 30_000],
  ['zero', 429, { 'retry-after': '0' }, 0],
  ['a fraction of a second', 429, { 'retry-after': '1.5' }, 1500],
  ['a date', 429, { 'retry-after': date(nowMillis + 30_000) }, 30_000],
  ['a date in the past', 429, { 'retry-after': date(nowMillis - 30_000) }, 0],
  [
    'a date by the clock of the service where ours is wrong',
    429,
    { 'retry-after': date(nowMillis + 3_630_000), date: date(nowMillis + 3_600_000) },
    30_000,
  ],
  ['seconds with a 503', 503, { 'retry-after': '7' }, 7000],
  ['text without meaning', 429, { 'retry-after': 'soon' }, undefined],
  ['a negative number', 429, { 'retry-after': '-1' }, undefined],
  ['a negative endless number', 429, { 'retry-after': '-Infinity' }, undefined],
  ['no number', 503, { 'retry-after': 'NaN' }, undefined],
  ['an endless number', 429, { 'retry-after': 'Infinity' }, longest],
  ['a number beyond all numbers', 503, { 'retry-after': '1e999' }, longest],
  ['a huge number', 429, { 'retry-after': '1e308' }, longest],
  ['a date far away', 503, { 'retry-after': 'Fri, 31 Dec 9999 23:59:59 GMT' }, longest],
  ['an endless reset', 429, { 'x-ratelimit-reset': 'Infinity' }, longest],
  ['no header', 429, {}, undefined],
  ['Retry-After and another header', 429, { 'retry-after': '1', 'ratelimit-reset': '9' }, 1000],
  ['RateLimit, structured', 429, { ratelimit: '"default";r=0;t=12' }, 12_000],
  ['RateLimit, older', 429, { ratelimit: 'limit=100, remaining=0, reset=50' }, 50_000],
  ['RateLimit-Reset', 429, { 'ratelimit-reset': '12' }, 12_000],
  ['X-RateLimit-Reset in seconds', 429, { 'x-ratelimit-reset': '12' }, 12_000],
  ['X-RateLimit-Reset in Unix seconds', 429, { 'x-ratelimit-reset': String(nowMillis / 1000 + 12) }, 12_000],
  ['X-RateLimit-Reset in Unix milliseconds', 429, { 'x-ratelimit-reset': String(nowMillis + 12_000) }, 12_000],
  ['X-RateLimit-Reset in the past', 429, { 'x-ratelimit-reset': String(nowMillis / 1000 - 12) }, 0],
  ['RateLimit-Reset with a 500', 500, { 'ratelimit-reset': '12' }, undefined],
])('the wait for %s is the one that the service asks for', (_, status, headers, expected) => {
  expect(parseRetryAfter(status, headers, nowMillis)).toBe(expected)
})

const http = (status: number, retryAfter?: number): ApiError => ({
  _tag: 'Http',
  status,
  message: '',
  ...defined({ retryAfter }),
})
const network = (code: string): ApiError => ({ _tag: 'Network', code, message: '' })
const token = (cause: Extract<ApiError, { _tag: 'Token' }>['cause'], retryAfter?: number): ApiError => ({
  _tag: 'Token',
  cause,
  ...defined({ retryAfter }),
})
const decode: ApiError = { _tag: 'Decode', path: '$', message: '' }

const application = (code: string, message = ''): ApiError => ({ _tag: 'Application', code, message })

const retryLimits = { maxAttempts: 6, maxWait: 600_000 }
test.each<[string, boolean, boolean, ApiError]>([
  ['a reset', true, false, network('ECONNRESET')],
  ['a time-out', true, false, network('ETIMEDOUT')],
  ['a refused connection', true, true, network('ECONNREFUSED')],
  ['an unknown host', true, true, network('ENOTFOUND')],
  ['a connection not made in time', true, true, network('ECONNTIMEDOUT')],
  ['a certificate not trusted', false, false, network('DEPTH_ZERO_SELF_SIGNED_CERT')],
  ['a certificate expired', false, false, network('CERT_HAS_EXPIRED')],
  ["another host's certificate", false, false, network('ERR_TLS_CERT_ALTNAME_INVALID')],
  ['the end of the client', false, false, network('ABORTED')],
  ['408', true, false, http(408)],
  ['429', true, true, http(429)],
  ['429 with 0', true, true, http(429, 0)],
  ['500', true, false, http(500)],
  ['501', false, false, http(501)],
  ['503', true, false, http(503, 1000)],
  ['301', false, false, http(301)],
  ['302', true, false, http(302)],
  ['a 304', true, false, { ...http(304), isStray: true } as ApiError],
  ['400', false, false, http(400)],
  ['401', false, false, http(401)],
  ['413', false, false, http(413)],
  ['a response that is not JSON', true, false, decode],
  ['an application error', true, false, application('1')],
  ['an outage told in a body', true, false, application('503')],
  ['a rate limit told in a body', true, false, application('429')],
  ['an expired token told in a body', false, false, application('401')],
  ['an issuer of tokens that is down', true, true, token(transientFailure(''))],
  ['an issuer of tokens at its limit', true, true, token(transientFailure(''), 1000)],
  ['a wrong application secret', false, false, token(configFailure(''))],
  ['an issuer whose answer is not JSON', true, true, { ...token(configFailure('')), isUnreadable: true } as ApiError],
  ['a response too large', false, false, { _tag: 'TooLarge', bytes: 2, limit: 1 }],
  ['a wait too long', false, false, { _tag: 'Wait', wait: 2, limit: 1 }],
  ['a proxy that cannot connect', true, true, { _tag: 'Proxy', code: '502', cause: transientFailure('') }],
  ['a proxy that refuses', false, false, { _tag: 'Proxy', code: '403', cause: configFailure('') }],
  ['a shared limit out of reach', true, true, { _tag: 'RateLimiter', cause: transientFailure('') }],
])('after %s a request is sent again: %s where it is idempotent, %s where not', (_, idempotent, other, error) => {
  const policy = createRetryPolicy(retryLimits, () => 0)
  expect(O.isSome(policy(true)(error, []))).toBe(idempotent)
  expect(O.isSome(policy(false)(error, []))).toBe(other)
})

/** The delays until the policy gives up, where the errors come as listed and the last one repeats. */
const delaysAfter = (errors: ReadonlyArray<ApiError>, random = 0, limits = retryLimits): ReadonlyArray<number> => {
  const policy = createRetryPolicy(limits, () => random)(true)
  const collect = (earlier: ReadonlyArray<FailedAttempt>): ReadonlyArray<number> => {
    const error = errors[Math.min(earlier.length, errors.length - 1)] as ApiError
    const delay = policy(error, earlier)
    return O.isNone(delay) || earlier.length > 100
      ? earlier.map(({ delay }) => delay)
      : collect([...earlier, { error, delay: delay.value }])
  }
  return collect([])
}

test.each<[string, ReadonlyArray<ApiError>, number, ReadonlyArray<number>]>([
  ['delays after faults double, for six attempts', [http(500)], 0, [250, 500, 1000, 2000, 4000]],
  ['jitter doubles a delay at most', [http(500)], 1, [500, 1000, 2000, 4000, 8000]],
  ['no delay is shorter than the service asks', [http(503, 20_000)], 0, [20_250, 20_500, 21_000, 22_000, 24_000]],
  ['an unusable response is asked for three times', [decode], 0, [250, 500]],
  ['an application error is met three times', [application('1')], 0, [250, 500]],
  [
    'an outage told in a body is met as often as one told by a status',
    [application('HTTP_503')],
    0,
    [250, 500, 1000, 2000, 4000],
  ],
  [
    'a rate limit told in a body uses up no attempt',
    [application('7', 'Too *** requests'), application('none', 'Request rate limit exceeded'), http(500)],
    0,
    [250, 500, 250, 500, 1000, 2000, 4000],
  ],
  ['a 429 uses up no attempt', [http(429, 0), http(429, 0), http(500)], 0, [250, 500, 250, 500, 1000, 2000, 4000]],
])('%s', (_, errors, random, expected) => {
  expect(delaysAfter(errors, random)).toEqual(expected)
})

test.each([
  ['by its status', http(429)],
  ['in a body', application('429')],
])('requests asked %s to wait continue, at most a minute apart, until the longest wait is used up', (_, limit) => {
  const all = delaysAfter([limit], 1)
  expect(all.slice(0, 8)).toEqual([500, 1000, 2000, 4000, 8000, 16_000, 32_000, 60_000])
  expect(Math.max(...all)).toBe(60_000)
  expect(all.reduce((a, b) => a + b, 0)).toBeLessThanOrEqual(retryLimits.maxWait)
  expect(all.reduce((a, b) => a + b, 0)).toBeGreaterThan(retryLimits.maxWait - 60_000)
})

test('no delay goes beyond the longest wait', () => {
  expect(delaysAfter([http(429, 600_000)])).toEqual([])
  expect(delaysAfter([http(429, 200_000)])).toHaveLength(2)
})

test('a request is repeated until it succeeds', async () => {
  const waited: FailedAttempt[] = []
  let runs = 0
  const result = await retryRequest(
    (_, earlier) => (earlier.length < 5 ? O.some(earlier.length) : O.none),
    (failed) => TE.fromIO(() => void waited.push(failed)),
  )(() => Promise.resolve(++runs < 4 ? E.left(http(500)) : E.right(runs)))()
  expect(result).toEqual(E.right(4))
  expect(waited).toEqual([0, 1, 2].map((delay) => ({ error: http(500), delay })))
})

test('a request fails with the last error when the policy gives up', async () => {
  let runs = 0
  const result = await retryRequest(
    (_, earlier) => (earlier.length < 2 ? O.some(0) : O.none),
    () => TE.right(undefined),
  )(() => Promise.resolve(E.left(http(500 + ++runs))))()
  expect(result).toEqual(E.left(http(503)))
})
