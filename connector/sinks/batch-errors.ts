import * as E from 'fp-ts/Either'
import * as O from 'fp-ts/Option'
import type { Task } from 'fp-ts/Task'
import type { TaskEither } from 'fp-ts/TaskEither'
import {
  type ApiError,
  createRetryPolicy,
  mayHaveArrived,
  type RetryLimits,
  type RetryPolicy,
  retryRequest,
  toFailure,
} from '../api'
import type { BatchAnswer, Failure } from '../cdk'

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

/** Statuses that speak of the request rather than of us or of the service: a smaller batch may pass. */
const isBatchStatus = (status: number): boolean =>
  status >= 400 && status < 500 && ![401, 403, 404, 405, 407, 408, 429].includes(status)

/** An error of a whole batch: an answer about the batch, or none at all, or the end of the run. */
export const toBatchAnswer = (operation: string, error: ApiError): E.Either<Failure, BatchAnswer> => {
  const failure = toFailure(operation, error)
  if (error._tag === 'Http' && isBatchStatus(error.status))
    return E.right({
      _tag: 'Refused',
      reason: rejectionReason(error),
      tooLarge: error.status === 413,
    })
  return isUnanswered(error)
    ? E.right({ _tag: 'Unanswered', reason: unansweredReason(error), failure })
    : E.left(failure)
}

/** A body that says nothing leaves a message that only repeats the status. */
const rejectionReason = ({ status, message }: Extract<ApiError, { _tag: 'Http' }>): string =>
  message === `the service answered ${status}` ? message : `the service answered ${status}: ${message}`

const unansweredReason = (error: ApiError): string => {
  switch (error._tag) {
    case 'Http':
      return `the service answers ${error.status} to it time and again, and takes others`
    case 'Network':
      return `the service does not answer to it (${error.code}), and takes others`
    default:
      return 'the service answers something else to it time and again, and takes others'
  }
}

/** Whether anything is answered to an empty batch that does not say that the service is out of order. */
export const isServiceAnswering =
  (ask: TaskEither<ApiError, unknown>): Task<boolean> =>
  async () => {
    const answer = await ask()
    return (
      E.isRight(answer) ||
      answer.left._tag === 'Decode' ||
      (answer.left._tag === 'Http' && isBatchStatus(answer.left.status))
    )
  }
