import * as E from 'fp-ts/Either'
import type { Task } from 'fp-ts/Task'
import type { TaskEither } from 'fp-ts/TaskEither'
import type { ApiError } from './error'

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
