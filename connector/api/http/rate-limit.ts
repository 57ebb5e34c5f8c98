import * as E from 'fp-ts/Either'
import type { Task } from 'fp-ts/Task'
import type { TaskEither } from 'fp-ts/TaskEither'
import type { ApiError } from '../error'
import type { Clock } from './clock'
import { isRateLimitError } from './retry'

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

/** How many requests may leave, and how many be under way. */
export type RateLimit = {
  readonly requests_per_minute?: number
  readonly max_concurrency: number
}

/** Decides when a request may leave. */
export type RateLimiter = {
  /** Runs `job` once there is room; a Left says why there will be none. */
  readonly schedule: <A>(job: Task<A>) => TaskEither<ApiError, A>
  readonly close: () => Promise<void>
}

/**
 * Milliseconds between two requests so that no minute, wherever it begins, sees more than `perMinute` of them, though the way
 * to the service is now slow, now fast: of `perMinute` + 1 requests the last leaves a second more than a minute after the first.
 */
export const minInterval = (perMinute: number): number => Math.ceil(61_000 / perMinute)

export const limiterSettings = ({ requests_per_minute, max_concurrency }: RateLimit) => ({
  maxConcurrent: max_concurrency,
  minTime: requests_per_minute === undefined ? 0 : minInterval(requests_per_minute),
})

export const clientClosedError: ApiError = { _tag: 'Network', code: 'ABORTED', message: 'the client was closed' }

/** The budget of one process; first come, first served, without a timer where there is room. */
export const createLocalLimiter = (limit: RateLimit): RateLimiter => {
  const { maxConcurrent, minTime } = limiterSettings(limit)
  let waiting: Array<(room: boolean) => void> = []
  let underway = 0
  let next = 0
  let alarm: NodeJS.Timeout | undefined
  let stopped = false

  const pump = (): void => {
    while (underway < maxConcurrent && waiting.length > 0 && alarm === undefined) {
      const now = performance.now()
      if (now >= next) {
        next = now + minTime
        underway += 1
        waiting.shift()?.(true)
      } else
        alarm = setTimeout(() => {
          alarm = undefined
          pump()
        }, next - now)
    }
  }
  const turn = (): Promise<boolean> =>
    new Promise((resolve) => {
      waiting.push(resolve)
      pump()
    })

  return {
    schedule: (job) => async () => {
      if (stopped || !(await turn())) return E.left(clientClosedError)
      try {
        return E.right(await job())
      } finally {
        underway -= 1
        pump()
      }
    },
    close: async () => {
      stopped = true
      clearTimeout(alarm)
      for (const answer of waiting) answer(false)
      waiting = []
    },
  }
}

/** The budget of all requests of a process. */
export type Throttle = {
  /** Runs `request` when its turn comes. */
  readonly run: <A>(request: TaskEither<ApiError, A>) => TaskEither<ApiError, A>
}

/**
 * Lets requests through as `budget` allows, and slower where the service answers 429; while it asks to be left alone,
 * for `maxWait` milliseconds at most, every request waits, not only the one it refused.
 */
export const createThrottle = (
  budget: Pick<RateLimiter, 'schedule'>,
  clock: Pick<Clock, 'ticks' | 'wait'>,
  maxWait: number,
): Throttle => {
  let pace = initialRate(clock.ticks())
  let next = 0
  let closedUntil = 0

  const learn = (sent: number, answer: E.Either<ApiError, unknown>): void => {
    if (E.isRight(answer)) pace = increaseRate(pace, sent, clock.ticks())
    else if (isRateLimitError(answer.left)) pace = decreaseRate(pace, sent, clock.ticks())
    const asked = E.isLeft(answer) && 'retryAfter' in answer.left ? (answer.left.retryAfter ?? 0) : 0
    if (asked <= maxWait) closedUntil = Math.max(closedUntil, clock.ticks() + asked)
  }

  const turn = async (): Promise<void> => {
    const mine = Math.max(clock.ticks(), closedUntil, next)
    next = mine + pace.interval
    await clock.wait(mine - clock.ticks())()
  }

  const through =
    <A>(request: TaskEither<ApiError, A>): TaskEither<ApiError, A> =>
    async () => {
      await turn()
      const answer = await budget.schedule(async () => {
        const sent = clock.ticks()
        if (sent < closedUntil) return undefined
        pace = recordSend(pace, sent)
        const result = await request()
        learn(sent, result)
        return result
      })()
      if (E.isLeft(answer)) return answer
      return answer.right ?? through(request)()
    }

  return { run: through }
}
