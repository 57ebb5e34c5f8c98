import * as E from 'fp-ts/Either'
import type { TaskEither } from 'fp-ts/TaskEither'
import { type ClientOptions, toFailure } from '../api'
import { type Failure, transientFailure } from '../cdk'
import type { ConnectionConfig, DestinationConfig, SourceConfig } from '../config'
import { checkDestination, openDestination } from './destination'
import { createSource } from './source'
import { startSourceCheck } from './source-check'

/** How long a platform waits for `check`, less the time to start on a busy machine; in milliseconds. */
const checkTimeout = 12_000

/** The fewest requests of a check: one for a token, and three for each of the two exports. */
const minRequests = 7

/** How often a check sends a request that fails. */
const checkAttempts = 2

/**
 * The configuration with time-outs that end before a platform gives up on `check`. The rate limit is left out if it belongs to this
 * process alone and a minute of it covers the whole check. `otherRequests`: the number of requests beside those to the exports.
 */
export const withCheckTimeouts = <C extends ConnectionConfig>(config: C, otherRequests = 0): C => {
  const requests = minRequests + otherRequests
  const { rate_limit, timeouts } = config
  const { requests_per_minute = requests, redis_url, ...rest } = rate_limit
  return {
    ...config,
    rate_limit: requests_per_minute >= requests && redis_url === undefined ? rest : rate_limit,
    timeouts: {
      connect_seconds: Math.min(timeouts.connect_seconds, 5),
      response_seconds: Math.min(timeouts.response_seconds, 10),
      max_wait_seconds: Math.min(timeouts.max_wait_seconds, 4),
    },
  }
}

/** The failure of a check whose time is up. `operations`: those without a complete answer; `last`: the failure of the newest retry. */
const checkTimeoutFailure = (operations: string, last: Failure | undefined): Failure =>
  transientFailure(
    `check: no complete answer within ${checkTimeout / 1000} s to ${operations}. ${last?.message ?? 'The service may be slow or limit our rate; see that base_url is right and try again.'}`,
    last?.detail,
  )

/** The result of `check`, or of `onTimeout` shortly before a platform gives up. */
export const awaitOrTimeOut = <A>(check: Promise<A>, onTimeout: () => A): Promise<A> =>
  new Promise((resolve, reject) => {
    const timer = setTimeout(() => resolve(onTimeout()), checkTimeout)
    check.then(resolve, reject).finally(() => clearTimeout(timer))
  })

/** Client options of a check, and the failure of the newest retry. */
const createRetryRecorder = (): {
  readonly options: Pick<ClientOptions, 'attempts' | 'onRetry'>
  readonly lastFailure: () => Failure | undefined
} => {
  let last: Failure | undefined
  return {
    options: {
      attempts: checkAttempts,
      onRetry: ({ operation, error }) => {
        last = toFailure(operation, error)
      },
    },
    lastFailure: () => last,
  }
}

/** The number of operations beside the exports that the config uses. */
const countOtherOperations = ({ entities, lookups }: SourceConfig): number => {
  const { person_ids, location_ids, entity_ids } = entities
  const feedback = person_ids.length + location_ids.length + entity_ids.length > 0 ? 2 : 0
  return feedback + Object.values(lookups).filter((lookup) => lookup !== undefined).length
}

/** Checks the source that a config describes, before a platform gives up on `check`; the result are warnings. */
export const checkSourceConfig =
  (config: SourceConfig): TaskEither<Failure, ReadonlyArray<string>> =>
  async () => {
    const { options, lastFailure } = createRetryRecorder()
    let answered = 0
    const configured = createSource(withCheckTimeouts(config, countOtherOperations(config)), {
      ...options,
      onRequest: ({ status }) => {
        answered += status < 400 ? 1 : 0
      },
    })
    if (E.isLeft(configured)) return configured
    const { outcome, unansweredOperations } = startSourceCheck(configured.right)
    const result = await awaitOrTimeOut(outcome, () => {
      const operations = unansweredOperations().join(' and ')
      const { requests_per_minute } = config.rate_limit
      // Nothing is wrong yet where only our own rate limit delays the rest of the requests.
      return requests_per_minute !== undefined && answered > 0
        ? E.right([
            `rate_limit.requests_per_minute (${requests_per_minute}) left no time to ask everything of ${operations}.`,
          ])
        : E.left(checkTimeoutFailure(operations, lastFailure()))
    })
    await configured.right.close()
    return result
  }

/** Checks the destination that a config describes, before a platform gives up on `check`; the result is what it found. */
export const checkDestinationConfig =
  (config: DestinationConfig, warn: (message: string) => void): TaskEither<Failure, string> =>
  async () => {
    const { options, lastFailure } = createRetryRecorder()
    const checked = withCheckTimeouts({ ...config, dry_run: false })
    const configured = await openDestination(checked, warn, options)()
    if (E.isLeft(configured)) return configured
    const result = await awaitOrTimeOut<E.Either<Failure, string>>(
      checkDestination(checked, configured.right.target)(),
      () => E.left(checkTimeoutFailure('an empty array', lastFailure())),
    )
    await configured.right.close()
    return result
  }
