import * as E from 'fp-ts/Either'
import * as O from 'fp-ts/Option'
import type { Task } from 'fp-ts/Task'
import type { TaskEither } from 'fp-ts/TaskEither'
import * as TE from 'fp-ts/TaskEither'
import {
  type Api,
  type ApiError,
  createRetryPolicy,
  isTokenError,
  type LookupList,
  mayHaveArrived,
  outageKind,
  type RetryLimits,
  type RetryPolicy,
  retryRequest,
  toFailure,
} from '../api'
import type { BatchAnswer, Failure } from '../cdk'
import type { LocationLedger } from './ledger'

/**
 * The column of each attribute; null: the attribute is not sent. An omitted attribute may use the column with its own
 * name.
 */
export type ColumnMapping = Readonly<Record<string, string | null | undefined>>

/** What the sinks need: the API and their part of the config. */
export type SinkTarget = {
  readonly api: Pick<Api, 'createVisitRecords' | 'syncLocations'>
  /**
   * Retries an unanswered request. `isSuspect`: one of its items may make the service fail, so it gets fewer attempts.
   */
  readonly resend: (isSuspect: boolean) => <A>(request: TaskEither<ApiError, A>) => TaskEither<ApiError, A>
  /** By the names of the sinks. */
  readonly mapping: Readonly<Record<'visit_records' | 'locations', ColumnMapping>>
  /** Columns with the names of attributes are sent even if the mapping omits them. */
  readonly mapByName: boolean
  /** Milliseconds since 1970. */
  readonly now: () => number
  /** Older visits are rejected; milliseconds. */
  readonly maxVisitAge: number
  /** The locations accepted before. Without it, only locations whose record says so are deactivated. */
  readonly ledger: O.Option<LocationLedger>
  /** Reads the service's list of active locations, or only its first page (`isSample`); none: it is not configured. */
  readonly serviceList?: O.Option<(isSample: boolean) => TaskEither<Failure, LookupList>>
  /** A complete list also deactivates locations that the service lists and no ledger knows. */
  readonly deactivateUnlisted?: boolean
  /** Waits so many milliseconds. */
  readonly wait?: (millis: number) => Task<void>
  readonly maxDeactivationsPercent: number
  /** Nothing is sent, so the notes list every change. */
  readonly dryRun: boolean
  /** The codes of locations that this run could not write. The service may refuse visits to them. */
  readonly rejectedCodes: Set<string>
  readonly warn: (message: string) => void
  readonly inform: (message: string) => void
}

/** Accepts everything without sending it, for a dry run. */
export const dryRunApi: SinkTarget['api'] = {
  createVisitRecords: (visits) =>
    TE.right({ records: Object.fromEntries(visits.map(({ visitRecordId }) => [visitRecordId ?? '', 'Success'])) }),
  syncLocations: (items) => TE.right({ status: 'SUCCESS', failedRequests: 0, totalRequests: items.length }),
}

/**
 * The service may have processed the request without a usable answer. Only requests that may be sent twice are
 * repeated.
 */
const isUnanswered = (error: ApiError): boolean => {
  switch (error._tag) {
    case 'Network':
      return mayHaveArrived(error)
    case 'Http':
      return error.status === 408 || error.status >= 500
    case 'Decode':
      return true
    case 'Application':
      return !isTokenError(error) && !isLimitInBody(error)
    default:
      return false
  }
}

/**
 * The service reports a rate limit inside a 200 response. The client does not wait for it, since it repeats no writes.
 */
const isLimitInBody = (error: ApiError): boolean => error._tag === 'Application' && outageKind(error) === 'limit'

/**
 * Retries unanswered requests, which must have the same effect if they arrive twice, and those refused for their rate
 * inside a 200 response.
 */
export const resendPolicy = (limits: RetryLimits, random: () => number): RetryPolicy => {
  const policy = createRetryPolicy(limits, random)(true)
  return (error, attempts) => (isUnanswered(error) || isLimitInBody(error) ? policy(error, attempts) : O.none)
}

/** Repeats a request according to the policy; `wait` takes milliseconds. */
export const resendUnanswered =
  (policy: RetryPolicy, wait: (millis: number) => TaskEither<never, void>) =>
  <A>(request: TaskEither<ApiError, A>): TaskEither<ApiError, A> =>
    retryRequest(policy, ({ delay }) => wait(delay))(request)

/** Statuses of a wrong request, not of a missing permission or a failing service. A smaller batch may pass. */
const isBatchStatus = (status: number): boolean =>
  status >= 400 && status < 500 && ![401, 403, 404, 405, 407, 408, 429].includes(status)

/** What an error means for its batch; a Left ends the run. */
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

/** Without a message from the service, the error's own message is only its status. */
const rejectionReason = ({ status, message }: Extract<ApiError, { _tag: 'Http' }>): string =>
  message === `the service answered ${status}` ? message : `the service answered ${status}: ${message}`

const unansweredReason = (error: ApiError): string => {
  switch (error._tag) {
    case 'Http':
      return `the service repeatedly answers ${error.status} to it but accepts others`
    case 'Network':
      return `the service gives no usable answer to it (${error.code}) but accepts others`
    default:
      return 'the service repeatedly gives an unexpected answer to it but accepts others'
  }
}

/**
 * Resolves to true if the service answers, even with a refusal, and does not report its own failure. `request` sends an
 * empty batch.
 */
export const isServiceAnswering =
  (request: TaskEither<ApiError, unknown>): Task<boolean> =>
  async () => {
    const answer = await request()
    return (
      E.isRight(answer) ||
      answer.left._tag === 'Decode' ||
      (answer.left._tag === 'Http' && isBatchStatus(answer.left.status))
    )
  }
