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
  transientFailure,
} from '../../cdk'
import { digestFilters } from '../../reading'
import { selectAttributes } from '../attributes'
import type { ResourceName, SourceEnv } from '../source-env'
import {
  futureCursorFailure,
  futureStartFailure,
  isAheadOfService,
  isStartMovedBack,
  movedBackNote,
  startAfterRun,
  watchServiceTime,
} from '../start-date'
import { reportScanEnd } from '../sync-audit'
import { filtersChangedWarning, noEntitiesWarning } from '../warnings'
import { concernsEntity, type EntityOperation } from './answer'
import { type EntityGroup, groupEntities } from './groups'
import { createRecordBuilder, type RecordBuilder, toRows, withJoinedBlocks } from './records'
import { type RunResults, readEntities } from './run'
import { type Entity, type EntitySelection, entityKey, keyAfter, readWithEntities, rotateEntities } from './selection'
import {
  decodeEntityState,
  type EntityPartition,
  type EntityPartitions,
  type EntityStreamState,
  emptyEntityState,
  encodeEntityState,
  nextWindowFrom,
  partitionCursor,
  trackPartition,
} from './state'

const day = 86_400_000

/**
 * How far each run reads back whatever the config says, milliseconds. The cursor is the time of an answer, and a row
 * may become visible later than its mention time, or be stamped by a clock that is behind or in another zone. Of the
 * rows that come again, none is sent unless one is new.
 */
const minLookback = day

/** An operation, and how its rows become records. */
type EntityDefinition = EntityOperation & { readonly records: RecordBuilder }

/** Reads rows by entity. Each entity has its own cursor. */
const createEntityStreamReader = (definition: EntityDefinition): Reader<SourceEnv, Row> => ({
  name: definition.name,
  read: (source) => (requests) => {
    const [request] = requests
    if (request === undefined) return feedOf()
    const { stream, syncMode } = request
    return chainEffect(TE.fromEither(decodeEntityState(stream, request.state)), (decoded) => {
      const { readSince } = decoded
      const isMovedBack = isStartMovedBack(readSince, source.startDate)
      const isRefresh = syncMode === 'full_refresh' && !decoded.refreshing
      const state = isRefresh || isMovedBack ? resetState(decoded) : decoded
      const warnings = [
        ...(isMovedBack && !isRefresh && O.isSome(readSince)
          ? [movedBackNote([stream], readSince.value, source.startDate)]
          : []),
        ...(state.filters === undefined || state.filters === digestEntityFilters(source)
          ? []
          : [filtersChangedWarning(stream)]),
      ]
      return pipe(
        feedOf<Failure, ReaderEvent>(...warnings.map((warning) => E.right(warning))),
        concatFeed(() =>
          readWithEntities(source, request, state, (selection) =>
            selection.entities.length === 0
              ? readNothing(source, stream, state)
              : readPartitions(definition, source, request, state, selection),
          ),
        ),
      )
    })
  },
})

/** A digest of the configured filters that decide which rows there are. */
const digestEntityFilters = ({ feedback: { thresholds, additionalFields } }: SourceEnv): string =>
  digestFilters({ ...thresholds, ...defined({ additionalFields }) })

/** The state at the start of a full refresh: it keeps the entities found in the reviews, but no cursor. */
const resetState = ({ partitions, reviews, next }: EntityStreamState): EntityStreamState => ({
  ...emptyEntityState,
  next,
  partitions: Object.fromEntries(
    Object.entries(partitions).flatMap(([key, { seen }]) => (seen ? [[key, { seen }]] : [])),
  ),
  reviews,
})

/** There are no entities, so the service is not asked, not even for its time. */
const readNothing = (
  { startDate, now }: SourceEnv,
  stream: string,
  state: EntityStreamState,
): Feed<Failure, ReaderEvent> => {
  const futureStart = futureStartFailure(startDate, now())
  return futureStart !== undefined
    ? feedOf<Failure, ReaderEvent>(E.left(futureStart))
    : feedOf<Failure, ReaderEvent>(
        E.right(noEntitiesWarning(stream)),
        E.right({
          _tag: 'Checkpoint',
          stream,
          state: () => encodeEntityState(O.getOrElse(() => startDate)(state.fromDate), { ...state, refreshing: false }),
        }),
      )
}

const readPartitions = (
  definition: EntityDefinition,
  source: SourceEnv,
  { stream, syncMode, attributes }: StreamRequest<Row>,
  previous: EntityStreamState,
  { entities: allEntities, reviews }: EntitySelection,
): Feed<Failure, ReaderEvent> => {
  const isRefresh = syncMode === 'full_refresh'
  const entities = rotateEntities(allEntities, previous.next)
  const lookback = Math.max(minLookback, source.feedback.lookbackDays * day)
  const partitions = startPartitions(allEntities, previous)
  const partitionOf = (entity: Entity): EntityPartition => partitions[entityKey(entity)] ?? {}
  const cursorOf = (entity: Entity): O.Option<number> => partitionCursor(partitionOf(entity))
  const windowFrom = (entity: Entity): number => nextWindowFrom(cursorOf(entity), source.startDate, lookback)
  const resultToRows = toRows(definition, source, entities, (entity) =>
    trackPartition(cursorOf(entity), partitionOf(entity).digest ?? '', lookback, windowFrom(entity)),
  )
  // The next full refresh keeps nothing of this one.
  const isFirst = (entity: Entity): boolean => isRefresh || O.isNone(cursorOf(entity))
  const groups = groupEntities(definition.maxIdentifiers, entities, windowFrom, isFirst)
  const { fetch, serviceTime } = watchServiceTime(definition.createFetch(source), source.now)
  const [least, greatest] = entities.reduce<readonly [number, number]>(
    ([min, max], entity) => {
      const cursor = O.getOrElse(() => Number.NEGATIVE_INFINITY)(cursorOf(entity))
      return [Math.min(min, cursor), Math.max(max, cursor)]
    },
    [Number.POSITIVE_INFINITY, O.getOrElse(() => Number.NEGATIVE_INFINITY)(previous.fromDate)],
  )
  const readSince = O.some(startAfterRun(previous.readSince, source.startDate, least - lookback))
  /** By the clock here before the first answer: where every window lies in the future, nothing is asked for. */
  const checkFuture = (): E.Either<Failure, void> => {
    const time = serviceTime() ?? source.now()
    const failure =
      futureStartFailure(source.startDate, time) ??
      (isAheadOfService(greatest - lookback, time) ? futureCursorFailure(greatest, time) : undefined)
    return failure === undefined ? E.right(undefined) : E.left(failure)
  }
  // A checkpoint is built later from the entries that the log has now: it must not include any that follow.
  const log: Array<readonly [key: string, partition: EntityPartition]> = []
  /** `last`: the entities behind which the next run begins. */
  const createCheckpoint = (last: Pick<EntityGroup, 'kind' | 'ids'> | undefined, isEnd = false): ReaderEvent => {
    const count = log.length
    const isTimeKnown = serviceTime() !== undefined
    return {
      _tag: 'Checkpoint',
      stream,
      state: () =>
        encodeEntityState(O.getOrElse(() => source.startDate)(previous.fromDate), {
          // A start date that may yet be refused is not remembered.
          readSince: isTimeKnown ? readSince : previous.readSince,
          filters: digestEntityFilters(source),
          partitions: { ...partitions, ...Object.fromEntries(log.slice(0, count)) },
          reviews,
          refreshing: !isEnd && isRefresh,
          next: last && keyAfter(entities, last),
        }),
    }
  }
  const select = selectAttributes(attributes)
  /** The entities that could not be read completely. */
  const incompleteKeys: string[] = []
  const toEvents = ({ results, cutoff, notes, last }: RunResults): E.Either<Failure, ReadonlyArray<ReaderEvent>> =>
    pipe(
      checkFuture(),
      E.flatMap(() => E.traverseArray((result: (typeof results)[number]) => resultToRows(result, cutoff))(results)),
      E.map((entityRows) => {
        if (cutoff !== undefined) reportScanEnd(source, [stream], { cutoff, isCertified: false, isResumed: false })
        for (const { answer, ...entity } of results)
          if (E.isLeft(answer) && !concernsEntity(answer.left)) incompleteKeys.push(entityKey(entity))
        for (const { entity, partition } of entityRows)
          if (O.isSome(partition)) log.push([entityKey(entity), { ...partition.value, ...seenMember(entity) }])
        const rows = entityRows.flatMap((each) => each.rows.map(select))
        return [
          ...notes.map((note): ReaderEvent => ({ _tag: 'Note', ...note })),
          ...entityRows.flatMap((each) => each.notes),
          ...(rows.length === 0 ? [] : [{ _tag: 'Rows', stream, rows } as const]),
          createCheckpoint(last),
        ]
      }),
    )
  /** An overwrite with what was read would delete the rows of the entities that were not. */
  const isIncomplete = (): boolean => isRefresh && incompleteKeys.length > 0

  return pipe(
    // Only the beginning of the next run moves, and only where there is another one.
    feedOf<Failure, ReaderEvent>(
      ...(groups.length > 1 && E.isRight(checkFuture()) ? [E.right(createCheckpoint(groups[0]))] : []),
    ),
    concatFeed(() =>
      pipe(
        readEntities(
          {
            operation: definition,
            fetch: withJoinedBlocks(definition, fetch, entities),
            now: source.now,
            concurrency: source.concurrency,
          },
          entities,
          groups,
        ),
        flatMapFeedEither(toEvents),
      ),
    ),
    concatFeed(() =>
      feedOf<Failure, ReaderEvent>(
        pipe(
          checkFuture(),
          E.map(() => createCheckpoint(groups[0], !isIncomplete())),
        ),
        ...(isIncomplete() ? [E.left(incompleteFailure(definition, incompleteKeys.length))] : []),
      ),
    ),
  )
}

const startPartitions = (entities: ReadonlyArray<Entity>, { partitions }: EntityStreamState): EntityPartitions =>
  Object.fromEntries(
    entities.map((entity) => {
      const { seen: _, ...partition } = partitions[entityKey(entity)] ?? {}
      return [entityKey(entity), { ...partition, ...seenMember(entity) }]
    }),
  )

const incompleteFailure = ({ name }: EntityDefinition, count: number): Failure =>
  transientFailure(
    `${name}: ${count === 1 ? 'one entity was' : `${count} entities were`} not read ` +
      'completely, and a full refresh without them would delete their rows. The warnings name ' +
      'them. Run again, or sync the stream incrementally, which leaves them for the next run.',
  )

/** How a partition's state marks an entity that was found in the reviews. */
const seenMember = ({ isFromReviews }: Entity): Pick<EntityPartition, 'seen'> => (isFromReviews ? { seen: true } : {})

/** The attributes that every record has: its entity, and the mention time as cursor. */
type EntityRecord = { readonly entityType: unknown; readonly entityId: unknown; readonly mentionTime: unknown }

/**
 * A stream of an operation that lists rows by entity. `key` identifies a row of an entity; `list` is the name of the
 * rows in messages.
 */
export const createEntityStream = <A extends EntityRecord>({
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
  readonly operation: Omit<EntityOperation, 'key'>
}): Stream<SourceEnv> =>
  defineStream({
    name,
    codec,
    primaryKey: ['entityType', 'entityId', key],
    cursor: 'mentionTime',
    reader: createEntityStreamReader({
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
