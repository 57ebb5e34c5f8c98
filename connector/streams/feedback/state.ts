import { createHash } from 'node:crypto'
import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as O from 'fp-ts/Option'
import * as t from 'io-ts'
import { Instant, toInstant, toMillis } from '../../api'
import { configFailure, decodeValue, defined, type Failure } from '../../cdk'
import { type CutRecord, floorToSecond } from '../../export'

/**
 * Where one entity stands: its own cursor where it is not the stream's, a digest of what its next window will serve again
 * (empty: not known), whether it was found in the reviews. Without a digest it has never been read.
 */
const EntityPartition = t.partial({ fromDate: Instant, digest: t.string, seen: t.boolean })
export type EntityPartition = t.TypeOf<typeof EntityPartition>
export type EntityPartitions = Readonly<Record<string, EntityPartition>>

/** State of a transparency stream (design.md, State). `reviews`: where the reviews stood that entities were found in. */
const FeedbackStateCodec = t.intersection([
  t.type({ fromDate: Instant }),
  t.partial({
    filters: t.string,
    partitions: t.record(t.string, EntityPartition),
    reviews: t.unknown,
    refreshing: t.boolean,
  }),
])

export type FeedbackState = {
  readonly fromDate: O.Option<number>
  /** A digest of the filters it was read with, where it says so. */
  readonly filters: string | undefined
  /** By key; each with its own cursor if it has one. */
  readonly partitions: EntityPartitions
  readonly reviews: unknown
  /** A full refresh is under way. */
  readonly refreshing: boolean
}

export const emptyFeedbackState: FeedbackState = {
  fromDate: O.none,
  filters: undefined,
  partitions: {},
  reviews: undefined,
  refreshing: false,
}

/** Reads a stream's state; a failure names the stream and the key path. */
export const decodeFeedbackState = (stream: string, state: O.Option<unknown>): E.Either<Failure, FeedbackState> =>
  O.isNone(state)
    ? E.right(emptyFeedbackState)
    : pipe(
        decodeValue(FeedbackStateCodec, state.value),
        E.bimap(
          (wrong) =>
            configFailure(
              `The state of ${stream} is wrong: ${wrong.map(({ path, problem }) => `${path || 'it'} ${problem}`).join('; ')}. Give the state as it was printed, or none to read everything.`,
            ),
          ({ fromDate, filters, partitions = {}, reviews, refreshing = false }) => ({
            fromDate: O.some(toMillis(fromDate)),
            filters,
            partitions: mapPartitions(partitions, (one) => (one.digest === undefined ? one : { fromDate, ...one })),
            reviews,
            refreshing,
          }),
        ),
      )

/** Each partition changed. */
export const mapPartitions = (
  partitions: EntityPartitions,
  f: (partition: EntityPartition) => EntityPartition,
): EntityPartitions => Object.fromEntries(Object.entries(partitions).map(([key, partition]) => [key, f(partition)]))

/** The cursor of a partition in milliseconds; none if it has never been read. */
export const partitionCursor = ({ fromDate, digest }: EntityPartition): O.Option<number> =>
  digest === undefined || fromDate === undefined ? O.none : O.some(toMillis(fromDate))

/** The state as it is printed; the cursor that most partitions share is said once. `start` in milliseconds: what it is without any. */
export const encodeFeedbackState = (
  start: number,
  { filters, partitions, reviews, refreshing }: Omit<FeedbackState, 'fromDate'>,
): t.TypeOf<typeof FeedbackStateCodec> => {
  const shared = mostCommonFromDate(Object.values(partitions)) ?? toInstant(start)
  return {
    fromDate: shared,
    ...defined({ filters }),
    partitions: mapPartitions(partitions, ({ fromDate, ...rest }) =>
      fromDate === undefined || fromDate === shared ? rest : { fromDate, ...rest },
    ),
    ...defined({ reviews }),
    ...(refreshing ? { refreshing } : {}),
  }
}

const mostCommonFromDate = (partitions: ReadonlyArray<EntityPartition>): string | undefined => {
  const counts = new Map<string, number>()
  for (const { fromDate } of partitions)
    if (fromDate !== undefined) counts.set(fromDate, (counts.get(fromDate) ?? 0) + 1)
  return [...counts].reduce<readonly [string | undefined, number]>((a, b) => (b[1] > a[1] ? b : a), [undefined, 0])[0]
}

/** 64 bits and a little of what rows were, whatever their order. */
export const digestRows = (rows: ReadonlyMap<string, string>): string =>
  createHash('sha256')
    .update(
      [...rows]
        .map(([id, hash]) => `${id} ${hash}`)
        .sort()
        .join('\n'),
    )
    .digest('base64url')
    .slice(0, 11)

export const hashRow = (text: Uint8Array): string => createHash('sha256').update(text).digest('base64url').slice(0, 11)

const second = 1000

/** The `fromDate` of an entity's next reading in milliseconds; a second early, so that `>` and `>=` serve the same rows. */
export const nextWindowFrom = (cursor: O.Option<number>, startDate: number, lookback: number): number =>
  floorToSecond(O.isNone(cursor) ? startDate : cursor.value - lookback) - second

/** What of a window leaves, and where the entity stands after it, if that can be said. */
export type PartitionRows = { readonly rows: ReadonlyArray<CutRecord>; readonly partition: O.Option<EntityPartition> }

/**
 * One entity while its windows come in, in the order of time. Rows up to the cursor were sent before: they are held until all of
 * them are there, and leave only where their digest is not the one that was kept. `lookback` in milliseconds.
 */
export const trackPartition = (cursor: O.Option<number>, digest: string, lookback: number) => {
  const ids = new Set<string>()
  const old = new Map<string, string>()
  const next = new Map<string, string>()
  let held: CutRecord[] = []
  let comparing = O.isSome(cursor)
  const sentUpTo = O.isSome(cursor) ? cursor.value : Number.NEGATIVE_INFINITY

  const isNew = (cut: CutRecord, until: number): boolean => {
    if (cut.modifiedTime > until || ids.has(cut.id)) return false
    ids.add(cut.id)
    const hash = hashRow(cut.json)
    if (cut.modifiedTime >= floorToSecond(until - lookback)) next.set(cut.id, hash)
    if (cut.modifiedTime > sentUpTo) return true
    if (cut.modifiedTime >= floorToSecond(sentUpTo - lookback)) old.set(cut.id, hash)
    held.push(cut)
    return false
  }

  /** `to`: where the window ends, none if it is the last; `until`: the run's signpost. Milliseconds. */
  return (cuts: ReadonlyArray<CutRecord>, to: number | undefined, until: number): PartitionRows => {
    const fresh = cuts.filter((cut) => isNew(cut, until))
    const compared = comparing && (to === undefined || to > sentUpTo)
    const again = compared && digestRows(old) !== digest ? held : []
    if (compared) {
      comparing = false
      held = []
    }
    // Windows overlap by a millisecond.
    const reached = to === undefined ? until : Math.max(sentUpTo, to - 1)
    return {
      rows: [...again, ...fresh],
      partition: comparing
        ? O.none
        : O.some({ fromDate: toInstant(reached), digest: to === undefined ? digestRows(next) : '' }),
    }
  }
}
export type PartitionTracker = ReturnType<typeof trackPartition>
