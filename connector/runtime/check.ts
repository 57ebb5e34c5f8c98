import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import type { TaskEither } from 'fp-ts/TaskEither'
import { type ClientOptions, toFailure } from '../api'
import { type Failure, type Stream, transientFailure } from '../cdk'
import type { ConnectionConfig, DestinationConfig, SourceConfig } from '../config'
import type { SourceEnv } from '../streams'
import { checkDestination, openDestination } from './destination'
import { type ConfiguredSource, createSource } from './source'
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

/** What a check has found of one thing: the service, the token, or a stream. `note`: why a stream was not asked for. */
export type CheckFinding = {
  readonly check: 'service' | 'token' | 'stream'
  readonly stream?: string
  readonly status: 'ok' | 'failed' | 'skipped'
  readonly failure?: Failure
  readonly note?: string
}

/** The operation whose rows a stream is made of, as checks name it. */
const operationOf = ({ reader }: Stream<SourceEnv>): string =>
  reader.name === 'retrieve summaries' ? 'retrieve comments' : reader.name

type StreamChecks = { readonly findings: ReadonlyArray<CheckFinding>; readonly warnings: ReadonlyArray<string> }

/**
 * Asks the service for what the streams of these names need. Findings come in order; behind a broken connection there are none. A
 * failure says that the config cannot be used at all.
 */
export const checkStreams =
  (config: SourceConfig, names: ReadonlyArray<string>): TaskEither<Failure, StreamChecks> =>
  async () => {
    const findings: CheckFinding[] = []
    const result = await runSourceCheck(config, (check, { env, streams }, checked) => {
      const connection = check.connection() ?? E.mapLeft((failure: Failure) => ({ part: 'service', failure }))(checked)
      const broken = E.isLeft(connection) ? connection.left : undefined
      if (broken?.part === 'token') findings.push({ check: 'service', status: 'ok' })
      if (broken !== undefined)
        findings.push({
          check: broken.part === 'token' ? 'token' : 'service',
          status: 'failed',
          failure: broken.failure,
        })
      else {
        findings.push({ check: 'service', status: 'ok' }, { check: 'token', status: 'ok' })
        for (const stream of streams.filter(({ name }) => names.includes(name)))
          findings.push({
            check: 'stream',
            stream: stream.name,
            ...checkStreamAccess(operationOf(stream), check, env, checked),
          })
      }
    })
    if (E.isLeft(result) && findings.length === 0) return result
    return E.right({ findings, warnings: E.isRight(result) ? result.right : [] })
  }

const checkStreamAccess = (
  operation: string,
  { operations, unansweredOperations }: ReturnType<typeof startSourceCheck>,
  { entities: { fromReviews } }: SourceEnv,
  result: E.Either<Failure, unknown>,
): Pick<CheckFinding, 'status' | 'failure' | 'note'> => {
  const outcome = operations.get(operation) ?? (unansweredOperations().includes(operation) ? result : undefined)
  if (outcome !== undefined && E.isLeft(outcome)) return { status: 'failed', failure: outcome.left }
  if (operations.has(operation)) return { status: 'ok' }
  if (outcome !== undefined) return { status: 'skipped', note: 'the rate limit of the config left no time to ask' }
  return fromReviews.locations || fromReviews.providers !== 'none'
    ? { status: 'skipped', note: 'its entities come from the reviews, so only a run can ask for them' }
    : { status: 'skipped', note: 'the config names no entities, so there is nothing to read' }
}

/** Checks the source that a config describes, before a platform gives up on `check`; the result are warnings. */
export const checkSourceConfig =
  (config: SourceConfig): TaskEither<Failure, ReadonlyArray<string>> =>
  () =>
    runSourceCheck(config, () => undefined)

/** Runs the check until it ends or its time is up; `inspect` sees what was found by then. */
const runSourceCheck = async (
  config: SourceConfig,
  inspect: (
    check: ReturnType<typeof startSourceCheck>,
    configured: ConfiguredSource,
    result: E.Either<Failure, ReadonlyArray<string>>,
  ) => void,
): Promise<E.Either<Failure, ReadonlyArray<string>>> => {
  const { options, lastFailure } = createRetryRecorder()
  let answered = 0
  const notices: Array<string> = []
  const configured = createSource(withCheckTimeouts(config, countOtherOperations(config)), {
    ...options,
    onNotice: (message) => notices.push(message),
    onRequest: ({ status }) => {
      answered += status < 400 ? 1 : 0
    },
  })
  if (E.isLeft(configured)) return configured
  const check = startSourceCheck(configured.right)
  const { outcome, unansweredOperations } = check
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
  inspect(check, configured.right, result)
  await configured.right.close()
  return pipe(
    result,
    E.map((warnings) => [...warnings, ...notices]),
  )
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
