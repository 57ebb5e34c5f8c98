import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as O from 'fp-ts/Option'
import * as TE from 'fp-ts/TaskEither'
import * as t from 'io-ts'
import {
  chainEffect,
  concatFeed,
  defined,
  type Failure,
  type Feed,
  flatMapFeedEither,
  mapFeedFailure,
  type ReaderEvent,
  type StreamRequest,
} from '../../cdk'
import { filterFrom } from '../../reading'
import { decodeExportState, openExportState } from '../export-state'
import { digestEntitySelection, findScanSince } from '../index-entities'
import { reviewExportReader } from '../reviews'
import type { SourceEnv } from '../source-env'
import { type EntityStreamState, encodeEntityState, mapEntityStates } from './state'

/** The identifier families of operations 1 to 3. A request has identifiers of one family. */
export type EntityKind = 'person' | 'location' | 'entity'

/**
 * A person, location or roll-up whose feedback is read. `isFromReviews`: found in the reviews, not named in the config.
 */
export type Entity = { readonly kind: EntityKind; readonly id: string; readonly isFromReviews: boolean }

export const entityKey = ({ kind, id }: Pick<Entity, 'kind' | 'id'>): string => `${kind}:${id}`

const parseEntityKey = (key: string): Entity => {
  const colon = key.indexOf(':')
  return { kind: key.slice(0, colon) as EntityKind, id: key.slice(colon + 1), isFromReviews: true }
}

/** The entities to read, each once, and the state of the reviews in which they were found. */
export type EntitySelection = { readonly entities: ReadonlyArray<Entity>; readonly reviews: unknown }

const configuredEntities = ({ entities: { persons, locations, entities } }: SourceEnv): ReadonlyArray<Entity> => [
  ...persons.map((id): Entity => ({ kind: 'person', id, isFromReviews: false })),
  ...locations.map((id): Entity => ({ kind: 'location', id, isFromReviews: false })),
  ...entities.map((id): Entity => ({ kind: 'entity', id, isFromReviews: false })),
]

/**
 * Each entity once. One that is both configured and found in reviews counts as found, so that it stays when the config
 * no longer names it.
 */
const uniqueEntities = (entities: ReadonlyArray<Entity>): ReadonlyArray<Entity> => [
  ...new Map(entities.map((entity) => [entityKey(entity), entity])).values(),
]

/** The entities starting with the one with this key, then those before it. */
export const rotateEntities = (entities: ReadonlyArray<Entity>, first: string | undefined): ReadonlyArray<Entity> => {
  const index = Math.max(
    0,
    entities.findIndex((entity) => entityKey(entity) === first),
  )
  return [...entities.slice(index), ...entities.slice(0, index)]
}

/** The key of the entity after the first ones of a list that belong to `kind` and `ids`. */
export const keyAfter = (
  entities: ReadonlyArray<Entity>,
  { kind, ids }: { readonly kind: EntityKind; readonly ids: ReadonlyArray<string> },
): string | undefined => {
  const members = new Set(ids.map((id) => entityKey({ kind, id })))
  const index = entities.findIndex((entity) => members.has(entityKey(entity)))
  const length = entities.slice(Math.max(0, index)).findIndex((entity) => !members.has(entityKey(entity)))
  const next = length < 0 ? entities[0] : entities[Math.max(0, index) + length]
  return next === undefined ? undefined : entityKey(next)
}

/**
 * Calls `read` with the configured entities, those found in earlier runs, and those in the reviews of this run.
 * Searches the reviews, unless a stream of this run has already read them from far enough back. An interrupted search
 * resumes from `state`.
 */
export const readWithEntities = (
  source: SourceEnv,
  request: Pick<StreamRequest<never>, 'stream' | 'syncMode'>,
  state: EntityStreamState,
  read: (selection: EntitySelection) => Feed<Failure, ReaderEvent>,
): Feed<Failure, ReaderEvent> =>
  pipe(
    digestEntitySelection(source),
    O.match(
      () => read({ entities: uniqueEntities(configuredEntities(source)), reviews: undefined }),
      (digest) => readWithReviewEntities(source, request, state, digest, read),
    ),
  )

const readWithReviewEntities = (
  source: SourceEnv,
  { stream, syncMode }: Pick<StreamRequest<never>, 'stream' | 'syncMode'>,
  state: EntityStreamState,
  digest: string,
  read: (selection: EntitySelection) => Feed<Failure, ReaderEvent>,
): Feed<Failure, ReaderEvent> => {
  const { keys, completeScans } = source.entityIndex
  const previous = previousReviewState(state.reviews, digest)
  // Entities found for another selection are dropped.
  const entityStates =
    previous === undefined
      ? mapEntityStates(state.entityStates, ({ seen: _, ...entityState }) => entityState)
      : state.entityStates
  for (const [key, { seen }] of Object.entries(entityStates)) if (seen === true) keys.add(key)

  const readSelection = (reviewState: unknown): Feed<Failure, ReaderEvent> => {
    const reviews = { ...reviewCursorState(reviewState), of: digest }
    completeScans.push({ from: filterFrom(source.startDate, O.none, source.lookback), state: reviews })
    const entities = uniqueEntities([...configuredEntities(source), ...[...keys].map(parseEntityKey)])
    return read({ entities, reviews })
  }

  const encodeSearchState: EncodeSearchState = () => {
    const count = keys.size
    return (reviewState) => {
      const found = [...keys].slice(0, count).map((key) => [key, { ...entityStates[key], seen: true }] as const)
      return encodeEntityState(O.getOrElse(() => source.startDate)(state.fromDate), {
        ...state,
        entityStates: { ...entityStates, ...Object.fromEntries(found) },
        reviews: { ...reviewCursorState(reviewState), of: digest },
        refreshing: syncMode === 'full_refresh',
      })
    }
  }

  return chainEffect(
    pipe(
      TE.fromEither(decodeExportState('entities', O.fromNullable(previous))),
      TE.bimap(toSearchFailure, (decoded) => openExportState(decoded, source.startDate)),
    ),
    ({ cursor, slack }) =>
      pipe(
        findScanSince(source, cursor, slack),
        O.match(
          () => searchReviews(source, stream, previous, encodeSearchState, readSelection),
          (scan) => readSelection(scan.state),
        ),
      ),
  )
}

/** Captures the entities found so far. The returned function encodes them with a state of the reviews. */
type EncodeSearchState = () => (reviewState: unknown) => unknown

/** The state of the reviews after the last search, if it was for the same selection of entities. */
const previousReviewState = (reviews: unknown, digest: string): unknown =>
  t.UnknownRecord.is(reviews) && reviews.of === digest ? reviews : undefined

const toSearchFailure = (failure: Failure): Failure => ({
  ...failure,
  message: `entities.from_reviews: ${failure.message}`,
})

/** A state of the reviews without sent rows, since a search sends none. */
const reviewCursorState = (state: unknown): object => {
  const { modifiedTimeFrom, startDate, slack, filters, scan } = t.UnknownRecord.is(state) ? state : {}
  return { modifiedTimeFrom, ...defined({ startDate, slack }), filters, ...defined({ scan }) }
}

/**
 * Searches the reviews that are new since the last search, with a checkpoint for each one of the scan, then calls
 * `readSelection`.
 */
const searchReviews = (
  source: SourceEnv,
  stream: string,
  previous: unknown,
  encodeSearchState: EncodeSearchState,
  readSelection: (reviewState: unknown) => Feed<Failure, ReaderEvent>,
): Feed<Failure, ReaderEvent> => {
  let lastState: () => unknown = () => previous
  return pipe(
    reviewExportReader.read(source)([
      {
        stream: 'entities',
        syncMode: 'incremental',
        state: O.fromNullable(previous),
        attributes: O.none,
        project: () => [],
      },
    ]),
    flatMapFeedEither((event): E.Either<Failure, ReadonlyArray<ReaderEvent>> => {
      if (event._tag === 'Failed') return E.left(event.failure)
      if (event._tag !== 'Checkpoint') return E.right([])
      lastState = event.state
      const encodeState = encodeSearchState()
      return E.right([{ _tag: 'Checkpoint', stream, state: () => encodeState(event.state()) }])
    }),
    mapFeedFailure(toSearchFailure),
    concatFeed(() => readSelection(lastState())),
  )
}
