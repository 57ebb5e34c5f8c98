import * as E from 'fp-ts/Either'
import * as O from 'fp-ts/Option'
import * as TE from 'fp-ts/TaskEither'
import { expect, test } from 'vitest'
import type { ApiError } from '../../../connector/api/error'
import type { ResponseHeaders } from '../../../connector/api/http/request'
import { createRetryPolicy, type FailedAttempt, parseRetryAfter, retryRequest } from '../../../connector/api/http/retry'
import { configFailure, transientFailure } from '../../../connector/cdk/failure'

const nowMillis = Date.parse('2026-01-01T00:00:00Z')
const date = (millis: number) => new Date(millis).toUTCString()

test.each<[string, number, ResponseHeaders, number | undefined]>([
  ['seconds', 429, { 'retry-after': '30' }, 30_000],
  ['zero', 429, { 'retry-after': '0' }, 0],
  ['a fraction', 429, { 'retry-after': '1.5' }, 1500],
  ['a date', 429, { 'retry-after': date(nowMillis + 30_000) }, 30_000],
  ['a date gone by', 429, { 'retry-after': date(nowMillis - 30_000) }, 0],
  [
    'a date by their clock, ours being wrong',
    429,
    { 'retry-after': date(nowMillis + 3_630_000), date: date(nowMillis + 3_600_000) },
    30_000,
  ],
  ['on a 503 too', 503, { 'retry-after': '7' }, 7000],
  ['nonsense', 429, { 'retry-after': 'soon' }, undefined],
  ['negative', 429, { 'retry-after': '-1' }, undefined],
  ['nothing', 429, {}, undefined],
  ['Retry-After before all others', 429, { 'retry-after': '1', 'ratelimit-reset': '9' }, 1000],
  ['RateLimit, structured', 429, { ratelimit: '"default";r=0;t=12' }, 12_000],
  ['RateLimit, older', 429, { ratelimit: 'limit=100, remaining=0, reset=50' }, 50_000],
  ['RateLimit-Reset', 429, { 'ratelimit-reset': '12' }, 12_000],
  ['X-RateLimit-Reset in seconds', 429, { 'x-ratelimit-reset': '12' }, 12_000],
  ['X-RateLimit-Reset in Unix seconds', 429, { 'x-ratelimit-reset': String(nowMillis / 1000 + 12) }, 12_000],
  ['X-RateLimit-Reset in Unix milliseconds', 429, { 'x-ratelimit-reset': String(nowMillis + 12_000) }, 12_000],
  ['X-RateLimit-Reset gone by', 429, { 'x-ratelimit-reset': String(nowMillis / 1000 - 12) }, 0],
  ['a reset is no wish where nothing was refused', 500, { 'ratelimit-reset': '12' }, undefined],
])('%s', (_, status, headers, expected) => {
  expect(parseRetryAfter(status, headers, nowMillis)).toBe(expected)
})

const http = (status: number, retryAfter?: number): ApiError => ({
  _tag: 'Http',
  status,
  message: '',
  ...(retryAfter === undefined ? {} : { retryAfter }),
})
const network = (code: string): ApiError => ({ _tag: 'Network', code, message: '' })
const token = (cause: Extract<ApiError, { _tag: 'Token' }>['cause'], retryAfter?: number): ApiError => ({
  _tag: 'Token',
  cause,
  ...(retryAfter === undefined ? {} : { retryAfter }),
})
const decode: ApiError = { _tag: 'Decode', path: '$', message: '' }

const patience = { maxAttempts: 6, maxWait: 600_000 }
const always = true
const once = false

test.each<[string, ApiError, boolean, boolean]>([
  ['a reset', network('ECONNRESET'), true, false],
  ['a time-out', network('ETIMEDOUT'), true, false],
  ['a refused connection', network('ECONNREFUSED'), true, true],
  ['an unknown host', network('ENOTFOUND'), true, true],
  ['a connection not made in time', network('ECONNTIMEDOUT'), true, true],
  ['a certificate not trusted', network('DEPTH_ZERO_SELF_SIGNED_CERT'), false, false],
  ['a certificate expired', network('CERT_HAS_EXPIRED'), false, false],
  ["another host's certificate", network('ERR_TLS_CERT_ALTNAME_INVALID'), false, false],
  ['our own end', network('ABORTED'), false, false],
  ['408', http(408), true, false],
  ['429', http(429), true, true],
  ['429 with 0', http(429, 0), true, true],
  ['500', http(500), true, false],
  ['501', http(501), false, false],
  ['503', http(503, 1000), true, false],
  ['301', http(301), false, false],
  ['400', http(400), false, false],
  ['401', http(401), false, false],
  ['413', http(413), false, false],
  ['an answer that is not JSON', decode, true, false],
  ['an application error', { _tag: 'Application', code: '1', message: '' }, true, false],
  ['a token host that is down', token(transientFailure('')), true, true],
  ['a token host at its limit', token(transientFailure(''), 1000), true, true],
  ['a wrong application secret', token(configFailure('')), false, false],
  ['an answer too large', { _tag: 'TooLarge', bytes: 2, limit: 1 }, false, false],
  ['a wait too long', { _tag: 'Wait', wait: 2, limit: 1 }, false, false],
  ['a budget out of reach', { _tag: 'RateLimiter', cause: transientFailure('') }, true, true],
])('%s', (_, error, idempotent, other) => {
  const policy = createRetryPolicy(patience, () => 0)
  expect(O.isSome(policy(always)(error, []))).toBe(idempotent)
  expect(O.isSome(policy(once)(error, []))).toBe(other)
})

/** The waits until the policy gives up on errors that come as listed, the last one again and again. */
const waits = (errors: ReadonlyArray<ApiError>, random = 0, given = patience): ReadonlyArray<number> => {
  const policy = createRetryPolicy(given, () => random)(true)
  const go = (tried: ReadonlyArray<FailedAttempt>): ReadonlyArray<number> => {
    const error = errors[Math.min(tried.length, errors.length - 1)] as ApiError
    const delay = policy(error, tried)
    return O.isNone(delay) || tried.length > 100
      ? tried.map(({ delay }) => delay)
      : go([...tried, { error, delay: delay.value }])
  }
  return go([])
}

test.each<[string, ReadonlyArray<ApiError>, number, ReadonlyArray<number>]>([
  ['faults double, six tries in all', [http(500)], 0, [250, 500, 1000, 2000, 4000]],
  ['with jitter above', [http(500)], 1, [500, 1000, 2000, 4000, 8000]],
  ['what the service asks is a floor', [http(503, 20_000)], 0, [20_250, 20_500, 21_000, 22_000, 24_000]],
  ['broken answers three in all', [decode], 0, [250, 500]],
  ['limits use up no tries', [http(429, 0), http(429, 0), http(500)], 0, [250, 500, 250, 500, 1000, 2000, 4000]],
])('%s', (_, errors, random, expected) => {
  expect(waits(errors, random)).toEqual(expected)
})

test('429 go on, a minute apart at most, until the patience is used up', () => {
  const all = waits([http(429)], 1)
  expect(all.slice(0, 8)).toEqual([500, 1000, 2000, 4000, 8000, 16_000, 32_000, 60_000])
  expect(Math.max(...all)).toBe(60_000)
  expect(all.reduce((a, b) => a + b, 0)).toBeLessThanOrEqual(patience.maxWait)
  expect(all.reduce((a, b) => a + b, 0)).toBeGreaterThan(patience.maxWait - 60_000)
})

test('no wait goes beyond the patience', () => {
  expect(waits([http(429, 600_000)])).toEqual([])
  expect(waits([http(429, 200_000)])).toHaveLength(2)
})

test('the effect runs until it succeeds', async () => {
  const paused: FailedAttempt[] = []
  let runs = 0
  const result = await retryRequest(
    (_, tried) => (tried.length < 5 ? O.some(tried.length) : O.none),
    (tried) => TE.fromIO(() => void paused.push(tried)),
  )(() => Promise.resolve(++runs < 4 ? E.left(http(500)) : E.right(runs)))()
  expect(result).toEqual(E.right(4))
  expect(paused).toEqual([0, 1, 2].map((delay) => ({ error: http(500), delay })))
})

test('or until the policy gives up, with the last error', async () => {
  let runs = 0
  const result = await retryRequest(
    (_, tried) => (tried.length < 2 ? O.some(0) : O.none),
    () => TE.right(undefined),
  )(() => Promise.resolve(E.left(http(500 + ++runs))))()
  expect(result).toEqual(E.left(http(503)))
})
