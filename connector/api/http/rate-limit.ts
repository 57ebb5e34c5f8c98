import { setTimeout as sleep } from 'node:timers/promises'
import * as E from 'fp-ts/Either'
import { identity, pipe } from 'fp-ts/function'
import type { Task } from 'fp-ts/Task'
import type { TaskEither } from 'fp-ts/TaskEither'
import * as TE from 'fp-ts/TaskEither'
import type { ApiError } from '../error'
import { isRateLimitError } from './retry'

/** Time and random numbers of the client; tests use their own. */
export type Clock = {
  /** The wall clock; milliseconds since 1970. */
  readonly now: () => number
  /** Milliseconds of a clock that only runs forward, so that a correction of the wall clock does no harm. */
  readonly ticks: () => number
  /** A random number from 0 to less than 1. */
  readonly random: () => number
  readonly wait: (millis: number) => Task<void>
}

/** The clock of this machine; after `stop` is aborted no wait takes any time. */
export const systemClock = (stop: AbortSignal): Clock => ({
  now: Date.now,
  ticks: () => performance.now(),
  random: Math.random,
  wait: (millis) => () =>
    millis <= 0 ? Promise.resolve() : sleep(millis, undefined, { signal: stop }).catch(() => undefined),
})

/**
 * The request rate learnt from answers with status 429, where none is configured. Times are milliseconds of a clock
 * that only runs forward.
 */
export type AdaptiveRate = {
  /** Between two requests; 0 while no limit was met. */
  readonly interval: number
  /** Added to the rate by each answer other than 429; requests per millisecond. */
  readonly step: number
  /** When the rate was last lowered: the answer to a request sent before says nothing about the new rate. */
  readonly loweredAt: number
  /** Whether every answer since then was a 429. */
  readonly isBlocked: boolean
  /** `acceptedCount` counts the answers other than 429 since this time. */
  readonly countStart: number
  readonly acceptedCount: number
  /** When the last requests were sent, oldest first. */
  readonly sendTimes: ReadonlyArray<number>
}

/** The rate of a client that starts at the time `now` and has met no limit. */
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
 * Additive increase: the rate is back at the met limit after 50 answers, and goes on to rise as fast. The first answer
 * after a row of refusals also shows how many requests were accepted in between, which is the limit of a service that
 * counts by the minute.
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
 * Multiplicative decrease, once for all requests under way: to four fifths of the planned rate, or of the actual rate
 * where that was lower.
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

/** How many requests may leave in a minute, and how many may be under way at once. */
export type RateLimit = {
  readonly requests_per_minute?: number
  readonly max_concurrency: number
}

/** Decides when a request may leave. */
export type RateLimiter = {
  /** Runs `job` when the limit allows it; a Left says why it never will. */
  readonly schedule: <A>(job: Task<A>) => TaskEither<ApiError, A>
  readonly close: () => Promise<void>
}

/**
 * Milliseconds between two requests so that the service sees at most `perMinute` of them in any minute, wherever it
 * begins, though requests need differently long to reach it: of `perMinute` + 1 requests the last leaves 61 s after the
 * first.
 */
export const minInterval = (perMinute: number): number => Math.ceil(61_000 / perMinute)

export const limiterSettings = ({ requests_per_minute, max_concurrency }: RateLimit) => ({
  maxConcurrent: max_concurrency,
  minTime: requests_per_minute === undefined ? 0 : minInterval(requests_per_minute),
})

export const clientClosedError: ApiError = { _tag: 'Network', code: 'ABORTED', message: 'the client was closed' }

/**
 * Counts the requests under way: first come, first served, without a timer, so that it costs nothing while there is
 * room.
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
  /** A place passes straight to the next that waits, so `underWay` changes only where none waits. */
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

/** Timers round down by less than a millisecond. */
const timerError = 2

/**
 * Starts jobs at least `interval` milliseconds apart, one after another: each keeps its place in a gate for that long.
 * Counted from when a job started, so that no two start at once after the process stood still.
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

/** The limit of one process: a gate, and within it the distance between requests where a rate is configured. */
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

/** Passes on every request of a process when the rate limit and the service allow it. */
export type Throttle = {
  /** Runs `request` when its turn comes. */
  readonly run: <A>(request: TaskEither<ApiError, A>) => TaskEither<ApiError, A>
}

/**
 * Sends requests as `limiter` allows, and at the learnt rate where the service answers 429. While the service asks for
 * a pause of at most `maxWait` milliseconds every request waits, not only the one it refused.
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
    // The gap of a pause says nothing about how many requests the service accepts.
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
        // A pause began while the request waited in the limiter: it waits again.
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
