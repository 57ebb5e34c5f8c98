import * as O from 'fp-ts/Option'
import type { TaskEither } from 'fp-ts/TaskEither'
import type { ApiError } from '../api/error'
import { createRetryPolicy, mayHaveArrived, type RetryLimits, type RetryPolicy, retryRequest } from '../api/retry'

/** Whether it may be that no answer came though the request arrived: a client that does not resend has left it at that. */
export const isUnanswered = (error: ApiError): boolean => {
  switch (error._tag) {
    case 'Network':
      return mayHaveArrived(error)
    case 'Http':
      return error.status === 408 || error.status >= 500
    case 'Decode':
    case 'Application':
      return true
    default:
      return false
  }
}

/** For requests that mean the same when they arrive twice: those that went unanswered are sent again, as reads are. */
export const resendPolicy = (patience: RetryLimits, random: () => number): RetryPolicy => {
  const policy = createRetryPolicy(patience, random)(true)
  return (error, tried) => (isUnanswered(error) ? policy(error, tried) : O.none)
}

/** Sends again what went unanswered; `wait` in milliseconds. */
export const resendUnanswered =
  (policy: RetryPolicy, wait: (millis: number) => TaskEither<never, void>) =>
  <A>(effect: TaskEither<ApiError, A>): TaskEither<ApiError, A> =>
    retryRequest(policy, ({ delay }) => wait(delay))(effect)
