import { setTimeout as sleep } from 'node:timers/promises'
import * as E from 'fp-ts/Either'
import { identity, pipe } from 'fp-ts/function'
import type { Task } from 'fp-ts/Task'
import type { TaskEither } from 'fp-ts/TaskEither'
import * as TE from 'fp-ts/TaskEither'
import type { ApiError } from '../error'
import { isRateLimitError } from './retry'

/** The client's source of time and random numbers. Tests use their own. */
export type Clock = {
  /** The wall clock; milliseconds since 1970. */
  readonly now: () => number
  /** Milliseconds of a monotonic clock, unaffected by corrections of the wall clock. */
  readonly ticks: () => number
  /** A random number from 0 to less than 1. */
  readonly random: () => number
  readonly wait: (millis: number) => Task<void>
}

/** This machine's clock. After `stop` is aborted, waits end at once. */
export const systemClock = (stop: AbortSignal): Clock => ({
  now: Date.now,
  ticks: () => performance.now(),
  random: Math.random,
  wait: (millis) => () =>
    millis <= 0 ? Promise.resolve() : sleep(millis, undefined, { signal: stop }).catch(() => undefined),
})

/**
 * The request rate learned from answers with status 429, if none is configured. Times are milliseconds of a monotonic
 * clock.
 */
export type AdaptiveRate = {
  /** Milliseconds between two requests; 0 until a limit is met. */
  readonly interval: number
  /** Added to the rate by each answer other than 429, in requests per millisecond. */
  readonly step: number
  /** When the rate was last lowered. Answers to earlier requests say nothing about the new rate. */
  readonly loweredAt: number
  /** Every answer since then was a 429. */
  readonly isBlocked: boolean
  /** `acceptedCount` counts the answers other than 429 since then. */
  readonly countStart: number
  readonly acceptedCount: number
  /** When the last requests were sent, oldest first. */
  readonly sendTimes: ReadonlyArray<number>
}

/** The rate of a client that starts at `now` and has met no limit. */
export const initialRate = (now: number): AdaptiveRate => ({
  interval: 0,
  step: 0,
  loweredAt: now,
  isBlocked: false,
  countStart: now,
  acceptedCount: 0,
  sendTimes: [],
})

const sendHistoryLength = 10
const minAcceptedCount = 5
const recoveryCount = 50
const decreaseFactor = 0.8

const increaseStep = (interval: number): number => (1 - decreaseFactor) / interval / recoveryCount

export const recordSend = (rate: AdaptiveRate, time: number): AdaptiveRate => ({
  ...rate,
  sendTimes: [...rate.sendTimes.slice(1 - sendHistoryLength), time],
})

/**
 * Additive increase: after 50 answers, the rate is back at the limit, and then keeps rising at the same pace. The first
 * answer after a series of 429s also shows how many requests were accepted in between. That is the limit if the service
 * counts per minute.
 */
export const increaseRate = (rate: AdaptiveRate, sentAt: number, now: number): AdaptiveRate => {
  const { interval, step, loweredAt, isBlocked, countStart, acceptedCount } = rate
  if (interval === 0 || sentAt < loweredAt) return { ...rate, acceptedCount: acceptedCount + 1 }
  if (!isBlocked) return { ...rate, acceptedCount: acceptedCount + 1, interval: 1 / (1 / interval + step) }
  const unblocked = { ...rate, isBlocked: false, countStart: now, acceptedCount: 1 }
  if (acceptedCount < minAcceptedCount) return unblocked
  const acceptedInterval = (now - countStart) / acceptedCount
  return {
    ...unblocked,
    interval: Math.max(interval, acceptedInterval),
    step: Math.min(step, increaseStep(acceptedInterval)),
  }
}

/**
 * Multiplicative decrease, once for all requests in progress: to four fifths of the planned rate, or of the actual rate
 * if that was lower.
 */
export const decreaseRate = (rate: AdaptiveRate, sentAt: number, now: number): AdaptiveRate => {
  if (sentAt < rate.loweredAt || rate.isBlocked) return rate
  const { sendTimes } = rate
  const actual = sendTimes.length < 2 ? 0 : ((sendTimes.at(-1) ?? now) - (sendTimes[0] ?? now)) / (sendTimes.length - 1)
  const refused = Math.max(rate.interval, actual, 1)
  return {
    ...rate,
    interval: refused / decreaseFactor,
    step: increaseStep(refused),
    loweredAt: now,
    isBlocked: true,
    sendTimes: [],
  }
}

/** How many requests may be sent per minute, and how many may be in progress at once. */
export type RateLimit = {
  readonly requests_per_minute?: number
  readonly max_concurrency: number
}

/** Decides when a request may be sent. */
export type RateLimiter = {
  /** Runs `job` when the limit allows it. A Left means that it never will. */
  readonly schedule: <A>(job: Task<A>) => TaskEither<ApiError, A>
  readonly close: () => Promise<void>
}

/**
 * The minimum time between two requests, in milliseconds, so that the service sees at most `perMinute` of them in any
 * minute, even if some take longer to arrive: of `perMinute` + 1 requests, the last is sent 61 s after the first.
 */
export const minInterval = (perMinute: number): number => Math.ceil(61_000 / perMinute)

export const limiterSettings = ({ requests_per_minute, max_concurrency }: RateLimit) => ({
  maxConcurrent: max_concurrency,
  minTime: requests_per_minute === undefined ? 0 : minInterval(requests_per_minute),
})

export const clientClosedError: ApiError = { _tag: 'Network', code: 'ABORTED', message: 'the client was closed' }

/**
 * Limits the requests in progress, first come, first served. It uses no timer, so it costs nothing while there is room.
 */
const createGate = (maxConcurrency: number): RateLimiter => {
  let waiting: Array<(isOpen: boolean) => void> = []
  let underWay = 0
  let isClosed = false

  const enter = (): Promise<boolean> => {
    if (isClosed) return Promise.resolve(false)
    if (underWay >= maxConcurrency) return new Promise((resolve) => waiting.push(resolve))
    underWay += 1
    return Promise.resolve(true)
  }
  /** A slot passes directly to the next waiting request, so `underWay` changes only if none waits. */
  const leave = (): void => {
    const next = waiting.shift()
    if (next === undefined) underWay -= 1
    else next(true)
  }

  return {
    schedule: (job) => async () => {
      if (!(await enter())) return E.left(clientClosedError)
      try {
        return E.right(await job())
      } finally {
        leave()
      }
    },
    close: async () => {
      isClosed = true
      for (const resolve of waiting) resolve(false)
      waiting = []
    },
  }
}

/** Timers may fire up to a millisecond early. */
const timerError = 2

/**
 * Starts jobs one after another, at least `interval` milliseconds apart: each occupies a gate for that long. The time
 * counts from the start of a job, so that no two start together after the process was suspended.
 */
const createSpacing = (interval: number): RateLimiter => {
  const gate = createGate(1)
  let timer: NodeJS.Timeout | undefined
  return {
    schedule: (job) => () =>
      new Promise((resolve, reject) => {
        const start = (): Promise<void> => {
          job().then(E.right).then(resolve, reject)
          return new Promise((leave) => {
            timer = setTimeout(leave, interval + timerError)
          })
        }
        void gate
          .schedule(start)()
          .then((started) => {
            if (E.isLeft(started)) resolve(started)
          })
      }),
    close: async () => {
      await gate.close()
      clearTimeout(timer)
    },
  }
}

/** The limit of one process: a gate and, if a rate is configured, a minimum time between requests. */
export const createLocalLimiter = ({ requests_per_minute, max_concurrency }: RateLimit): RateLimiter => {
  const gate = createGate(max_concurrency)
  if (requests_per_minute === undefined) return gate
  const spacing = createSpacing(minInterval(requests_per_minute))
  return {
    schedule: (job) => pipe(gate.schedule(spacing.schedule(job)), TE.flatMapEither(identity)),
    close: async () => {
      await gate.close()
      await spacing.close()
    },
  }
}

/** Passes on each request of a process when the rate limit and the service allow it. */
export type Throttle = {
  readonly run: <A>(request: TaskEither<ApiError, A>) => TaskEither<ApiError, A>
}

/**
 * Sends requests as `limiter` allows, and at the learned rate if the service answers 429. While the service asks for a
 * pause of at most `maxWait` milliseconds, all requests wait, not only the rejected one.
 */
export const createThrottle = (
  limiter: Pick<RateLimiter, 'schedule'>,
  clock: Pick<Clock, 'ticks' | 'wait'>,
  maxWait: number,
): Throttle => {
  let rate = initialRate(clock.ticks())
  let nextStart = 0
  let pausedUntil = 0

  const learnRate = (sentAt: number, answer: E.Either<ApiError, unknown>): void => {
    if (E.isRight(answer)) rate = increaseRate(rate, sentAt, clock.ticks())
    else if (isRateLimitError(answer.left)) rate = decreaseRate(rate, sentAt, clock.ticks())
    const pause = E.isLeft(answer) && 'retryAfter' in answer.left ? (answer.left.retryAfter ?? 0) : 0
    // The gap of a pause does not show how many requests the service accepts.
    if (pause > 0) rate = { ...rate, sendTimes: [] }
    if (pause <= maxWait) pausedUntil = Math.max(pausedUntil, clock.ticks() + pause)
  }

  const waitForTurn = async (): Promise<void> => {
    const start = Math.max(clock.ticks(), pausedUntil, nextStart)
    nextStart = start + rate.interval
    await clock.wait(start - clock.ticks())()
  }

  const run =
    <A>(request: TaskEither<ApiError, A>): TaskEither<ApiError, A> =>
    async () => {
      await waitForTurn()
      const scheduled = await limiter.schedule(async () => {
        const sentAt = clock.ticks()
        // A pause began while the request waited in the limiter, so it must wait again.
        if (sentAt < pausedUntil) return undefined
        rate = recordSend(rate, sentAt)
        const answer = await request()
        learnRate(sentAt, answer)
        return answer
      })()
      if (E.isLeft(scheduled)) return scheduled
      return scheduled.right ?? run(request)()
    }

  return { run }
}
