import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as O from 'fp-ts/Option'
import * as TE from 'fp-ts/TaskEither'
import type * as t from 'io-ts'
import {
  chainEffect,
  concatFeed,
  defined,
  defineStream,
  type Failure,
  type Feed,
  feedOf,
  flatMapFeedEither,
  type Reader,
  type ReaderEvent,
  type Row,
  type Stream,
  type StreamRequest,
} from '../../cdk'
import { digestFilters } from '../../export'
import { selectAttributes } from '../record'
import type { ResourceName, SourceEnv } from '../source-env'
import { cursorAheadWarning, filtersChangedWarning, noEntitiesWarning } from '../warnings'
import { withConsistencyCheck } from './consistency'
import { type Entity, type EntitySelection, entityKey, readWithEntities } from './entities'
import type { FeedbackOperation } from './page'
import { createRecordBuilder, type RecordBuilder, toRows } from './records'
import {
  decodeFeedbackState,
  type EntityPartitions,
  emptyFeedbackState,
  encodeFeedbackState,
  type FeedbackState,
  nextWindowFrom,
  partitionCursor,
  trackPartition,
} from './state'
import type { FeedbackWindow } from './window'
import { readWindows, type WindowResults } from './window-reader'

const day = 86_400_000

/** An operation, and how what it lists becomes records. */
export type FeedbackDefinition = FeedbackOperation & { readonly records: RecordBuilder }

/** Reads feedback under entities: each entity is a partition with a cursor of its own. */
export const createFeedbackReader = (feedback: FeedbackDefinition): Reader<SourceEnv, Row> => ({
  name: feedback.name,
  read: (source) => (demands) => {
    const [demand] = demands
    if (demand === undefined) return feedOf()
    return chainEffect(TE.fromEither(decodeFeedbackState(demand.stream, demand.state)), (held) => {
      const state = demand.syncMode === 'full_refresh' && !held.refreshing ? resetFeedbackState(held) : held
      const filters = digestFeedbackFilters(source)
      const feed = readWithEntities(source, demand, state, (found) => {
        const idle = isCursorAhead(source, state) ? cursorAheadWarning(demand.stream) : noEntitiesWarning(demand.stream)
        return found.entities.length === 0 || isCursorAhead(source, state)
          ? feedOf<Failure, ReaderEvent>(E.right(idle), E.right(unchangedCheckpoint(demand.stream, source, state)))
          : readPartitions(feedback, source, demand, state, found)
      })
      return state.filters === undefined || state.filters === filters
        ? feed
        : concatFeed(() => feed)(feedOf<Failure, ReaderEvent>(E.right(filtersChangedWarning(demand.stream))))
    })
  },
})

/** What of the config's filters decides which rows there are. */
const digestFeedbackFilters = ({ feedback: { thresholds, additionalFields } }: SourceEnv): string =>
  digestFilters({ ...thresholds, ...defined({ additionalFields }) })

/** By the clock here, which may be off by a day: a cursor beyond that is of no use to any entity, a new one neither. */
const isCursorAhead = ({ now }: SourceEnv, { fromDate }: FeedbackState): boolean =>
  O.isSome(fromDate) && fromDate.value > now() + day

const resetFeedbackState = ({ partitions, reviews }: FeedbackState): FeedbackState => ({
  ...emptyFeedbackState,
  partitions: Object.fromEntries(
    Object.entries(partitions).flatMap(([key, { seen }]) => (seen ? [[key, { seen }]] : [])),
  ),
  reviews,
})

const unchangedCheckpoint = (stream: string, { startDate }: SourceEnv, state: FeedbackState): ReaderEvent => ({
  _tag: 'Checkpoint',
  stream,
  state: () => encodeFeedbackState(O.getOrElse(() => startDate)(state.fromDate), { ...state, refreshing: false }),
})

const readPartitions = (
  feedback: FeedbackDefinition,
  source: SourceEnv,
  demand: StreamRequest<Row>,
  before: FeedbackState,
  found: EntitySelection,
): Feed<Failure, ReaderEvent> => {
  const { stream } = demand
  const lookback = source.feedback.lookbackDays * day
  const begun: EntityPartitions = Object.fromEntries(
    found.entities.map((entity) => {
      const { seen: _, ...standing } = before.partitions[entityKey(entity)] ?? {}
      return [entityKey(entity), { ...standing, ...reviewFlag(entity) }]
    }),
  )
  const take = toRows(feedback, source, found.entities, (entity) => {
    const standing = begun[entityKey(entity)] ?? {}
    return trackPartition(partitionCursor(standing), standing.digest ?? '', lookback)
  })
  // A state must not see what came after it: it is built of the first so many entries.
  const log: Array<readonly [key: string, partition: EntityPartitions[string]]> = []
  const checkpoint = (finished: boolean): ReaderEvent => {
    const count = log.length
    return {
      _tag: 'Checkpoint',
      stream,
      state: () =>
        encodeFeedbackState(O.getOrElse(() => source.startDate)(before.fromDate), {
          filters: digestFeedbackFilters(source),
          partitions: { ...begun, ...Object.fromEntries(log.slice(0, count)) },
          reviews: found.reviews,
          refreshing: !finished && demand.syncMode === 'full_refresh',
        }),
    }
  }
  const select = selectAttributes(demand.attributes)
  const toReadings = ({ parts, cutoff, notes }: WindowResults): E.Either<Failure, ReadonlyArray<ReaderEvent>> =>
    pipe(
      parts,
      E.traverseArray((part) => take(part, cutoff)),
      E.map((taken) => {
        for (const { entity, partition: standing } of taken)
          if (O.isSome(standing)) log.push([entityKey(entity), { ...standing.value, ...reviewFlag(entity) }])
        const rows = taken.flatMap((one) => one.rows.map(select))
        return [
          ...notes.map((note): ReaderEvent => ({ _tag: 'Note', ...note })),
          ...taken.flatMap((one) => one.notes),
          ...(rows.length === 0 ? [] : [{ _tag: 'Rows', stream, rows } as const]),
          checkpoint(false),
        ]
      }),
    )

  return pipe(
    readWindows(
      {
        operation: feedback,
        fetch: withConsistencyCheck(feedback.createFetch(source)),
        now: source.now,
        concurrency: source.concurrency,
      },
      groupEntities(feedback, found.entities, (entity) =>
        nextWindowFrom(partitionCursor(begun[entityKey(entity)] ?? {}), source.startDate, lookback),
      ),
    ),
    flatMapFeedEither(toReadings),
    concatFeed(() => feedOf<Failure, ReaderEvent>(E.right(checkpoint(true)))),
  )
}

const reviewFlag = ({ isFromReviews }: Entity): { readonly seen?: true } => (isFromReviews ? { seen: true } : {})

/** Entities of one kind whose windows begin at the same time are asked for together. */
export const groupEntities = (
  { maxIdentifiers }: FeedbackOperation,
  entities: ReadonlyArray<Entity>,
  fromOf: (entity: Entity) => number,
): ReadonlyArray<FeedbackWindow> => {
  const groups = new Map<string, { readonly kind: Entity['kind']; readonly from: number; readonly ids: string[] }>()
  for (const entity of entities) {
    const from = fromOf(entity)
    const key = `${entity.kind} ${from}`
    const group = groups.get(key) ?? { kind: entity.kind, from, ids: [] }
    group.ids.push(entity.id)
    groups.set(key, group)
  }
  return [...groups.values()].flatMap(({ kind, from, ids }) =>
    Array.from({ length: Math.ceil(ids.length / maxIdentifiers) }, (_, n) => ({
      kind,
      from,
      to: undefined,
      ids: ids.slice(n * maxIdentifiers, (n + 1) * maxIdentifiers),
    })),
  )
}

/** Under whom it was found, and when it was said. */
type EntityRecord = { readonly entityType: unknown; readonly entityId: unknown; readonly mentionTime: unknown }

/** A stream of what an operation lists under entities; `key` tells the rows of one apart, `list` is what they are called in messages. */
export const createFeedbackStream = <A extends EntityRecord>({
  name,
  list,
  codec,
  key,
  operation,
}: {
  readonly name: ResourceName
  readonly list: string
  readonly codec: t.Type<A, unknown>
  readonly key: keyof A & string
  readonly operation: Omit<FeedbackOperation, 'key'>
}): Stream<SourceEnv> =>
  defineStream({
    name,
    codec,
    primaryKey: ['entityType', 'entityId', key],
    cursor: 'mentionTime',
    reader: createFeedbackReader({
      ...operation,
      key,
      records: createRecordBuilder({
        resource: name,
        name: operation.name,
        list,
        codec,
        primaryKey: key,
        cursor: 'mentionTime',
      }),
    }),
    project: (row: Row) => [row],
  })
