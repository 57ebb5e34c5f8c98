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
import { filtersChangedWarning, noEntitiesWarning, selectAttributes } from '../warnings'
import { refusedKeyError, withConsistencyCheck } from './consistency'
import { type Entity, type EntitySelection, entityKey, keyAfter, readWithEntities, rotateEntities } from './entities'
import type { FeedbackOperation } from './page'
import { createRecordBuilder, type RecordBuilder, toRows, withJoinedBlocks } from './records'
import {
  decodeFeedbackState,
  type EntityPartition,
  type EntityPartitions,
  emptyFeedbackState,
  encodeFeedbackState,
  type FeedbackState,
  nextWindowFrom,
  partitionCursor,
  trackPartition,
} from './state'
import type { FeedbackWindow } from './window'
import type { WindowResults } from './window-queue'
import { groupEntities, readWindows } from './window-reader'

const day = 86_400_000

/**
 * How far each run reads back whatever the config says, milliseconds. The cursor is the time of an answer, and a row may become visible
 * later than its mention time, or be stamped by a clock that is behind or in another zone. Of the rows that come again, none is sent unless one is new.
 */
const minLookback = day

/** An operation, and how its feedback becomes records. */
type FeedbackDefinition = FeedbackOperation & { readonly records: RecordBuilder }

/** Reads feedback by entity: each entity is a partition with a cursor of its own. */
const createFeedbackReader = (feedback: FeedbackDefinition): Reader<SourceEnv, Row> => ({
  name: feedback.name,
  read: (source) => (requests) => {
    const [request] = requests
    if (request === undefined) return feedOf()
    const { stream, syncMode } = request
    return chainEffect(TE.fromEither(decodeFeedbackState(stream, request.state)), (decoded) => {
      const { readSince } = decoded
      const isMovedBack = isStartMovedBack(readSince, source.startDate)
      const isRefresh = syncMode === 'full_refresh' && !decoded.refreshing
      const state = isRefresh || isMovedBack ? resetFeedbackState(decoded) : decoded
      const warnings = [
        ...(isMovedBack && !isRefresh && O.isSome(readSince)
          ? [movedBackNote([stream], readSince.value, source.startDate)]
          : []),
        ...(state.filters === undefined || state.filters === digestFeedbackFilters(source)
          ? []
          : [filtersChangedWarning(stream)]),
      ]
      return pipe(
        feedOf<Failure, ReaderEvent>(...warnings.map((warning) => E.right(warning))),
        concatFeed(() =>
          readWithEntities(source, request, state, (selection) =>
            selection.entities.length === 0
              ? readNothing(source, stream, state)
              : readPartitions(feedback, source, request, state, selection),
          ),
        ),
      )
    })
  },
})

/** A digest of the configured filters that decide which rows there are. */
const digestFeedbackFilters = ({ feedback: { thresholds, additionalFields } }: SourceEnv): string =>
  digestFilters({ ...thresholds, ...defined({ additionalFields }) })

/** The state at the start of a full refresh: it keeps the entities found in the reviews, but no cursor. */
const resetFeedbackState = ({ partitions, reviews, next }: FeedbackState): FeedbackState => ({
  ...emptyFeedbackState,
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
  state: FeedbackState,
): Feed<Failure, ReaderEvent> => {
  const futureStart = futureStartFailure(startDate, now())
  return futureStart !== undefined
    ? feedOf<Failure, ReaderEvent>(E.left(futureStart))
    : feedOf<Failure, ReaderEvent>(
        E.right(noEntitiesWarning(stream)),
        E.right({
          _tag: 'Checkpoint',
          stream,
          state: () =>
            encodeFeedbackState(O.getOrElse(() => startDate)(state.fromDate), { ...state, refreshing: false }),
        }),
      )
}

const readPartitions = (
  feedback: FeedbackDefinition,
  source: SourceEnv,
  { stream, syncMode, attributes }: StreamRequest<Row>,
  previous: FeedbackState,
  { entities: allEntities, reviews }: EntitySelection,
): Feed<Failure, ReaderEvent> => {
  const entities = rotateEntities(allEntities, previous.next)
  const lookback = Math.max(minLookback, source.feedback.lookbackDays * day)
  const initialPartitions: EntityPartitions = Object.fromEntries(
    allEntities.map((entity) => {
      const { seen: _, ...partition } = previous.partitions[entityKey(entity)] ?? {}
      return [entityKey(entity), { ...partition, ...seenMember(entity) }]
    }),
  )
  const initialPartition = (entity: Entity): EntityPartition => initialPartitions[entityKey(entity)] ?? {}
  const windowFrom = (entity: Entity): number =>
    nextWindowFrom(partitionCursor(initialPartition(entity)), source.startDate, lookback)
  const resultToRows = toRows(feedback, source, entities, (entity) => {
    const partition = initialPartition(entity)
    return trackPartition(partitionCursor(partition), partition.digest ?? '', lookback, windowFrom(entity))
  })
  const sentUpTo = (entity: Entity): number =>
    O.getOrElse(() => Number.NEGATIVE_INFINITY)(partitionCursor(initialPartition(entity)))
  const windows = groupEntities(feedback, entities, windowFrom, sentUpTo)
  const { fetch: watchedFetch, serviceTime } = watchServiceTime(feedback.createFetch(source), source.now)
  const fetch = withConsistencyCheck(watchedFetch)
  const cursors = entities.map(sentUpTo)
  const [least, greatest] = cursors.reduce<readonly [number, number]>(
    ([min, max], cursor) => [Math.min(min, cursor), Math.max(max, cursor)],
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
  /** `next`: the window that is requested next; none at the end of the run. */
  const createCheckpoint = (next: FeedbackWindow | undefined, isLast = false): ReaderEvent => {
    const count = log.length
    // The next run begins behind what is requested next, in case that cannot be read, or behind this run's beginning.
    const requested = next ?? windows[0]
    const isTimeKnown = serviceTime() !== undefined
    return {
      _tag: 'Checkpoint',
      stream,
      state: () =>
        encodeFeedbackState(O.getOrElse(() => source.startDate)(previous.fromDate), {
          // A start date that may yet be refused is not remembered.
          readSince: isTimeKnown ? readSince : previous.readSince,
          filters: digestFeedbackFilters(source),
          partitions: { ...initialPartitions, ...Object.fromEntries(log.slice(0, count)) },
          reviews,
          refreshing: !isLast && syncMode === 'full_refresh',
          next: requested && keyAfter(entities, requested),
        }),
    }
  }
  const select = selectAttributes(attributes)
  /** An entity that exists was left out, so that the stream is not complete. */
  let lacksEntity = false
  const toEvents = ({ results, cutoff, notes, next }: WindowResults): E.Either<Failure, ReadonlyArray<ReaderEvent>> =>
    pipe(
      checkFuture(),
      E.flatMap(() => E.traverseArray((result: (typeof results)[number]) => resultToRows(result, cutoff))(results)),
      E.map((entityRows) => {
        if (cutoff !== undefined) reportScanEnd(source, [stream], { cutoff, isCertified: false, isResumed: false })
        lacksEntity ||= results.some((result) => E.isLeft(result.feedback) && result.feedback.left === refusedKeyError)
        for (const { entity, partition } of entityRows)
          if (O.isSome(partition)) log.push([entityKey(entity), { ...partition.value, ...seenMember(entity) }])
        const rows = entityRows.flatMap((each) => each.rows.map(select))
        return [
          ...notes.map((note): ReaderEvent => ({ _tag: 'Note', ...note })),
          ...entityRows.flatMap((each) => each.notes),
          ...(rows.length === 0 ? [] : [{ _tag: 'Rows', stream, rows } as const]),
          createCheckpoint(next),
        ]
      }),
    )

  return pipe(
    // Only the beginning of the next run moves, and only where there is another one.
    feedOf<Failure, ReaderEvent>(
      ...(windows.length > 1 && E.isRight(checkFuture()) ? [E.right(createCheckpoint(windows[0]))] : []),
    ),
    concatFeed(() =>
      pipe(
        readWindows(
          {
            operation: feedback,
            fetch: withJoinedBlocks({ operation: feedback, fetch }, entities),
            now: source.now,
            // The next full refresh keeps nothing of this one.
            lookback: syncMode === 'full_refresh' ? 0 : lookback,
            concurrency: source.concurrency,
          },
          windows,
        ),
        flatMapFeedEither(toEvents),
      ),
    ),
    concatFeed(() =>
      feedOf<Failure, ReaderEvent>(
        E.right(createCheckpoint(undefined, !lacksEntity)),
        ...(lacksEntity ? [E.left(leftOutFailure(feedback))] : []),
      ),
    ),
  )
}

const leftOutFailure = ({ name }: FeedbackDefinition): Failure =>
  transientFailure(
    `${name}: entities were left out because ${refusedKeyError.message}. The warnings name them, and their state did not move. Run again.`,
  )

/** How a partition's state marks an entity that was found in the reviews. */
const seenMember = ({ isFromReviews }: Entity): Pick<EntityPartition, 'seen'> => (isFromReviews ? { seen: true } : {})

/** The attributes that every record of feedback has: its entity, and the mention time as cursor. */
type EntityRecord = { readonly entityType: unknown; readonly entityId: unknown; readonly mentionTime: unknown }

/** A stream of an operation's feedback. `key` identifies a row of an entity; `list` is the name of the rows in messages. */
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
