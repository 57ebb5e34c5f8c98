import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as O from 'fp-ts/Option'
import type { TaskEither } from 'fp-ts/TaskEither'
import * as TE from 'fp-ts/TaskEither'
import { type ApiError, isRefusalInBody, isTokenError, outageKind, Review, toFailure, toInstant } from '../api'
import { configFailure, drainFeed, type Failure, type Stream, transientFailure } from '../cdk'
import { boundsOf, type CutRecord, createCutter, createReviewFetcher, type ExportPage, type FetchPage } from '../export'
import { chooseCutoff, leavesOutRows } from '../reading'
import {
  checkSourceLookup,
  createDeletionFetcher,
  deletionExportOperation,
  futureStartFailure,
  isLookupStream,
  reviewExportOperation,
  type SourceEnv,
} from '../streams'
import { otherServerFailure, toConnectionFailure } from './client'
import type { ConfiguredSource } from './source'

/** The failure for an error: a wait that is too long for a check may be short enough for a run. */
const toCheckFailure = (operation: string, error: ApiError): Failure =>
  error._tag === 'Wait'
    ? transientFailure(
        `${operation}: the service limits our rate and asks to wait ` +
          `${Math.ceil(error.wait / 1000)} s, longer than a check may last. Check again then.`,
      )
    : toFailure(operation, error)

/** A request of one operation, with the operation's name in messages; its result are warnings. */
type OperationCheck = readonly [name: string, check: TaskEither<Failure, ReadonlyArray<string>>]

/**
 * The operations beside the exports that the config uses: comments and reviews if it names an entity, and the lookups.
 */
const listOperationChecks = (
  source: SourceEnv,
  streams: ReadonlyArray<Stream<SourceEnv>>,
): ReadonlyArray<OperationCheck> => [
  ...feedbackOperationChecks(source),
  ...(source.sourceLookup === undefined
    ? []
    : [['look up sources', checkSourceLookup({ ...source, samplesLookups: true })] as const]),
  ...streams.filter(isLookupStream).map((stream): OperationCheck => [stream.reader.name, checkLookup(source, stream)]),
]

/** The parameter of a request for the first entity that the config names. */
const firstEntity = ({ entities: { persons, locations, entities } }: SourceEnv) => {
  const [personId] = persons
  const [locationId] = locations
  const [entityId] = entities
  if (personId !== undefined) return { personId }
  if (locationId !== undefined) return { locationId }
  return entityId === undefined ? undefined : { entityId }
}

const feedbackOperationChecks = (source: SourceEnv): ReadonlyArray<OperationCheck> => {
  const entity = firstEntity(source)
  if (entity === undefined) return []
  const request = { ...entity, days: 1, perPage: 1 }
  const [id = ''] = Object.values(entity)
  const toCheck = (name: string, answer: TaskEither<ApiError, unknown>): OperationCheck => [
    name,
    pipe(
      answer,
      TE.match(
        (error): E.Either<Failure, ReadonlyArray<string>> =>
          isEntityError(error) ? E.right([refusedEntityWarning(name, id)]) : E.left(toCheckFailure(name, error)),
        () => E.right([]),
      ),
    ),
  ]
  return [
    toCheck('retrieve comments', source.api.retrieveComments({ ...request, page: 1, showComments: false })),
    toCheck('retrieve reviews', source.api.retrieveReviews({ ...request, page: 0, showReviews: false })),
  ]
}

/** `id`: the first entity of the config. */
export const refusedEntityWarning = (operation: string, id: string): string =>
  `${operation}: the service refuses ${id}, the first of entities. See that it exists.`

/** Whether the service does not know the entity; a run still reads the others. */
const isEntityError = (error: ApiError): boolean =>
  isRefusalInBody(error) || (error._tag === 'Http' && error.status === 404)

const checkLookup = (source: SourceEnv, { name, reader, projector }: Stream<SourceEnv>): OperationCheck[1] =>
  pipe(
    reader.read({ ...source, samplesLookups: true })([
      { stream: name, syncMode: 'full_refresh', state: O.none, attributes: O.none, project: projector() },
    ]),
    drainFeed(() => TE.right(undefined)),
    TE.map(() => []),
  )

/** A failure, or warnings. */
type CheckOutcome = E.Either<Failure, ReadonlyArray<string>>

/**
 * Why nothing could be asked: the address does not answer as the service does, no token is issued, or it is refused.
 */
type ConnectionFailure = { readonly part: 'service' | 'issuer' | 'token'; readonly failure: Failure }

type ExportCheck = readonly [operation: { readonly name: string; readonly hasMentionTime: boolean }, fetch: FetchPage]

/** A check that is running. */
type SourceCheck = {
  readonly outcome: Promise<CheckOutcome>
  /** Whether the service and the token work; the operations are asked only then. Undefined while that is not known. */
  readonly connection: () => E.Either<ConnectionFailure, void> | undefined
  /** By operation, of those that have answered completely. */
  readonly operations: ReadonlyMap<string, CheckOutcome>
  /** The operations that have not answered completely yet. */
  readonly unansweredOperations: () => ReadonlyArray<string>
}

/** Pages of the review export, with nothing of a review but its key and cursor checked. */
export const createSampleFetcher = ({ api }: SourceEnv): FetchPage =>
  createReviewFetcher(
    api,
    createCutter({ codec: Review, list: 'reviews', primaryKey: 'id', cursor: 'modifiedTime', undeclared: 'drop' }),
  )

const listExportChecks = (source: SourceEnv): readonly [ExportCheck, ...ReadonlyArray<ExportCheck>] => [
  [reviewExportOperation, createSampleFetcher(source)],
  [deletionExportOperation, createDeletionFetcher({ api: source.api, onUnknown: 'drop' })],
]

type CheckedSource = Pick<ConfiguredSource, 'env' | 'streams'>

/**
 * Asks each operation for a few rows and returns warnings. A failure says which operation is refused and what to do.
 */
export const checkSource =
  (configured: CheckedSource): TaskEither<Failure, ReadonlyArray<string>> =>
  () =>
    startSourceCheck(configured).outcome

/** The same for a caller that stops waiting. If the first operation finds no service, the others are not asked. */
export const startSourceCheck = ({ env, streams }: CheckedSource): SourceCheck => {
  const [[firstExport, fetchFirst], ...otherExports] = listExportChecks(env)
  const otherOperations = listOperationChecks(env, streams)
  const unanswered = new Set([
    ...[firstExport, ...otherExports.map(([operation]) => operation)].map(({ name }) => name),
    ...otherOperations.map(([name]) => name),
  ])
  const operations = new Map<string, CheckOutcome>()
  let connection: E.Either<ConnectionFailure, void> | undefined
  const markAnswered = async (name: string, check: Promise<CheckOutcome>): Promise<CheckOutcome> => {
    const outcome = await check
    unanswered.delete(name)
    operations.set(name, outcome)
    return outcome
  }
  const run = async (): Promise<CheckOutcome> => {
    const first = await fetchSample(fetchFirst, env, env.startDate)()
    if (E.isLeft(first) && !isOperationError(first.left)) {
      const failure = toFirstFailure(firstExport.name, first.left)
      connection = E.left({ part: partOf(first.left), failure })
      return E.left(failure)
    }
    connection = E.right(undefined)
    return mergeOutcomes(
      await Promise.all([
        markAnswered(firstExport.name, checkExportOperation(firstExport, fetchFirst, env, first)),
        ...otherExports.map(async ([operation, fetch]) => {
          const sample = await fetchSample(fetch, env, env.startDate)()
          return markAnswered(operation.name, checkExportOperation(operation, fetch, env, sample))
        }),
        ...otherOperations.map(([name, check]) => markAnswered(name, check())),
      ]),
    )
  }
  return { outcome: run(), connection: () => connection, operations, unansweredOperations: () => [...unanswered] }
}

const fetchSample = (
  fetch: FetchPage,
  { filters }: SourceEnv,
  from: number,
  offset = 0,
): TaskEither<ApiError, ExportPage> =>
  fetch({ ...filters, modifiedTimeFrom: toInstant(from), offset, limit: sampleSize })

const sampleSize = 10

/**
 * Asks the service for nothing, before a run writes anything. Fails only if every request of the run would fail the
 * same way, as with a wrong token. `isFirst`: nothing was ever read, so it also fails where another server answers: its
 * address would be kept.
 */
export const probeAccess = ({ env }: Pick<ConfiguredSource, 'env'>, isFirst: boolean): TaskEither<Failure, void> => {
  const [[{ name }, fetch]] = listExportChecks(env)
  return pipe(
    fetchSample(fetch, env, env.now() + oneDay),
    TE.mapLeft((error) => (isFirst ? findOtherServer(name, error) : undefined) ?? toFailure(name, error)),
    TE.matchE(
      (failure) => (failure.scope === 'run' ? TE.left(failure) : TE.right(undefined)),
      ({ servedAt = env.now() }) => TE.fromEither(checkStart(env.startDate, servedAt)),
    ),
  )
}

const checkStart = (startDate: number, serviceTime: number): E.Either<Failure, void> => {
  const failure = futureStartFailure(startDate, serviceTime)
  return failure === undefined ? E.right(undefined) : E.left(failure)
}

/** Whether the service refuses the token, by its status or inside a 200. */
const isTokenRefusal = (error: ApiError): boolean =>
  isTokenError(error) || (error._tag === 'Http' && error.status === 401)

/** Whether an error concerns one operation only, so that the others are worth asking. */
const isOperationError = (error: ApiError): boolean =>
  (error._tag === 'Application' || (error._tag === 'Http' && error.status >= 400)) &&
  !isTokenRefusal(error) &&
  outageKind(error) !== 'limit'

/** What an error of the first request is about. Where no token is issued, the service was not asked. */
const partOf = (error: ApiError): ConnectionFailure['part'] => {
  if (error._tag === 'Token') return error.code === undefined ? 'issuer' : 'service'
  return isTokenRefusal(error) ? 'token' : 'service'
}

/**
 * The failure where the answer to the first request of all cannot be that of the service: the address is the most
 * likely cause. Only the service echoes filters, though they be those of another request, as from a cache.
 */
const findOtherServer = (operation: string, error: ApiError): Failure | undefined =>
  error._tag === 'Decode' && error.remedy === undefined && !error.path.startsWith('$.filter.')
    ? { ...otherServerFailure(operation, `at ${error.path}: ${error.message}`), scope: 'run' }
    : undefined

const toFirstFailure = (operation: string, error: ApiError): Failure =>
  findOtherServer(operation, error) ?? toConnectionFailure(error, toCheckFailure(operation, error))

/**
 * The service's specification does not say how an offset beyond the last row is answered; the same request without an
 * offset has just succeeded.
 */
const isBadRequest = (error: ApiError): boolean => error._tag === 'Http' && error.status === 400

/** Far enough ahead that nothing can have changed later; in milliseconds. */
const oneDay = 86_400_000

type FilterEvidence = 'obeyed' | 'unknown' | { readonly leftOut: number; readonly isCovered: boolean }

const hasRow = (page: ExportPage, row: CutRecord): boolean =>
  page.rows.some(({ id, modifiedTime }) => id === row.id && modifiedTime === row.modifiedTime)

/**
 * Whether a row comes that changed a second after `modifiedTimeFrom`. A filter only takes rows away, so a row of the
 * first page stays on it, unless the service has no order or the row has changed. `leftOut`: when the row changed;
 * `isCovered`: it comes from a lookback before.
 */
const probeFilter = (fetch: FetchPage, source: SourceEnv, page: ExportPage): TaskEither<ApiError, FilterEvidence> => {
  const [newest] = [...page.rows].sort((a, b) => b.modifiedTime - a.modifiedTime)
  if (newest === undefined || newest.modifiedTime < source.startDate + 1000) return TE.right('unknown')
  const time = newest.modifiedTime
  return pipe(
    fetchSample(fetch, source, time - 1000),
    TE.flatMap((since): TaskEither<ApiError, FilterEvidence> => {
      if (hasRow(since, newest)) return TE.right('obeyed')
      return pipe(
        TE.Do,
        TE.apS('again', fetchSample(fetch, source, source.startDate)),
        TE.apS('lookback', fetchSample(fetch, source, time - source.lookback)),
        TE.map(({ again, lookback }): FilterEvidence => {
          const isSame = page.rows.every(({ id }, i) => id === again.rows[i]?.id)
          const isCertain = hasRow(again, newest) && (isSame || page.rows.length < sampleSize)
          return isCertain ? { leftOut: time, isCovered: hasRow(lookback, newest) } : 'unknown'
        }),
      )
    }),
  )
}

const describeLeftOut = (name: string, time: number, remedy: string): string =>
  `${name}: asked for what changed after ${toInstant(time - 1000)}, the service leaves out a row that changed ` +
  `at ${toInstant(time)}. It may read modifiedTimeFrom in a time zone of its own, not as UTC. ${remedy}`

/** Rows that are dated after the service's own time; one alone may be a mistake. */
const warnOfEarlyDate = (
  { name }: ExportCheck[0],
  { lookback }: SourceEnv,
  early: ExportPage,
): ReadonlyArray<string> =>
  early.rows.length < 2
    ? []
    : [
        `${name}: rows are dated more than lookback_minutes (${lookback / 60_000}) ` +
          'after the Date of the answers. A run reads up to that Date, so changes ' +
          'arrive late by as much; ask the operator of the service to set its clocks.',
      ]

/**
 * Checks the first rows, and that the service obeys modifiedTimeFrom and offset: otherwise a run would read everything,
 * or the same rows, again and again.
 */
const checkExportOperation = async (
  operation: ExportCheck[0],
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
        TE.apS('filter', probeFilter(fetch, source, page)),
        TE.apS(
          'early',
          page.rows.length === 0 || page.servedAt === undefined || !operation.hasMentionTime
            ? TE.right(page)
            : fetchSample(fetch, source, page.servedAt + source.lookback),
        ),
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
    TE.mapLeft((error) => toCheckFailure(operation.name, error)),
    TE.flatMapEither(({ page, later, filter, early, next }) => {
      const ignoredParameter = (problem: string) =>
        E.left(
          configFailure(
            `${operation.name}: the service ${problem}. No run could ` +
              'be sure to have read everything; ask its operator.',
          ),
        )
      if (later.rows.length > 0)
        return ignoredParameter(
          'ignores modifiedTimeFrom: it answers rows though the time asked for lies in the future',
        )
      if (page.rows.some(({ modifiedTime }) => modifiedTime < source.startDate - 1000))
        return ignoredParameter('ignores modifiedTimeFrom: it answers rows from before start_date')
      if (next.rows.length > 0 && next.rows.every(({ id }, i) => id === page.rows[i]?.id))
        return ignoredParameter('ignores offset: it answers the same rows at another one')
      const leftOut = (remedy: string): ReadonlyArray<string> =>
        typeof filter === 'string' ? [] : [describeLeftOut(operation.name, filter.leftOut, remedy)]
      if (typeof filter !== 'string' && !filter.isCovered)
        return E.left(
          configFailure(
            leftOut(
              'Runs would lose rows. Set lookback_minutes to more than the distance of the ' +
                'zone from UTC (1440 covers every zone), or ask the operator of the service.',
            ).join(),
          ),
        )
      return E.right([
        ...leftOut('lookback_minutes covers it.'),
        ...(early === page ? [] : warnOfEarlyDate(operation, source, early)),
        ...chooseCutoff(page.servedAt, source.now())[1].map(({ message }) => message),
        ...(page.narrowerFilters ?? []).map(
          (key) => `${operation.name}: the service applies a narrower ${key} than the config asks.`,
        ),
        // A run asks for more than the default where the operation has the parameters for it.
        ...(!operation.hasMentionTime && leavesOutRows({}, boundsOf(page.filter), page.servedAt ?? source.now())
          ? [`${operation.name}: the service leaves out rows by a default of its own. Ask its operator.`]
          : []),
      ])
    }),
  )()

/** Messages in one; a text that follows several operations is given once, behind their names. */
const joinMessages = (messages: ReadonlyArray<string>): string => {
  const operations = new Map<string, ReadonlyArray<string>>()
  for (const message of messages) {
    const [start = '', rest] = message.split(/(?=: )/s)
    const text = rest === undefined ? message : message.slice(start.length)
    operations.set(text, [...(operations.get(text) ?? []), ...(rest === undefined ? [] : [start])])
  }
  return [...operations].map(([text, names]) => [...new Set(names)].join(' and ') + text).join(' ')
}

/** One outcome of all: failures that a change of the config can fix win over others; each warning is given once. */
const mergeOutcomes = (outcomes: ReadonlyArray<CheckOutcome>): CheckOutcome => {
  const failures = outcomes.flatMap((outcome) => (E.isLeft(outcome) ? [outcome.left] : []))
  const configFailures = failures.filter(({ _tag }) => _tag === 'Config')
  const [reported, createFailure] =
    configFailures.length > 0 ? [configFailures, configFailure] : [failures, transientFailure]
  if (reported.length > 0) {
    const details = reported.flatMap(({ detail }) => (detail === undefined ? [] : [detail]))
    return E.left(
      createFailure(
        joinMessages(reported.map(({ message }) => message)),
        details.length === 0 ? undefined : details.join('; '),
      ),
    )
  }
  return E.right([...new Set(outcomes.flatMap((outcome) => (E.isRight(outcome) ? outcome.right : [])))])
}
