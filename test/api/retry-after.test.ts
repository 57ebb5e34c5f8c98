import { expect, test } from 'vitest'
import { parseRetryAfter, type ResponseHeaders } from '../../connector/api/retry-after'

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
