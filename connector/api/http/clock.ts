import { setTimeout as sleep } from 'node:timers/promises'
import type { Task } from 'fp-ts/Task'

/** Time and chance, as the client sees them; tests hand in their own. */
export type Clock = {
  /** The wall clock, milliseconds since 1970. */
  readonly now: () => number
  /** Milliseconds of a clock that only runs forward, so that a corrected wall clock does no harm. */
  readonly ticks: () => number
  /** At least 0, less than 1. */
  readonly random: () => number
  readonly wait: (millis: number) => Task<void>
}

/** The real one; once `stop` is aborted nothing waits any more. */
export const systemClock = (stop: AbortSignal): Clock => ({
  now: Date.now,
  ticks: () => performance.now(),
  random: Math.random,
  wait: (millis) => () =>
    millis <= 0 ? Promise.resolve() : sleep(millis, undefined, { signal: stop }).catch(() => undefined),
})
