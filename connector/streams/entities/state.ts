import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as O from 'fp-ts/Option'
import * as t from 'io-ts'
import { Instant, toInstant, toMillis } from '../../api'
import { configFailure, decodeValue, defined, type Failure, formatIssues } from '../../cdk'
import { floorToSecond } from '../../reading'

/**
 * The state of one entity: its cursor if different from the stream's, a digest of the rows that its next window
 * contains again (empty: unknown), and if it was found in the reviews. Without a digest it was never read.
 */
const EntityState = t.partial({ fromDate: Instant, digest: t.string, seen: t.boolean })
export type EntityState = t.TypeOf<typeof EntityState>
export type EntityStates = Readonly<Record<string, EntityState>>

/** The state of a stream by entity as JSON. `reviews`: the state of the reviews in which entities were found. */
const EntityStreamStateCodec = t.intersection([
  t.type({ fromDate: Instant }),
  t.partial({
    startDate: Instant,
    filters: t.string,
    entityStates: t.record(t.string, EntityState),
    reviews: t.unknown,
    refreshing: t.boolean,
    next: t.string,
  }),
])

export type EntityStreamState = {
  readonly fromDate: O.Option<number>
  /** The start date from which every entity was read (../start-date.ts). */
  readonly readSince: O.Option<number>
  /** A digest of the last run's filters; undefined in states of old versions. */
  readonly filters: string | undefined
  /** By entity key. Each entity that has been read has its cursor. */
  readonly entityStates: EntityStates
  readonly reviews: unknown
  /** A full refresh is in progress. */
  readonly refreshing: boolean
  /**
   * The key of the entity with which the next run begins, so that one that cannot be read does not block the others.
   */
  readonly next: string | undefined
}

export const emptyEntityState: EntityStreamState = {
  fromDate: O.none,
  readSince: O.none,
  filters: undefined,
  entityStates: {},
  reviews: undefined,
  refreshing: false,
  next: undefined,
}

/** Decodes a stream's state, or returns an empty one for none. A failure names the stream and the key path. */
export const decodeEntityState = (stream: string, state: O.Option<unknown>): E.Either<Failure, EntityStreamState> =>
  O.isNone(state)
    ? E.right(emptyEntityState)
    : pipe(
        decodeValue(EntityStreamStateCodec, state.value),
        E.bimap(
          (issues) =>
            configFailure(
              `The state of ${stream} is wrong: ${formatIssues(issues)}. ` +
                'Give the state exactly as it was printed, or none to read everything.',
            ),
          ({ fromDate, startDate, filters, entityStates = {}, reviews, refreshing = false, next }) => ({
            fromDate: O.some(toMillis(fromDate)),
            readSince: O.map(toMillis)(O.fromNullable(startDate)),
            filters,
            entityStates: mapEntityStates(entityStates, (entityState) =>
              entityState.digest === undefined ? entityState : { fromDate, ...entityState },
            ),
            reviews,
            refreshing,
            next,
          }),
        ),
      )

/** The states of the entities with `f` applied to each. */
export const mapEntityStates = (
  entityStates: EntityStates,
  f: (entityState: EntityState) => EntityState,
): EntityStates => Object.fromEntries(Object.entries(entityStates).map(([key, entityState]) => [key, f(entityState)]))

/** The cursor of an entity in milliseconds; none if it was never read. */
export const entityCursor = ({ fromDate, digest }: EntityState): O.Option<number> =>
  digest === undefined || fromDate === undefined ? O.none : O.some(toMillis(fromDate))

/**
 * The state as JSON: the most common cursor once, and only different cursors with their entities. `defaultFrom`: the
 * cursor, in milliseconds, if no entity has one.
 */
export const encodeEntityState = (
  defaultFrom: number,
  { readSince, filters, entityStates, reviews, refreshing, next }: Omit<EntityStreamState, 'fromDate'>,
): t.TypeOf<typeof EntityStreamStateCodec> => {
  const shared = mostCommonFromDate(Object.values(entityStates)) ?? toInstant(defaultFrom)
  return {
    fromDate: shared,
    ...(O.isSome(readSince) ? { startDate: toInstant(readSince.value) } : {}),
    ...defined({ filters }),
    entityStates: mapEntityStates(entityStates, ({ fromDate, ...rest }) =>
      fromDate === undefined || fromDate === shared ? rest : { fromDate, ...rest },
    ),
    ...defined({ reviews }),
    ...defined({ refreshing: refreshing || undefined, next }),
  }
}

const mostCommonFromDate = (entityStates: ReadonlyArray<EntityState>): string | undefined => {
  const counts = new Map<string, number>()
  for (const { fromDate } of entityStates)
    if (fromDate !== undefined) counts.set(fromDate, (counts.get(fromDate) ?? 0) + 1)
  return [...counts].reduce<readonly [string | undefined, number]>((a, b) => (b[1] > a[1] ? b : a), [undefined, 0])[0]
}

const second = 1000

/**
 * The start of an entity's next window, milliseconds: one second early, so that `>` and `>=` return the same rows, and
 * not before the start date.
 */
export const nextWindowFrom = (cursor: O.Option<number>, startDate: number, lookback: number): number =>
  floorToSecond(O.isNone(cursor) ? startDate : Math.max(startDate, cursor.value - lookback)) - second

/**
 * The time up to which each entity of a state was read, milliseconds by entity key; undefined: not read yet. `isWhole`:
 * read up to the end of a run.
 */
export const readEntityCursors = (
  stream: string,
  state: unknown,
): E.Either<Failure, ReadonlyMap<string, { readonly cursor: number | undefined; readonly isWhole: boolean }>> =>
  pipe(
    decodeEntityState(stream, O.fromNullable(state)),
    E.map(
      ({ entityStates }) =>
        new Map(
          Object.entries(entityStates).map(([key, entityState]) => [
            key,
            { cursor: O.toUndefined(entityCursor(entityState)), isWhole: (entityState.digest ?? '') !== '' },
          ]),
        ),
    ),
  )

/**
 * The state from which the next run sends the rows of these entities again, starting one second before the given times
 * (milliseconds by entity key). The cursors of other entities stay. An entity that was never read is unchanged, since
 * it is read from the start date.
 */
export const rewindEntities = (
  stream: string,
  state: unknown,
  oldest: ReadonlyMap<string, number>,
): E.Either<Failure, unknown> =>
  pipe(
    decodeEntityState(stream, O.fromNullable(state)),
    E.map((decoded) => {
      const entityStates = Object.entries(decoded.entityStates).map(([key, entityState]) => {
        const cursor = entityCursor(entityState)
        const from = oldest.get(key)
        if (O.isNone(cursor) || from === undefined) return [key, entityState] as const
        const fromDate = toInstant(Math.min(cursor.value, floorToSecond(from) - second))
        return [key, { ...entityState, fromDate, digest: '' }] as const
      })
      const defaultFrom = O.getOrElse(() => 0)(decoded.fromDate)
      return {
        ...(t.UnknownRecord.is(state) ? state : {}),
        ...encodeEntityState(defaultFrom, { ...decoded, entityStates: Object.fromEntries(entityStates) }),
      }
    }),
  )
