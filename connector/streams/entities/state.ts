import { createHash } from 'node:crypto'
import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as O from 'fp-ts/Option'
import * as t from 'io-ts'
import { Instant, toInstant, toMillis } from '../../api/model/scalar'
import { configFailure, type Failure } from '../../cdk/failure'
import { decode } from '../../cdk/json'

/**
 * Where one entity stands: its own cursor where it is not the stream's, a digest of what its next window will serve again
 * (empty: not known), whether it was found in the reviews. Without a digest it has never been read.
 */
const Partition = t.partial({ fromDate: Instant, digest: t.string, seen: t.boolean })
export type Partition = t.TypeOf<typeof Partition>
export type Partitions = Readonly<Record<string, Partition>>

/** State of a transparency stream (design.md, State). `reviews`: where the reviews stood that entities were found in. */
const Written = t.intersection([
  t.type({ fromDate: Instant }),
  t.partial({
    filters: t.string,
    partitions: t.record(t.string, Partition),
    reviews: t.unknown,
    refreshing: t.boolean,
  }),
])

export type EntityState = {
  readonly fromDate: O.Option<number>
  /** A digest of the filters it was read with, where it says so. */
  readonly filters: string | undefined
  /** By key; each with its own cursor if it has one. */
  readonly partitions: Partitions
  readonly reviews: unknown
  /** A full refresh is under way. */
  readonly refreshing: boolean
}

export const noState: EntityState = {
  fromDate: O.none,
  filters: undefined,
  partitions: {},
  reviews: undefined,
  refreshing: false,
}

/** Reads a stream's state; a failure names the stream and the key path. */
export const readState = (stream: string, state: O.Option<unknown>): E.Either<Failure, EntityState> =>
  O.isNone(state)
    ? E.right(noState)
    : pipe(
        decode(Written, state.value),
        E.bimap(
          (wrong) =>
            configFailure(
              `The state of ${stream} is wrong: ${wrong.map(({ path, problem }) => `${path || 'it'} ${problem}`).join('; ')}. Give the state as it was printed, or none to read everything.`,
            ),
          ({ fromDate, filters, partitions = {}, reviews, refreshing = false }) => ({
            fromDate: O.some(toMillis(fromDate)),
            filters,
            partitions: mapped(partitions, (one) => (one.digest === undefined ? one : { fromDate, ...one })),
            reviews,
            refreshing,
          }),
        ),
      )

/** Each partition changed. */
export const mapped = (partitions: Partitions, f: (partition: Partition) => Partition): Partitions =>
  Object.fromEntries(Object.entries(partitions).map(([key, partition]) => [key, f(partition)]))

/** The cursor of a partition in milliseconds; none if it has never been read. */
export const cursorOf = ({ fromDate, digest }: Partition): O.Option<number> =>
  digest === undefined || fromDate === undefined ? O.none : O.some(toMillis(fromDate))

/** The state as it is printed; the cursor that most partitions share is said once. `start` in milliseconds: what it is without any. */
export const writeState = (
  start: number,
  { filters, partitions, reviews, refreshing }: Omit<EntityState, 'fromDate'>,
): t.TypeOf<typeof Written> => {
  const shared = mostCommon(Object.values(partitions)) ?? toInstant(start)
  return {
    fromDate: shared,
    ...(filters === undefined ? {} : { filters }),
    partitions: mapped(partitions, ({ fromDate, ...rest }) =>
      fromDate === undefined || fromDate === shared ? rest : { fromDate, ...rest },
    ),
    ...(reviews === undefined ? {} : { reviews }),
    ...(refreshing ? { refreshing } : {}),
  }
}

const mostCommon = (partitions: ReadonlyArray<Partition>): string | undefined => {
  const counts = new Map<string, number>()
  for (const { fromDate } of partitions)
    if (fromDate !== undefined) counts.set(fromDate, (counts.get(fromDate) ?? 0) + 1)
  return [...counts].reduce<readonly [string | undefined, number]>((a, b) => (b[1] > a[1] ? b : a), [undefined, 0])[0]
}

/** 64 bits and a little of what rows were, whatever their order. */
export const digestOf = (rows: ReadonlyMap<string, string>): string =>
  createHash('sha256')
    .update(
      [...rows]
        .map(([id, hash]) => `${id} ${hash}`)
        .sort()
        .join('\n'),
    )
    .digest('base64url')
    .slice(0, 11)

export const hashOf = (text: Uint8Array): string => createHash('sha256').update(text).digest('base64url').slice(0, 11)
