import { setTimeout as sleep } from 'node:timers/promises'
import type { Task } from 'fp-ts/Task'

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
