import { pipe } from 'fp-ts/function'
import * as O from 'fp-ts/Option'
import type { TaskEither } from 'fp-ts/TaskEither'
import * as TE from 'fp-ts/TaskEither'
import * as t from 'io-ts'
import { filterFrom } from '../../api/scan/cursor'
import type { Failure } from '../../cdk/failure'
import { drain } from '../../cdk/feed'
import type { Reading } from '../../cdk/stream'
import { standingOf } from '../export-state'
import { reviewExport } from '../reviews'
import type { Source } from '../source'
import { scanSince, wantedOf } from './seen'
import type { EntityState } from './state'

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

/**
 * Those that the config names, those found in earlier runs, and those in the reviews of this one: as a stream of the run has
 * read them, or read here where none has read far enough back.
 */
export const findEntities = (source: Source, state: EntityState): TaskEither<Failure, Found> => {
  const { persons, locations, entities } = source.entities
  const named: ReadonlyArray<Entity> = [
    ...persons.map((id): Entity => ({ kind: 'person', id, seen: false })),
    ...locations.map((id): Entity => ({ kind: 'location', id, seen: false })),
    ...entities.map((id): Entity => ({ kind: 'entity', id, seen: false })),
  ]
  const wanted = wantedOf(source)
  if (O.isNone(wanted)) return TE.right({ entities: distinct(named), reviews: undefined })
  const before = wantedBefore(state.reviews, wanted.value)
  return pipe(
    scanned(source, before),
    TE.mapLeft((failure) => ({ ...failure, message: `entities.from_reviews: ${failure.message}` })),
    TE.map((after) => {
      // The entities of another wish are not those of this one.
      if (before !== undefined)
        for (const [key, { seen }] of Object.entries(state.partitions)) if (seen === true) source.seen.keys.add(key)
      const reviews = { ...brief(after), of: wanted.value }
      source.seen.scans.push({ from: filterFrom(source.startDate, O.none, source.lookback), state: reviews })
      return { entities: distinct([...[...source.seen.keys].map(entityOf), ...named]), reviews }
    }),
  )
}

const distinct = (entities: ReadonlyArray<Entity>): ReadonlyArray<Entity> => [
  ...new Map(entities.map((entity) => [keyOf(entity), entity])).values(),
]

const wantedBefore = (reviews: unknown, wanted: string): unknown =>
  t.UnknownRecord.is(reviews) && reviews.of === wanted ? reviews : undefined

/** What of a state of the reviews is needed to find entities: no row is sent, so none has to be remembered. */
const brief = (state: unknown): object => {
  const { modifiedTimeFrom, slack, filters } = t.UnknownRecord.is(state) ? state : {}
  return { modifiedTimeFrom, ...(slack === undefined ? {} : { slack }), filters }
}

const scanned = (source: Source, before: unknown): TaskEither<Failure, unknown> =>
  pipe(
    TE.fromEither(standingOf('entities', O.fromNullable(before))),
    TE.flatMap(({ cursor, slack }) =>
      pipe(
        scanSince(source, cursor, slack),
        O.match(
          () => readReviews(source, before),
          ({ state }) => TE.right(state),
        ),
      ),
    ),
  )

/** Reads what of the reviews is new since they were last read for this; answers the state that covers it. */
const readReviews = (source: Source, before: unknown): TaskEither<Failure, unknown> => {
  let after: unknown
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
    drain<Failure, Reading>((reading) => {
      if (reading._tag === 'Checkpoint') after = reading.state()
      return TE.right(undefined)
    }),
    TE.map(() => after),
  )
}
