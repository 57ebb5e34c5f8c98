import Bottleneck from 'bottleneck'

/** How many requests may leave, and how many be under way. */
export type RateLimit = {
  readonly requests_per_minute?: number
  readonly max_concurrency: number
}

/**
 * Milliseconds between two requests so that no minute, wherever it begins, sees more than `perMinute` of them, though the way
 * to the service is now slow, now fast: of `perMinute` + 1 requests the last leaves a second more than a minute after the first.
 */
export const spacing = (perMinute: number): number => Math.ceil(61_000 / perMinute)

/** Schedules the requests of one process. */
export const localBudget = ({ requests_per_minute, max_concurrency }: RateLimit): Bottleneck =>
  new Bottleneck({
    maxConcurrent: max_concurrency,
    minTime: requests_per_minute === undefined ? 0 : spacing(requests_per_minute),
  })
