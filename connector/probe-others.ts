import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as O from 'fp-ts/Option'
import * as TE from 'fp-ts/TaskEither'
import type { ApiError } from './api/error'
import type { Failure } from './cdk/failure'
import { drainFeed } from './cdk/feed'
import type { Stream } from './cdk/stream'
import { toCheckFailure } from './hurry'
import { isLookupStream } from './streams/lookups'
import type { SourceEnv } from './streams/source'

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
