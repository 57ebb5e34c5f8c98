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
const EntityPartition = t.partial({ fromDate: Instant, digest: t.string, seen: t.boolean })
export type EntityPartition = t.TypeOf<typeof EntityPartition>
export type EntityPartitions = Readonly<Record<string, EntityPartition>>

/** The state of a stream by entity as JSON. `reviews`: the state of the reviews in which entities were found. */
const EntityStreamStateCodec = t.intersection([
  t.type({ fromDate: Instant }),
  t.partial({
    startDate: Instant,
    filters: t.string,
    partitions: t.record(t.string, EntityPartition),
    reviews: t.unknown,
    refreshing: t.boolean,
    next: t.string,
  }),
])

export type EntityStreamState = {
  readonly fromDate: O.Option<number>
  /** The start date from which every partition was read (../start-date.ts). */
  readonly readSince: O.Option<number>
  /** A digest of the last run's filters; undefined in states of old versions. */
  readonly filters: string | undefined
  /** By entity key. Each partition that has been read has its cursor. */
  readonly partitions: EntityPartitions
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
  partitions: {},
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
          ({ fromDate, startDate, filters, partitions = {}, reviews, refreshing = false, next }) => ({
            fromDate: O.some(toMillis(fromDate)),
            readSince: O.map(toMillis)(O.fromNullable(startDate)),
            filters,
            partitions: mapPartitions(partitions, (partition) =>
              partition.digest === undefined ? partition : { fromDate, ...partition },
            ),
            reviews,
            refreshing,
            next,
          }),
        ),
      )

/** The partitions with `f` applied to each. */
export const mapPartitions = (
  partitions: EntityPartitions,
  f: (partition: EntityPartition) => EntityPartition,
): EntityPartitions => Object.fromEntries(Object.entries(partitions).map(([key, partition]) => [key, f(partition)]))

/** The cursor of a partition in milliseconds; none if it was never read. */
export const partitionCursor = ({ fromDate, digest }: EntityPartition): O.Option<number> =>
  digest === undefined || fromDate === undefined ? O.none : O.some(toMillis(fromDate))

/**
 * The state as JSON: the most common cursor once, and only different cursors in their partitions. `defaultFrom`: the
 * cursor, in milliseconds, if no partition has one.
 */
export const encodeEntityState = (
  defaultFrom: number,
  { readSince, filters, partitions, reviews, refreshing, next }: Omit<EntityStreamState, 'fromDate'>,
): t.TypeOf<typeof EntityStreamStateCodec> => {
  const shared = mostCommonFromDate(Object.values(partitions)) ?? toInstant(defaultFrom)
  return {
    fromDate: shared,
    ...(O.isSome(readSince) ? { startDate: toInstant(readSince.value) } : {}),
    ...defined({ filters }),
    partitions: mapPartitions(partitions, ({ fromDate, ...rest }) =>
      fromDate === undefined || fromDate === shared ? rest : { fromDate, ...rest },
    ),
    ...defined({ reviews }),
    ...defined({ refreshing: refreshing || undefined, next }),
  }
}

const mostCommonFromDate = (partitions: ReadonlyArray<EntityPartition>): string | undefined => {
  const counts = new Map<string, number>()
  for (const { fromDate } of partitions)
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
      ({ partitions }) =>
        new Map(
          Object.entries(partitions).map(([key, partition]) => [
            key,
            { cursor: O.toUndefined(partitionCursor(partition)), isWhole: (partition.digest ?? '') !== '' },
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
      const partitions = Object.entries(decoded.partitions).map(([key, partition]) => {
        const cursor = partitionCursor(partition)
        const from = oldest.get(key)
        if (O.isNone(cursor) || from === undefined) return [key, partition] as const
        const fromDate = toInstant(Math.min(cursor.value, floorToSecond(from) - second))
        return [key, { ...partition, fromDate, digest: '' }] as const
      })
      const defaultFrom = O.getOrElse(() => 0)(decoded.fromDate)
      return {
        ...(t.UnknownRecord.is(state) ? state : {}),
        ...encodeEntityState(defaultFrom, { ...decoded, partitions: Object.fromEntries(partitions) }),
      }
    }),
  )
