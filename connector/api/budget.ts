import Bottleneck from 'bottleneck'
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
export type Budget = {
  /** Runs `job` once there is room; a Left says why there will be none. */
  readonly spend: <A>(job: Task<A>) => TaskEither<ApiError, A>
  readonly close: () => Promise<void>
}

/**
 * Milliseconds between two requests so that no minute, wherever it begins, sees more than `perMinute` of them, though the way
 * to the service is now slow, now fast: of `perMinute` + 1 requests the last leaves a second more than a minute after the first.
 */
export const spacing = (perMinute: number): number => Math.ceil(61_000 / perMinute)

export const settings = ({ requests_per_minute, max_concurrency }: RateLimit) => ({
  maxConcurrent: max_concurrency,
  minTime: requests_per_minute === undefined ? 0 : spacing(requests_per_minute),
})

export const closed: ApiError = { _tag: 'Network', code: 'ABORTED', message: 'the client was closed' }

/** The budget of one process. */
export const localBudget = (limit: RateLimit): Budget => {
  const limiter = new Bottleneck(settings(limit))
  return {
    spend: (job) => () =>
      new Promise((resolve, reject) => {
        const run = () => job().then(E.right).then(resolve, reject)
        limiter.schedule(run).catch(() => resolve(E.left(closed)))
      }),
    close: async () => {
      await limiter.stop({ dropWaitingJobs: true })
    },
  }
}
