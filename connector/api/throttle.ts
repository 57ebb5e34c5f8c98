import * as E from 'fp-ts/Either'
import type { TaskEither } from 'fp-ts/TaskEither'
import type { RateLimiter } from './budget'
import type { Clock } from './clock'
import type { ApiError } from './error'
import { decreaseRate, increaseRate, initialRate, recordSend } from './pace'
import { isRateLimitError } from './retry'

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
