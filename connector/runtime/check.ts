import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import type { TaskEither } from 'fp-ts/TaskEither'
import { type ClientOptions, toFailure } from '../api'
import { type Failure, type Stream, transientFailure } from '../cdk'
import type { ConnectionConfig, DestinationConfig, SourceConfig } from '../config'
import { futureStartFailure, type SourceEnv, windowOperations } from '../streams'
import { type Observations, observeRequests, type ServiceClientOptions, toConnectionFailure } from './client'
import { checkDestination, openDestination } from './destination'
import { type CheckVerdict, createSampleFetcher } from './export-check'
import { describeFindings, estimateServiceTime, type Finding, listFindingWarnings } from './findings'
import { createProbeGate, maxProbeRequests, type ProbeFacts, runProbes } from './probe'
import { type ConfiguredSource, checkOutput, createSource } from './source'
import { refusedEntityWarning, startSourceCheck } from './source-check'

/** How long a platform waits for `check`, minus start-up time on a busy machine; milliseconds. */
const checkTimeout = 12_000

/** The fewest requests of a check: one for a token, five for the reviews and four for the deletions. */
const minRequests = 10

/** How often a check sends a failing request. */
const checkAttempts = 2

/**
 * The config with timeouts that end before a platform gives up on `check`. Drops the rate limit if only this process
 * uses it and a minute of it covers the whole check. `otherRequests`: the number of requests besides those to the
 * exports.
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

/**
 * The failure of a check whose time is up. `operations`: those without a complete answer; `last`: the failure of the
 * newest retry.
 */
const checkTimeoutFailure = (operations: string, last: Failure | undefined): Failure => ({
  ...transientFailure(
    `check: no complete answer within ${checkTimeout / 1000} s to ${operations}. ` +
      (last?.message ?? 'The service may be slow or limit our rate. Check base_url and try again.'),
    last?.detail,
  ),
  ...(last === undefined ? {} : { _tag: last._tag }),
})

/** The result of `check`, or that of `onTimeout` shortly before a platform gives up. */
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
        last = toConnectionFailure(error, toFailure(operation, error))
      },
    },
    lastFailure: () => last,
  }
}

/** The number of operations besides the exports that the config uses. */
const countOtherOperations = ({ entities, lookups }: SourceConfig): number => {
  const { person_ids, location_ids, entity_ids } = entities
  const feedback = person_ids.length + location_ids.length + entity_ids.length > 0 ? 2 : 0
  return feedback + Object.values(lookups).filter((lookup) => lookup !== undefined).length
}

/** The result for one part: the service, the token, or a stream. `note`: why a stream was not checked. */
export type CheckStep = {
  readonly check: 'service' | 'token' | 'stream'
  readonly stream?: string
  readonly status: 'ok' | 'failed' | 'skipped'
  readonly failure?: Failure
  readonly note?: string
}

/** The operation that a stream reads, as checks name it. */
const operationOf = ({ name, reader }: Stream<SourceEnv>, { sourceLookup }: SourceEnv): string => {
  if (name === 'sources' && sourceLookup !== undefined) return 'look up sources'
  return reader.name === 'retrieve summaries' ? 'retrieve comments' : reader.name
}

/** What a check found out about the service, and what the user should know or change. */
type SourceReport = { readonly warnings: ReadonlyArray<string>; readonly findings: ReadonlyArray<Finding> }

type StreamChecks = SourceReport & { readonly steps: ReadonlyArray<CheckStep> }

/** How long a user waits for the findings of a check, in milliseconds. */
const personTimeout = 60_000

/**
 * Checks what the streams with these names need from the service. Steps come in order and end after a broken
 * connection. A failure means that the config cannot be used at all.
 */
export const checkStreams =
  (
    config: SourceConfig,
    names: ReadonlyArray<string>,
    variables: ServiceClientOptions['proxyVariables'],
  ): TaskEither<Failure, StreamChecks> =>
  async () => {
    const steps: CheckStep[] = []
    const result = await runSourceCheck(config, variables, personTimeout, (check, { env, streams }, checked) => {
      const connection = check.connection() ?? E.mapLeft((failure: Failure) => ({ cause: 'service', failure }))(checked)
      const broken = E.isLeft(connection) ? connection.left : undefined
      if (broken?.cause === 'token') steps.push({ check: 'service', status: 'ok' })
      if (broken?.cause === 'issuer')
        steps.push({ check: 'service', status: 'skipped', note: 'it was not asked, since there is no token' })
      if (broken !== undefined)
        steps.push({
          check: broken.cause === 'service' ? 'service' : 'token',
          status: 'failed',
          failure: broken.failure,
        })
      else {
        steps.push({ check: 'service', status: 'ok' }, { check: 'token', status: 'ok' })
        for (const stream of streams.filter(({ name }) => names.includes(name)))
          steps.push({
            check: 'stream',
            stream: stream.name,
            ...checkStreamAccess(operationOf(stream, env), check, env, checked),
          })
      }
    })
    if (E.isLeft(result)) return result
    const { outcome, report } = result.right
    return E.isLeft(outcome) && steps.length === 0 ? outcome : E.right({ steps, ...report })
  }

const checkStreamAccess = (
  operation: string,
  { operations, unansweredOperations }: ReturnType<typeof startSourceCheck>,
  { entities: { fromReviews } }: SourceEnv,
  result: E.Either<Failure, unknown>,
): Pick<CheckStep, 'status' | 'failure' | 'note'> => {
  const outcome = operations.get(operation) ?? (unansweredOperations().includes(operation) ? result : undefined)
  if (outcome !== undefined && E.isLeft(outcome)) return { status: 'failed', failure: outcome.left }
  if (operations.has(operation)) return { status: 'ok' }
  if (outcome !== undefined) return { status: 'skipped', note: 'the rate limit of the config left no time to ask' }
  return fromReviews.locations || fromReviews.providers !== 'none'
    ? { status: 'skipped', note: 'its entities come from the reviews, so only a run can ask for them' }
    : { status: 'skipped', note: 'the config names no entities, so there is nothing to read' }
}

/** Checks the source that a config describes, before a platform gives up on `check`. */
export const checkSourceConfig =
  (config: SourceConfig, variables: ServiceClientOptions['proxyVariables']): TaskEither<Failure, SourceReport> =>
  async () => {
    const result = await runSourceCheck(config, variables, checkTimeout, () => undefined)
    return pipe(
      result,
      E.flatMap(({ outcome, report }) => E.map(() => report)(outcome)),
    )
  }

/**
 * Runs the check until it ends or its time is up; `inspect` gets what was found by then. Then probes what a run will
 * meet, until `timeout` milliseconds after the start. Left: the config cannot be used.
 */
const runSourceCheck = async (
  config: SourceConfig,
  proxyVariables: ServiceClientOptions['proxyVariables'],
  timeout: number,
  inspect: (check: ReturnType<typeof startSourceCheck>, configured: ConfiguredSource, result: CheckVerdict) => void,
): Promise<E.Either<Failure, { readonly outcome: CheckVerdict; readonly report: SourceReport }>> => {
  const end = ticks() + timeout - probeReserve
  const output = await checkOutput(config)()
  if (E.isLeft(output)) return output
  const { options, lastFailure } = createRetryRecorder()
  const { seen, options: observers } = observeRequests(Date.now)
  const notices: Array<string> = []
  const configured = createSource(withCheckTimeouts(config, countOtherOperations(config)), {
    ...options,
    ...observers,
    proxyVariables,
    onNotice: (message) => notices.push(message),
  })
  if (E.isLeft(configured)) return configured
  const { env, close } = configured.right
  const check = startSourceCheck(configured.right)
  const outcome = await awaitOrTimeOut(check.outcome, () => timeOutCheck(config, check, seen, lastFailure()))
  const isConnected = E.isRight(check.connection() ?? E.left(undefined))
  const future = futureStartFailure(env.startDate, estimateServiceTime(seen, Date.now()))
  if (isConnected && future !== undefined) {
    await close()
    return E.left(future)
  }
  inspect(check, configured.right, outcome)
  const facts: ProbeFacts = { pages: undefined, count: undefined, entities: undefined, windows: [] }
  const exported = check.operations.get('export reviews')
  if (exported !== undefined && E.isRight(exported) && (E.isRight(outcome) || timeout > checkTimeout))
    await awaitUntil(probeSource(config, env, seen, facts, end), end)
  await close()
  if (exported !== undefined && E.isLeft(exported)) facts.pages = E.left({ _tag: 'Failed' })
  const warnings = E.isRight(outcome) ? outcome.right : []
  return E.right({
    outcome,
    report: {
      findings: seen.answers === 0 || exported === undefined ? [] : describeFindings(config, facts, seen),
      warnings: [...dropRefusals(warnings, facts), ...listFindingWarnings(facts), ...notices],
    },
  })
}

/** The outcome of a check whose time is up. If only our own rate limit delays the requests, nothing is wrong yet. */
const timeOutCheck = (
  { rate_limit: { requests_per_minute } }: SourceConfig,
  { unansweredOperations }: ReturnType<typeof startSourceCheck>,
  { acceptances }: Observations,
  last: Failure | undefined,
): CheckVerdict => {
  const operations = unansweredOperations().join(' and ')
  return requests_per_minute !== undefined && acceptances > 0
    ? E.right([
        `rate_limit.requests_per_minute (${requests_per_minute}) left no time to finish checking ${operations}.`,
      ])
    : E.left(checkTimeoutFailure(operations, last))
}

/** Probes what a run will meet and writes it into `facts`. Sends nothing after `end`, a time of `ticks`. */
const probeSource = (
  config: SourceConfig,
  env: SourceEnv,
  seen: Observations,
  facts: ProbeFacts,
  end: number,
): Promise<void> => {
  const lastSend = seen.sends + countProbeRequests(config)
  const isOpen = () => seen.sends < lastSend && ticks() < end
  return runProbes({ source: env, fetchPage: createSampleFetcher(env), send: createProbeGate(isOpen), ticks }, facts)
}

/** The warnings without those about the first entity: the findings already say the same for each refused entity. */
const dropRefusals = (warnings: ReadonlyArray<string>, { entities }: ProbeFacts): ReadonlyArray<string> => {
  const unknown = entities !== undefined && E.isRight(entities) ? entities.right.unknown : []
  const refusals = windowOperations.flatMap(({ name }) => unknown.map(({ id }) => refusedEntityWarning(name, id)))
  return warnings.filter((warning) => !refusals.includes(warning))
}

/** How long before its time is up a check stops probing, in milliseconds. */
const probeReserve = 1_000

const ticks = (): number => performance.now()

/** How many requests the probes may make: what a minute of the configured rate has left, if it is limited. */
const countProbeRequests = (config: SourceConfig): number => {
  const { requests_per_minute = Number.POSITIVE_INFINITY, redis_url } = config.rate_limit
  const checkRequests = minRequests + countOtherOperations(config)
  return redis_url !== undefined || requests_per_minute < checkRequests
    ? maxProbeRequests
    : Math.min(maxProbeRequests, requests_per_minute - checkRequests)
}

/** Waits for a result, but not beyond a time of `ticks`. */
const awaitUntil = async (result: Promise<unknown>, end: number): Promise<void> => {
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise((resolve) => {
    timer = setTimeout(resolve, Math.max(0, end - ticks()))
  })
  await Promise.race([result, timeout]).finally(() => clearTimeout(timer))
}

/** Checks the destination of a config before a platform gives up on `check`. Resolves to what it found. */
export const checkDestinationConfig =
  (
    config: DestinationConfig,
    warn: (message: string) => void,
    proxyVariables: ServiceClientOptions['proxyVariables'],
  ): TaskEither<Failure, string> =>
  async () => {
    const { options, lastFailure } = createRetryRecorder()
    const checked = withCheckTimeouts({ ...config, dry_run: false })
    const configured = await openDestination(checked, warn, { ...options, proxyVariables })()
    if (E.isLeft(configured)) return configured
    const result = await awaitOrTimeOut<E.Either<Failure, string>>(
      checkDestination(checked, configured.right.target)(),
      () => E.left(checkTimeoutFailure('an empty array', lastFailure())),
    )
    await configured.right.close()
    return result
  }
