import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as O from 'fp-ts/Option'
import type { TaskEither } from 'fp-ts/TaskEither'
import * as TE from 'fp-ts/TaskEither'
import type { Failure } from '../../cdk/failure'
import { drain } from '../../cdk/feed'
import type { Reading } from '../../cdk/stream'
import { reviewExport } from '../reviews'
import type { Source } from '../source'
import type { EntityState } from './state'

/** Identifier families of operations 1 to 3; one family a request. */
export type Kind = 'person' | 'location' | 'entity'

/** Somebody or something whose feedback is read; `seen`: found in the reviews, not named in the config. */
export type Entity = { readonly kind: Kind; readonly id: string; readonly seen: boolean }

export const keyOf = ({ kind, id }: Entity): string => `${kind}:${id}`

/** The entities to read, each once, and what of the reviews they were found in. */
export type Found = { readonly entities: ReadonlyArray<Entity>; readonly reviews: unknown }

/** Those of the config, those found in earlier runs, and those in the reviews of this one, which are read here if no stream of the run has. */
export const findEntities = (source: Source, state: EntityState): TaskEither<Failure, Found> =>
  pipe(
    needsReviews(source) && !source.seen.complete ? readReviews(source, state.reviews) : TE.right(state.reviews),
    TE.map((reviews) => {
      const { persons, locations, entities } = source.entities
      const named = [
        ...persons.map((id): Entity => ({ kind: 'person', id, seen: false })),
        ...locations.map((id): Entity => ({ kind: 'location', id, seen: false })),
        ...entities.map((id): Entity => ({ kind: 'entity', id, seen: false })),
      ]
      const kept = Object.entries(state.partitions).flatMap(([key, { seen }]) => (seen === true ? [key] : []))
      const found = needsReviews(source) ? [...new Set([...kept, ...source.seen.keys])].map(entityOf) : []
      return { entities: [...new Map([...found, ...named].map((one) => [keyOf(one), one])).values()], reviews }
    }),
  )

export const needsReviews = ({ entities: { fromReviews } }: Source): boolean =>
  fromReviews.locations || fromReviews.providers !== 'none'

const entityOf = (key: string): Entity => {
  const [kind = '', ...id] = key.split(':')
  return { kind: kind as Kind, id: id.join(':'), seen: true }
}

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
      return TE.fromEither(E.right(undefined))
    }),
    TE.map(() => after),
  )
}
