const dayMs = 86_400_000
const zonelessTime = /^\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d(\.\d+)?)?$/
const zonedTime = /^\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)$/i

/** Parses an expiry time, in milliseconds since 1970. A time without a zone is in UTC. NaN for any other text. */
const parseExpiryTime = (text: string): number =>
  zonelessTime.test(text)
    ? Date.parse(`${text.replace(' ', 'T')}Z`)
    : zonedTime.test(text)
      ? Date.parse(text.replace(' ', 'T').replace(/([+-]\d\d)(\d\d)$/, '$1:$2'))
      : Number.NaN

/** The formats of an expiry. */
type ExpiryFormat = 'seconds' | 'epoch seconds' | 'epoch milliseconds' | 'a time without a zone' | 'a time'

/**
 * The format of an expiry, and its number or time in milliseconds; undefined if it is invalid. A number may be a
 * string.
 */
const readExpiry = (expiry: unknown): readonly [format: ExpiryFormat, value: number] | undefined => {
  const text = typeof expiry === 'string' ? expiry.trim() : typeof expiry === 'number' ? String(expiry) : ''
  const number = text === '' ? Number.NaN : Number(text)
  if (number > 0 && number < 1e9) return ['seconds', number * 1000]
  if (number >= 1e11) return ['epoch milliseconds', number]
  if (number >= 1e9) return ['epoch seconds', number * 1000]
  const time = parseExpiryTime(text)
  return Number.isNaN(time) ? undefined : [zonelessTime.test(text) ? 'a time without a zone' : 'a time', time]
}

export const expiryFormat = (expiry: unknown): ExpiryFormat | undefined => readExpiry(expiry)?.[0]

/**
 * The lifetime of a token in milliseconds, from its expiry: seconds, epoch seconds, epoch milliseconds, or an ISO 8601
 * time. A number may be a string. `now` is the service's clock. Undefined for a time that has passed or is more than a
 * day away, and for anything else. A lifetime in seconds is capped at a day.
 */
export const parseLifetime = (expiry: unknown, now: number): number | undefined => {
  const [format, value] = readExpiry(expiry) ?? ['seconds', Number.NaN]
  if (format === 'seconds') return Number.isNaN(value) ? undefined : Math.min(value, dayMs)
  const lifetime = value - now
  return lifetime > 0 && lifetime <= dayMs ? lifetime : undefined
}
