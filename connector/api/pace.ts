/** The rate that the service was found to bear, where it does not say. Times in milliseconds. */
export type Pace = {
  /** Between two requests; 0: no limit was met yet. */
  readonly interval: number
  /** Added to the rate, in requests per millisecond, by each answer that is no 429. */
  readonly step: number
  /** When the rate was last lowered: a 429 to a request sent before tells nothing new. */
  readonly since: number
  /** When the last requests were sent, oldest first. */
  readonly recent: ReadonlyArray<number>
}

export const unlimited: Pace = { interval: 0, step: 0, since: Number.NEGATIVE_INFINITY, recent: [] }

const kept = 20
const back = 50
const share = 0.75
const slowest = 60_000

export const sentAt = (pace: Pace, at: number): Pace => ({ ...pace, recent: [...pace.recent.slice(1 - kept), at] })

/** Additive increase: back where it was met a limit after 50 answers, and on from there as fast. */
export const accepted = (pace: Pace): Pace =>
  pace.interval === 0 ? pace : { ...pace, interval: 1 / (1 / pace.interval + pace.step) }

/** Multiplicative decrease: to three quarters of the rate just tried, the real one where that was lower than the one allowed. */
export const refused = (pace: Pace, sent: number, now: number): Pace => {
  if (sent < pace.since) return pace
  const [first = now, ...others] = pace.recent
  const real = others.length === 0 ? 1000 : (now - first) / others.length
  const tried = Math.max(pace.interval, real, 1)
  return {
    interval: Math.min(slowest, tried / share),
    step: (1 - share) / tried / back,
    since: now,
    recent: [],
  }
}
