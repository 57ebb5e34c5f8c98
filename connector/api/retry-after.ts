/** Headers by lower-case name. */
export type ResponseHeaders = Readonly<Record<string, string | undefined>>

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
