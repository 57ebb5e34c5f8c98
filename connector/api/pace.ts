/** The rate that the service was found to bear, where it does not say. Times in milliseconds. */
export type AdaptiveRate = {
  /** Between two requests; 0: no limit was met yet. */
  readonly interval: number
  /** Added to the rate, in requests per millisecond, by each answer that is no 429. */
  readonly step: number
  /** When the rate was last lowered: an answer to a request sent before tells nothing of the new one. */
  readonly loweredAt: number
  /** Whether nothing got through since then. */
  readonly isBlocked: boolean
  /** Since when `good` requests got through. */
  readonly countStart: number
  readonly acceptedCount: number
  /** When the last requests were sent, oldest first. */
  readonly sendTimes: ReadonlyArray<number>
}

/** No limit met yet, at the time `from`. */
export const initialRate = (from: number): AdaptiveRate => ({
  interval: 0,
  step: 0,
  loweredAt: from,
  isBlocked: false,
  countStart: from,
  acceptedCount: 0,
  sendTimes: [],
})

const sendHistoryLength = 10
const minAcceptedCount = 5
const recoveryCount = 50
const decreaseFactor = 0.8

const increaseStep = (interval: number): number => (1 - decreaseFactor) / interval / recoveryCount

export const recordSend = (pace: AdaptiveRate, at: number): AdaptiveRate => ({
  ...pace,
  sendTimes: [...pace.sendTimes.slice(1 - sendHistoryLength), at],
})

/**
 * Additive increase: back where the limit was met after 50 answers, and on from there as fast. The first answer after refusals
 * also shows what got through all the while, which is the limit itself where it counts by the minute.
 */
export const increaseRate = (pace: AdaptiveRate, sent: number, now: number): AdaptiveRate => {
  const { interval, step, loweredAt, isBlocked, countStart, acceptedCount } = pace
  if (interval === 0 || sent < loweredAt) return { ...pace, acceptedCount: acceptedCount + 1 }
  if (!isBlocked) return { ...pace, acceptedCount: acceptedCount + 1, interval: 1 / (1 / interval + step) }
  const open = { ...pace, isBlocked: false, countStart: now, acceptedCount: 1 }
  if (acceptedCount < minAcceptedCount) return open
  const real = (now - countStart) / acceptedCount
  return { ...open, interval: Math.max(interval, real), step: Math.min(step, increaseStep(real)) }
}

/** Multiplicative decrease, once for all requests under way: to four fifths of the rate tried, or of the real one where that was lower. */
export const decreaseRate = (pace: AdaptiveRate, sent: number, now: number): AdaptiveRate => {
  if (sent < pace.loweredAt || pace.isBlocked) return pace
  const { sendTimes } = pace
  const real = sendTimes.length < 2 ? 0 : ((sendTimes.at(-1) ?? now) - (sendTimes[0] ?? now)) / (sendTimes.length - 1)
  const tried = Math.max(pace.interval, real, 1)
  return {
    ...pace,
    interval: tried / decreaseFactor,
    step: increaseStep(tried),
    loweredAt: now,
    isBlocked: true,
    sendTimes: [],
  }
}
