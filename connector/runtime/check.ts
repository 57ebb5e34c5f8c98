import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as O from 'fp-ts/Option'
import type { TaskEither } from 'fp-ts/TaskEither'
import * as TE from 'fp-ts/TaskEither'
import { type ApiError, DeletedReview, isUnreachableCode, Review, toFailure, toInstant } from '../api'
import { configFailure, drainFeed, type Failure, type Stream, transientFailure } from '../cdk'
import type { ConnectionConfig } from '../config'
import {
  chooseCutoff,
  createCutter,
  createDeletedReviewFetcher,
  createReviewFetcher,
  type ExportPage,
  type FetchPage,
} from '../export'
import { isLookupStream, type SourceEnv } from '../streams'
import type { ConfiguredSource } from './source'

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

/** One request of an operation, by its name in messages: what is wrong, or warnings. */
export type OperationCheck = readonly [name: string, ask: TE.TaskEither<Failure, ReadonlyArray<string>>]

/** The operations beside the exports that the config makes use of: those of feedback where it names an entity, the lookups. */
export const listOperationChecks = (
  source: SourceEnv,
  streams: ReadonlyArray<Stream<SourceEnv>>,
): ReadonlyArray<OperationCheck> => [
  ...feedbackOperationChecks(source),
  ...streams.filter(isLookupStream).map((stream): OperationCheck => [stream.reader.name, checkLookup(source, stream)]),
]

/** The first entity that the config names, as a request has it. */
const firstEntity = ({ entities: { persons, locations, entities } }: SourceEnv) => {
  const [personId] = persons
  const [locationId] = locations
  const [entityId] = entities
  if (personId !== undefined) return { personId }
  if (locationId !== undefined) return { locationId }
  return entityId === undefined ? undefined : { entityId }
}

const feedbackOperationChecks = (source: SourceEnv): ReadonlyArray<OperationCheck> => {
  const one = firstEntity(source)
  if (one === undefined) return []
  const least = { ...one, days: 1, perPage: 1 }
  const [id] = Object.values(one)
  const ask = (name: string, answer: TE.TaskEither<ApiError, unknown>): OperationCheck => [
    name,
    pipe(
      answer,
      TE.match(
        (error): E.Either<Failure, ReadonlyArray<string>> =>
          isEntityError(error)
            ? E.right([`${name}: the service refuses ${id}, the first of entities. See that it exists.`])
            : E.left(toCheckFailure(name, error)),
        () => E.right([]),
      ),
    ),
  ]
  return [
    ask('retrieve comments', source.api.retrieveComments({ ...least, page: 1, showComments: false })),
    ask('retrieve reviews', source.api.retrieveReviews({ ...least, page: 0, showReviews: false })),
  ]
}

/** An entity that is unknown is a matter of that entity: the others are read. */
const isEntityError = (error: ApiError): boolean =>
  error._tag === 'Application' || (error._tag === 'Http' && error.status === 404)

const checkLookup = (source: SourceEnv, { name, reader, projector }: Stream<SourceEnv>): OperationCheck[1] =>
  pipe(
    reader.read(source)([
      { stream: name, syncMode: 'full_refresh', state: O.none, attributes: O.none, project: projector() },
    ]),
    drainFeed(() => TE.right(undefined)),
    TE.map(() => []),
  )

/** What is wrong, or warnings. */
type CheckOutcome = E.Either<Failure, ReadonlyArray<string>>

type ExportCheck = readonly [name: string, fetch: FetchPage]

/** An inquiry under way. */
export type SourceCheck = {
  readonly outcome: Promise<CheckOutcome>
  /** The operations that have not answered in full yet. */
  readonly unansweredOperations: () => ReadonlyArray<string>
}

const exportShape = { list: 'reviews', primaryKey: 'id', cursor: 'modifiedTime', undeclared: 'drop' } as const

const listExportChecks = ({ api }: SourceEnv): readonly [ExportCheck, ...ReadonlyArray<ExportCheck>] => [
  ['export reviews', createReviewFetcher(api, createCutter({ codec: Review, ...exportShape }))],
  ['export deleted reviews', createDeletedReviewFetcher(api, createCutter({ codec: DeletedReview, ...exportShape }))],
]

type CheckedSource = Pick<ConfiguredSource, 'source' | 'streams'>

/** Asks each operation for a few rows; answers warnings. A failure says which is refused and what to do. */
export const checkSource =
  (wired: CheckedSource): TaskEither<Failure, ReadonlyArray<string>> =>
  () =>
    startSourceCheck(wired).outcome

/** The same, to be watched. The first operation knocks: where nobody opens, the others are not asked. */
export const startSourceCheck = ({ source, streams }: CheckedSource): SourceCheck => {
  const [[first, fetch], ...others] = listExportChecks(source)
  const questions = listOperationChecks(source, streams)
  const open = new Set([first, ...others.map(([name]) => name), ...questions.map(([name]) => name)])
  const closing = async (name: string, finding: Promise<CheckOutcome>): Promise<CheckOutcome> => {
    const found = await finding
    open.delete(name)
    return found
  }
  const inquire = async (): Promise<CheckOutcome> => {
    const knock = await fetchSample(fetch, source, source.startDate)()
    if (E.isLeft(knock) && !isOperationError(knock.left)) return E.left(toConnectionFailure(first, knock.left))
    return mergeOutcomes(
      await Promise.all([
        closing(first, checkExportOperation(first, fetch, source, knock)),
        ...others.map(async ([name, other]) =>
          closing(
            name,
            checkExportOperation(name, other, source, await fetchSample(other, source, source.startDate)()),
          ),
        ),
        ...questions.map(([name, question]) => closing(name, question())),
      ]),
    )
  }
  return { outcome: inquire(), unansweredOperations: () => [...open] }
}

const fetchSample = (
  fetch: FetchPage,
  { filters }: SourceEnv,
  from: number,
  offset = 0,
): TaskEither<ApiError, ExportPage> => fetch({ ...filters, modifiedTimeFrom: toInstant(from), offset, limit: 10 })

/** Whether an error speaks of one operation only: the others may tell more. */
const isOperationError = (error: ApiError): boolean =>
  error._tag === 'Application' || (error._tag === 'Http' && error.status >= 400 && ![401, 429].includes(error.status))

/** Nothing works yet, so the address is the first suspect. */
const toConnectionFailure = (operation: string, error: ApiError): Failure => {
  const failure = toCheckFailure(operation, error)
  const code = error._tag === 'Network' || error._tag === 'Token' ? error.code : undefined
  if (code !== undefined && isUnreachableCode(code)) return { ...failure, _tag: 'Config' }
  return error._tag === 'Decode' && error.remedy === undefined
    ? configFailure(
        `${operation}: what answers at base_url is not the service (at ${error.path}: ${error.message}). Check base_url; a proxy or a login page may stand between.`,
      )
    : failure
}

/** What an offset behind the last row is answered with is not shown; the request was just answered without one. */
const isBadRequest = (error: ApiError): boolean => error._tag === 'Http' && error.status === 400

/** A time so late that nothing can have changed after it. */
const oneDay = 86_400_000

/** What the first rows tell, and whether time and offset are heeded: else every run would read everything, or the same. */
const checkExportOperation = async (
  operation: string,
  fetch: FetchPage,
  source: SourceEnv,
  first: E.Either<ApiError, ExportPage>,
): Promise<CheckOutcome> =>
  pipe(
    TE.fromEither(first),
    TE.flatMap((page) =>
      pipe(
        TE.Do,
        TE.apS('page', TE.right<ApiError, ExportPage>(page)),
        TE.apS('later', fetchSample(fetch, source, Math.max(source.now(), page.servedAt ?? 0) + oneDay)),
        TE.apS(
          'next',
          page.rows.length === 0
            ? TE.right(page)
            : pipe(
                fetchSample(fetch, source, source.startDate, page.rows.length),
                TE.orElse((error) => (isBadRequest(error) ? TE.right({ ...page, rows: [] }) : TE.left(error))),
              ),
        ),
      ),
    ),
    TE.mapLeft((error) => toCheckFailure(operation, error)),
    TE.flatMapEither(({ page, later, next }) => {
      const unheeded = (how: string) =>
        E.left(
          configFailure(
            `${operation}: the service ${how}. No run could be sure to have read everything; ask its operator.`,
          ),
        )
      if (later.rows.length > 0)
        return unheeded('does not heed modifiedTimeFrom: it answers rows though the time asked for lies in the future')
      if (page.rows.some(({ modifiedTime }) => modifiedTime < source.startDate - 1000))
        return unheeded('does not heed modifiedTimeFrom: it answers rows from before start_date')
      if (next.rows.length > 0 && next.rows.every(({ id }, i) => id === page.rows[i]?.id))
        return unheeded('does not heed offset: it answers the same rows at another one')
      return E.right([
        ...chooseCutoff(page.servedAt, source.now())[1].map(({ message }) => message),
        ...(page.narrowerFilters ?? []).map(
          (key) => `${operation}: the service applies a narrower ${key} than the config asks.`,
        ),
      ])
    }),
  )()

/** What is the config's to mend comes first; warnings are said once. */
const mergeOutcomes = (findings: ReadonlyArray<CheckOutcome>): CheckOutcome => {
  const failures = findings.flatMap((finding) => (E.isLeft(finding) ? [finding.left] : []))
  const mendable = failures.filter(({ _tag }) => _tag === 'Config')
  const told = mendable.length > 0 ? mendable : failures
  if (told.length > 0) {
    const make = mendable.length > 0 ? configFailure : transientFailure
    const details = told.flatMap(({ detail }) => (detail === undefined ? [] : [detail]))
    return E.left(
      make(told.map(({ message }) => message).join(' '), details.length === 0 ? undefined : details.join('; ')),
    )
  }
  return E.right([...new Set(findings.flatMap((finding) => (E.isRight(finding) ? finding.right : [])))])
}
