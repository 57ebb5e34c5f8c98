import type { ResponseHeaders } from './request'

const parseSeconds = (text: string | undefined): number | undefined => {
  const value = text === undefined || text.trim() === '' ? Number.NaN : Number(text)
  return value >= 0 ? value * 1_000 : undefined
}

/**
 * Parses a reset given as seconds from now, Unix seconds or Unix milliseconds, distinguished by the size of the number.
 */
const parseReset = (text: string | undefined, now: number): number | undefined => {
  const value = parseSeconds(text)
  if (value === undefined) return undefined
  if (value < 1e12) return value
  return Math.max(0, (value < 1e15 ? value : value / 1_000) - now)
}

/**
 * The `t` (seconds to the reset) of `RateLimit: "default";r=0;t=30` if nothing remains, and the older `limit=…,
 * reset=30`.
 */
const parseRateLimit = (text: string | undefined): number | undefined =>
  parseSeconds(/(?:^|[;,\s])(?:t|reset)\s*=\s*"?(\d+(?:\.\d+)?)/i.exec(text ?? '')?.[1])

/** A service that names no end, for example with `Retry-After: Infinity`, asks for more than any run waits. */
const longestRetryAfter = 366 * 86_400_000

/**
 * How long the service asks to wait, in milliseconds, at most a year. Retry-After may be seconds or a date; a date is
 * compared with the response's own Date, so that our clock may be wrong. For a 429 without Retry-After: the time to the
 * reset in the RateLimit headers.
 */
export const parseRetryAfter = (status: number, headers: ResponseHeaders, now: number): number | undefined => {
  const wait = parseWait(status, headers, now)
  return wait === undefined ? undefined : Math.min(wait, longestRetryAfter)
}

/** The same for a rate limit or an outage reported inside a 200. */
export const parseOutageWait = (kind: 'limit' | 'outage', headers: ResponseHeaders, now: number): number | undefined =>
  parseRetryAfter(kind === 'limit' ? 429 : 503, headers, now)

/**
 * Parses a date in a header as milliseconds since 1970; NaN if it is not a date. Dates are in GMT, even in asctime
 * format, which has no zone (RFC 9110, section 5.6.7).
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
