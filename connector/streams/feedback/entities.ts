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
import { filterFrom } from '../../export'
import { digestEntitySelection, findScanSince } from '../entity-index'
import { decodeExportState } from '../export-state'
import { reviewExportReader } from '../reviews'
import type { SourceEnv } from '../source-env'
import { encodeFeedbackState, type FeedbackState, mapPartitions } from './state'

/** Identifier families of operations 1 to 3; one family a request. */
export type EntityKind = 'person' | 'location' | 'entity'

/** Somebody or something whose feedback is read; `seen`: found in the reviews, not named in the config. */
export type Entity = { readonly kind: EntityKind; readonly id: string; readonly isFromReviews: boolean }

export const entityKey = ({ kind, id }: Pick<Entity, 'kind' | 'id'>): string => `${kind}:${id}`

const parseEntityKey = (key: string): Entity => {
  const colon = key.indexOf(':')
  return { kind: key.slice(0, colon) as EntityKind, id: key.slice(colon + 1), isFromReviews: true }
}

/** The entities to read, each once, and the state of the reviews they were found in. */
export type EntitySelection = { readonly entities: ReadonlyArray<Entity>; readonly reviews: unknown }

/** Those that the config names. */
const configuredEntities = ({ entities: { persons, locations, entities } }: SourceEnv): ReadonlyArray<Entity> => [
  ...persons.map((id): Entity => ({ kind: 'person', id, isFromReviews: false })),
  ...locations.map((id): Entity => ({ kind: 'location', id, isFromReviews: false })),
  ...entities.map((id): Entity => ({ kind: 'entity', id, isFromReviews: false })),
]

/** One that is both named and seen stays when its name is taken out of the config. */
const uniqueEntities = (entities: ReadonlyArray<Entity>): ReadonlyArray<Entity> => [
  ...new Map(entities.map((entity) => [entityKey(entity), entity])).values(),
]

/**
 * What is read of the entities that the config names, those found in earlier runs, and those in the reviews of this one: as a
 * stream of the run has read these, or read here where none has read far enough back. A search that is cut short goes on
 * where `state` has it.
 */
export const readWithEntities = (
  source: SourceEnv,
  demand: Pick<StreamRequest<never>, 'stream' | 'syncMode'>,
  state: FeedbackState,
  read: (found: EntitySelection) => Feed<Failure, ReaderEvent>,
): Feed<Failure, ReaderEvent> => {
  const named = configuredEntities(source)
  const wanted = digestEntitySelection(source)
  if (O.isNone(wanted)) return read({ entities: uniqueEntities(named), reviews: undefined })
  // The entities of another wish are not those of this one.
  const before = previousReviewState(state.reviews, wanted.value)
  if (before !== undefined)
    for (const [key, { seen }] of Object.entries(state.partitions)) if (seen === true) source.entityIndex.keys.add(key)
  const asFound = (after: unknown): Feed<Failure, ReaderEvent> => {
    const reviews = { ...reviewCursorState(after), of: wanted.value }
    source.entityIndex.completeScans.push({
      from: filterFrom(source.startDate, O.none, source.lookback),
      state: reviews,
    })
    return read({ entities: uniqueEntities([...named, ...[...source.entityIndex.keys].map(parseEntityKey)]), reviews })
  }
  const own = before === undefined ? mapPartitions(state.partitions, ({ seen: _, ...one }) => one) : state.partitions
  const underWay: EncodeSearchState = () => {
    const count = source.entityIndex.keys.size
    return (reviews) => {
      const found = [...source.entityIndex.keys]
        .slice(0, count)
        .map((key) => [key, { ...own[key], seen: true }] as const)
      return encodeFeedbackState(O.getOrElse(() => source.startDate)(state.fromDate), {
        ...state,
        partitions: { ...own, ...Object.fromEntries(found) },
        reviews: { ...reviewCursorState(reviews), of: wanted.value },
        refreshing: demand.syncMode === 'full_refresh',
      })
    }
  }
  return chainEffect(
    pipe(TE.fromEither(decodeExportState('entities', O.fromNullable(before))), TE.mapLeft(toSearchFailure)),
    ({ cursor, slack }) =>
      pipe(
        findScanSince(source, cursor, slack),
        O.match(
          () => searchReviews(source, demand.stream, before, underWay, asFound),
          (scanned) => asFound(scanned.state),
        ),
      ),
  )
}

/** Called where a search stands, answers how that is written down: of all that was found up to there. */
type EncodeSearchState = () => (reviews: unknown) => unknown

const previousReviewState = (reviews: unknown, wanted: string): unknown =>
  t.UnknownRecord.is(reviews) && reviews.of === wanted ? reviews : undefined

const toSearchFailure = (failure: Failure): Failure => ({
  ...failure,
  message: `entities.from_reviews: ${failure.message}`,
})

/** What of a state of the reviews is needed to find entities: no row is sent, so none has to be remembered. */
const reviewCursorState = (state: unknown): object => {
  const { modifiedTimeFrom, slack, filters, scan } = t.UnknownRecord.is(state) ? state : {}
  return {
    modifiedTimeFrom,
    ...defined({ slack }),
    filters,
    ...defined({ scan }),
  }
}

/** Reads what of the reviews is new since they were last read for this, saying on the way where it stands; then what was found. */
const searchReviews = (
  source: SourceEnv,
  stream: string,
  before: unknown,
  underWay: EncodeSearchState,
  asFound: (after: unknown) => Feed<Failure, ReaderEvent>,
): Feed<Failure, ReaderEvent> => {
  let last: () => unknown = () => before
  return pipe(
    reviewExportReader.read(source)([
      {
        stream: 'entities',
        syncMode: 'incremental',
        state: O.fromNullable(before),
        attributes: O.none,
        project: () => [],
      },
    ]),
    flatMapFeedEither((reading): E.Either<Failure, ReadonlyArray<ReaderEvent>> => {
      if (reading._tag === 'Failed') return E.left(reading.failure)
      if (reading._tag !== 'Checkpoint') return E.right([])
      last = reading.state
      const write = underWay()
      return E.right([{ _tag: 'Checkpoint', stream, state: () => write(reading.state()) }])
    }),
    mapFeedFailure(toSearchFailure),
    concatFeed(() => asFound(last())),
  )
}
