/** The rate that the service was found to bear, where it does not say. Times in milliseconds. */
export type Pace = {
  /** Between two requests; 0: no limit was met yet. */
  readonly interval: number
  /** Added to the rate, in requests per millisecond, by each answer that is no 429. */
  readonly step: number
  /** When the rate was last lowered: an answer to a request sent before tells nothing of the new one. */
  readonly since: number
  /** Whether nothing got through since then. */
  readonly shut: boolean
  /** Since when `good` requests got through. */
  readonly from: number
  readonly good: number
  /** When the last requests were sent, oldest first. */
  readonly recent: ReadonlyArray<number>
}

/** No limit met yet, at the time `from`. */
export const unlimited = (from: number): Pace => ({
  interval: 0,
  step: 0,
  since: from,
  shut: false,
  from,
  good: 0,
  recent: [],
})

const kept = 10
const enough = 5
const back = 50
const share = 0.8

const climb = (interval: number): number => (1 - share) / interval / back

export const sentAt = (pace: Pace, at: number): Pace => ({ ...pace, recent: [...pace.recent.slice(1 - kept), at] })

/**
 * Additive increase: back where the limit was met after 50 answers, and on from there as fast. The first answer after refusals
 * also shows what got through all the while, which is the limit itself where it counts by the minute.
 */
export const accepted = (pace: Pace, sent: number, now: number): Pace => {
  const { interval, step, since, shut, from, good } = pace
  if (interval === 0 || sent < since) return { ...pace, good: good + 1 }
  if (!shut) return { ...pace, good: good + 1, interval: 1 / (1 / interval + step) }
  const open = { ...pace, shut: false, from: now, good: 1 }
  if (good < enough) return open
  const real = (now - from) / good
  return { ...open, interval: Math.max(interval, real), step: Math.min(step, climb(real)) }
}

/** Multiplicative decrease, once for all requests under way: to four fifths of the rate tried, or of the real one where that was lower. */
export const refused = (pace: Pace, sent: number, now: number): Pace => {
  if (sent < pace.since || pace.shut) return pace
  const { recent } = pace
  const real = recent.length < 2 ? 0 : ((recent.at(-1) ?? now) - (recent[0] ?? now)) / (recent.length - 1)
  const tried = Math.max(pace.interval, real, 1)
  return { ...pace, interval: tried / share, step: climb(tried), since: now, shut: true, recent: [] }
}
