import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as O from 'fp-ts/Option'
import * as TE from 'fp-ts/TaskEither'
import * as t from 'io-ts'
import { filterFrom } from '../../api/scan/cursor'
import type { Failure } from '../../cdk/failure'
import { andThen, chainEither, type Feed, following, mapFailure } from '../../cdk/feed'
import type { Demand, Reading } from '../../cdk/stream'
import { standingOf } from '../export-state'
import { reviewExport } from '../reviews'
import type { Source } from '../source'
import { scanSince, wantedOf } from './seen'
import { type EntityState, mapped, writeState } from './state'

/** Identifier families of operations 1 to 3; one family a request. */
export type Kind = 'person' | 'location' | 'entity'

/** Somebody or something whose feedback is read; `seen`: found in the reviews, not named in the config. */
export type Entity = { readonly kind: Kind; readonly id: string; readonly seen: boolean }

export const keyOf = ({ kind, id }: Pick<Entity, 'kind' | 'id'>): string => `${kind}:${id}`

const entityOf = (key: string): Entity => {
  const colon = key.indexOf(':')
  return { kind: key.slice(0, colon) as Kind, id: key.slice(colon + 1), seen: true }
}

/** The entities to read, each once, and the state of the reviews they were found in. */
export type Found = { readonly entities: ReadonlyArray<Entity>; readonly reviews: unknown }

/** Those that the config names. */
const namedBy = ({ entities: { persons, locations, entities } }: Source): ReadonlyArray<Entity> => [
  ...persons.map((id): Entity => ({ kind: 'person', id, seen: false })),
  ...locations.map((id): Entity => ({ kind: 'location', id, seen: false })),
  ...entities.map((id): Entity => ({ kind: 'entity', id, seen: false })),
]

/** One that is both named and seen stays when its name is taken out of the config. */
const distinct = (entities: ReadonlyArray<Entity>): ReadonlyArray<Entity> => [
  ...new Map(entities.map((entity) => [keyOf(entity), entity])).values(),
]

/**
 * What is read of the entities that the config names, those found in earlier runs, and those in the reviews of this one: as a
 * stream of the run has read these, or read here where none has read far enough back. A search that is cut short goes on
 * where `state` has it.
 */
export const withEntities = (
  source: Source,
  demand: Pick<Demand<never>, 'stream' | 'syncMode'>,
  state: EntityState,
  read: (found: Found) => Feed<Failure, Reading>,
): Feed<Failure, Reading> => {
  const named = namedBy(source)
  const wanted = wantedOf(source)
  if (O.isNone(wanted)) return read({ entities: distinct(named), reviews: undefined })
  // The entities of another wish are not those of this one.
  const before = wantedBefore(state.reviews, wanted.value)
  if (before !== undefined)
    for (const [key, { seen }] of Object.entries(state.partitions)) if (seen === true) source.seen.keys.add(key)
  const asFound = (after: unknown): Feed<Failure, Reading> => {
    const reviews = { ...brief(after), of: wanted.value }
    source.seen.scans.push({ from: filterFrom(source.startDate, O.none, source.lookback), state: reviews })
    return read({ entities: distinct([...named, ...[...source.seen.keys].map(entityOf)]), reviews })
  }
  const own = before === undefined ? mapped(state.partitions, ({ seen: _, ...one }) => one) : state.partitions
  const underWay: UnderWay = () => {
    const count = source.seen.keys.size
    return (reviews) => {
      const found = [...source.seen.keys].slice(0, count).map((key) => [key, { ...own[key], seen: true }] as const)
      return writeState(O.getOrElse(() => source.startDate)(state.fromDate), {
        ...state,
        partitions: { ...own, ...Object.fromEntries(found) },
        reviews: { ...brief(reviews), of: wanted.value },
        refreshing: demand.syncMode === 'full_refresh',
      })
    }
  }
  return following(
    pipe(TE.fromEither(standingOf('entities', O.fromNullable(before))), TE.mapLeft(ofSearch)),
    ({ cursor, slack }) =>
      pipe(
        scanSince(source, cursor, slack),
        O.match(
          () => searched(source, demand.stream, before, underWay, asFound),
          (scanned) => asFound(scanned.state),
        ),
      ),
  )
}

/** Called where a search stands, answers how that is written down: of all that was found up to there. */
type UnderWay = () => (reviews: unknown) => unknown

const wantedBefore = (reviews: unknown, wanted: string): unknown =>
  t.UnknownRecord.is(reviews) && reviews.of === wanted ? reviews : undefined

const ofSearch = (failure: Failure): Failure => ({
  ...failure,
  message: `entities.from_reviews: ${failure.message}`,
})

/** What of a state of the reviews is needed to find entities: no row is sent, so none has to be remembered. */
const brief = (state: unknown): object => {
  const { modifiedTimeFrom, slack, filters, scan } = t.UnknownRecord.is(state) ? state : {}
  return {
    modifiedTimeFrom,
    ...(slack === undefined ? {} : { slack }),
    filters,
    ...(scan === undefined ? {} : { scan }),
  }
}

/** Reads what of the reviews is new since they were last read for this, saying on the way where it stands; then what was found. */
const searched = (
  source: Source,
  stream: string,
  before: unknown,
  underWay: UnderWay,
  asFound: (after: unknown) => Feed<Failure, Reading>,
): Feed<Failure, Reading> => {
  let last: () => unknown = () => before
  return pipe(
    reviewExport.read(source)([
      {
        stream: 'entities',
        syncMode: 'incremental',
        state: O.fromNullable(before),
        attributes: O.none,
        project: () => [],
      },
    ]),
    chainEither((reading): E.Either<Failure, ReadonlyArray<Reading>> => {
      if (reading._tag === 'Failed') return E.left(reading.failure)
      if (reading._tag !== 'Checkpoint') return E.right([])
      last = reading.state
      const write = underWay()
      return E.right([{ _tag: 'Checkpoint', stream, state: () => write(reading.state()) }])
    }),
    mapFailure(ofSearch),
    andThen(() => asFound(last())),
  )
}
