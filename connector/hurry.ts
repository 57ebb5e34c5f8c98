import { type ApiError, toFailure } from './api/error'
import { type Failure, transientFailure } from './cdk/failure'
import type { ConnectionConfig } from './connection'

/** A platform's patience with `check`, less what it takes to start on a busy machine, in milliseconds. */
const checkTimeout = 12_000

/** What a check asks at least: a token, and three questions of each of the two exports. */
const minRequests = 7

/** How often a check sends a request that meets faults. */
export const checkAttempts = 2

/**
 * A configuration for a quick look: nothing in it outlasts a platform's patience with `check`. A budget of this process alone
 * that has room for all that a check asks need not spread it over a minute; `more`: what it asks beside the exports.
 */
export const withCheckTimeouts = <C extends ConnectionConfig>(config: C, more = 0): C => {
  const asked = minRequests + more
  const { rate_limit, timeouts } = config
  const { requests_per_minute = asked, redis_url, ...rest } = rate_limit
  return {
    ...config,
    rate_limit: requests_per_minute >= asked && redis_url === undefined ? rest : rate_limit,
    timeouts: {
      connect_seconds: Math.min(timeouts.connect_seconds, 5),
      response_seconds: Math.min(timeouts.response_seconds, 10),
      max_wait_seconds: Math.min(timeouts.max_wait_seconds, 4),
    },
  }
}

/** What a check says of an error: a wait that is too long for it may well be sat out by a run. */
export const toCheckFailure = (operation: string, error: ApiError): Failure =>
  error._tag === 'Wait'
    ? transientFailure(
        `${operation}: the service limits our rate and asks to wait ${Math.ceil(error.wait / 1000)} s, longer than a check may last. Check again then.`,
      )
    : toFailure(operation, error)

/** What is known of a service that has not answered in full when the time is up: `last` is the newest fault met. */
export const checkTimeoutFailure = (which: string, last: Failure | undefined): Failure =>
  transientFailure(
    `check: no complete answer within ${checkTimeout / 1000} s to ${which}. ${last?.message ?? 'The service may be slow or limit our rate; see that base_url is right and try again.'}`,
    last?.detail,
  )

/** What `looking` answers, or `late` once a platform would lose its patience. */
export const awaitOrTimeOut = <A>(looking: Promise<A>, late: () => A): Promise<A> =>
  new Promise((resolve, reject) => {
    const timer = setTimeout(() => resolve(late()), checkTimeout)
    looking.then(resolve, reject).finally(() => clearTimeout(timer))
  })
