import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as O from 'fp-ts/Option'
import type { TaskEither } from 'fp-ts/TaskEither'
import * as TE from 'fp-ts/TaskEither'
import { type ApiError, isRefusalInBody, isTokenError, outageKind, toFailure } from '../api'
import { configFailure, drainFeed, type Failure, type Stream, transientFailure } from '../cdk'
import { checkSourceLookup, futureStartFailure, isLookupStream, type SourceEnv } from '../streams'
import { otherServerFailure, toConnectionFailure } from './client'
import { type CheckVerdict, checkExport, fetchSample, listExports, oneDay, toCheckFailure } from './export-check'
import type { ConfiguredSource } from './source'

/** The check of one operation, with the operation's name in messages. Resolves to warnings. */
type OperationCheck = readonly [name: string, check: TaskEither<Failure, ReadonlyArray<string>>]

/**
 * The operations besides the exports that the config uses: comments and reviews if it names an entity, and the lookups.
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

/** The request parameter for the first entity that the config names. */
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
  `${operation}: the service refuses ${id}, the first of entities. Check that it exists.`

/** The error means that the service does not know the entity. A run still reads the others. */
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

/**
 * Why nothing could be checked: the address does not answer like the service, or the token is not issued or refused.
 */
type ConnectionFailure = { readonly cause: 'service' | 'issuer' | 'token'; readonly failure: Failure }

/** A check that is running. */
type SourceCheck = {
  readonly outcome: Promise<CheckVerdict>
  /** The connection: the operations are checked only if the service and the token work. Undefined while unknown. */
  readonly connection: () => E.Either<ConnectionFailure, void> | undefined
  /** Verdicts by operation, for those that have answered completely. */
  readonly operations: ReadonlyMap<string, CheckVerdict>
  /** The operations that have not answered completely yet. */
  readonly unansweredOperations: () => ReadonlyArray<string>
}

type CheckedSource = Pick<ConfiguredSource, 'env' | 'streams'>

/**
 * Asks each operation for a few rows and resolves to warnings. A failure says which operation is refused and what to
 * do.
 */
export const checkSource =
  (configured: CheckedSource): TaskEither<Failure, ReadonlyArray<string>> =>
  () =>
    startSourceCheck(configured).outcome

/** The same for a caller that may stop waiting. If the first operation finds no service, the others are not checked. */
export const startSourceCheck = ({ env, streams }: CheckedSource): SourceCheck => {
  const [firstExport, ...otherExports] = listExports(env)
  const others: ReadonlyArray<OperationCheck> = [
    ...otherExports.map((each) => [each.name, checkExport(each, env)] as const),
    ...listOperationChecks(env, streams),
  ]
  const unanswered = new Set([firstExport.name, ...others.map(([name]) => name)])
  const operations = new Map<string, CheckVerdict>()
  let connection: E.Either<ConnectionFailure, void> | undefined
  const runOperation = async ([name, check]: OperationCheck): Promise<CheckVerdict> => {
    const outcome = await check()
    unanswered.delete(name)
    operations.set(name, outcome)
    return outcome
  }
  const run = async (): Promise<CheckVerdict> => {
    const first = await fetchSample(firstExport, env, env.startDate)()
    if (E.isLeft(first) && !isOperationError(first.left)) {
      const failure = toFirstFailure(firstExport.name, first.left)
      connection = E.left({ cause: causeOf(first.left), failure })
      return E.left(failure)
    }
    connection = E.right(undefined)
    const checkFirst = checkExport(firstExport, env, TE.fromEither(first))
    return mergeOutcomes(await Promise.all([[firstExport.name, checkFirst] as const, ...others].map(runOperation)))
  }
  return { outcome: run(), connection: () => connection, operations, unansweredOperations: () => [...unanswered] }
}

/**
 * Sends an empty request before a run writes anything. Fails only if every request of the run would fail the same way,
 * as with a wrong token. `isFirst`: nothing was ever read, so it also fails if another server answers; otherwise its
 * address would be stored.
 */
export const probeAccess = ({ env }: Pick<ConfiguredSource, 'env'>, isFirst: boolean): TaskEither<Failure, void> => {
  const [exported] = listExports(env)
  const { name } = exported
  return pipe(
    fetchSample(exported, env, env.now() + oneDay),
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

/** The service refuses the token, by status or inside a 200 response. */
const isTokenRefusal = (error: ApiError): boolean =>
  isTokenError(error) || (error._tag === 'Http' && error.status === 401)

/** The error concerns one operation only, so the others are worth checking. */
const isOperationError = (error: ApiError): boolean =>
  (error._tag === 'Application' || (error._tag === 'Http' && error.status >= 400)) &&
  !isTokenRefusal(error) &&
  outageKind(error) !== 'limit'

/** What an error of the first request is about. If no token is issued, the service itself was not asked. */
const causeOf = (error: ApiError): ConnectionFailure['cause'] => {
  if (error._tag === 'Token') return error.code === undefined ? 'issuer' : 'service'
  return isTokenRefusal(error) ? 'token' : 'service'
}

/**
 * The failure if the first answer of all cannot come from the service, so the address is the likely cause. Only the
 * service echoes filters, even if a cache makes them those of another request.
 */
const findOtherServer = (operation: string, error: ApiError): Failure | undefined =>
  error._tag === 'Decode' && error.remedy === undefined && !error.path.startsWith('$.filter.')
    ? { ...otherServerFailure(operation, `at ${error.path}: ${error.message}`), scope: 'run' }
    : undefined

const toFirstFailure = (operation: string, error: ApiError): Failure =>
  findOtherServer(operation, error) ?? toConnectionFailure(error, toCheckFailure(operation, error))

/** Joins messages. A text shared by several operations is printed once, after their names. */
const joinMessages = (messages: ReadonlyArray<string>): string => {
  const operations = new Map<string, ReadonlyArray<string>>()
  for (const message of messages) {
    const [start = '', rest] = message.split(/(?=: )/s)
    const text = rest === undefined ? message : message.slice(start.length)
    operations.set(text, [...(operations.get(text) ?? []), ...(rest === undefined ? [] : [start])])
  }
  return [...operations].map(([text, names]) => [...new Set(names)].join(' and ') + text).join(' ')
}

/** Merges outcomes: failures that a config change can fix come first, and each warning is given once. */
const mergeOutcomes = (outcomes: ReadonlyArray<CheckVerdict>): CheckVerdict => {
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
