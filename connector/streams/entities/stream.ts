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
  type EntityState,
  type EntityStates,
  type EntityStreamState,
  emptyEntityState,
  encodeEntityState,
  entityCursor,
  nextWindowFrom,
} from './state'
import { takeRows, trackEntity } from './tracker'

const day = 86_400_000

/**
 * How far each run reads back at least, milliseconds. The cursor is the time of an answer; a row may become visible
 * later than its mention time, or be stamped by a clock that is behind or in another zone. Rows that come again are
 * sent only if one is new.
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
              : readByEntity(definition, source, request, state, selection),
          ),
        ),
      )
    })
  },
})

/** A digest of the configured filters that affect which rows exist. */
const digestEntityFilters = ({ feedback: { thresholds, additionalFields } }: SourceEnv): string =>
  digestFilters({ ...thresholds, ...defined({ additionalFields }) })

/** The state at the start of a full refresh: keeps the entities found in the reviews, but no cursor. */
const resetState = ({ entityStates, reviews, next }: EntityStreamState): EntityStreamState => ({
  ...emptyEntityState,
  next,
  entityStates: Object.fromEntries(
    Object.entries(entityStates).flatMap(([key, { seen }]) => (seen ? [[key, { seen }]] : [])),
  ),
  reviews,
})

/** There are no entities, so the service is not even asked for its time. */
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

/** A run of a stream. `log` and `incompleteKeys` grow as it reads. */
type Run = {
  readonly definition: EntityDefinition
  readonly source: SourceEnv
  readonly stream: string
  readonly select: ReturnType<typeof selectAttributes>
  readonly isRefresh: boolean
  readonly previous: EntityStreamState
  readonly reviews: EntitySelection['reviews']
  /** In the order in which they are read. */
  readonly entities: ReadonlyArray<Entity>
  /** The state in which each entity begins. */
  readonly entityStates: EntityStates
  readonly lookback: number
  /** The lowest and highest cursor, milliseconds. */
  readonly least: number
  readonly greatest: number
  readonly serviceTime: () => number | undefined
  /** A checkpoint is built later from the entries that the log has now. It must not include later ones. */
  readonly log: Array<readonly [key: string, entityState: EntityState]>
  /** The entities that could not be read completely. */
  readonly incompleteKeys: string[]
}

const entityStateOf = ({ entityStates }: Run, entity: Entity): EntityState => entityStates[entityKey(entity)] ?? {}

const cursorOf = (run: Run, entity: Entity): O.Option<number> => entityCursor(entityStateOf(run, entity))

const windowFrom = (run: Run, entity: Entity): number =>
  nextWindowFrom(cursorOf(run, entity), run.source.startDate, run.lookback)

/** Checks before the first answer, by the local clock: if every window is in the future, nothing is requested. */
const checkFuture = (run: Run): E.Either<Failure, void> => {
  const { source, lookback, greatest, serviceTime } = run
  const time = serviceTime() ?? source.now()
  const failure =
    futureStartFailure(source.startDate, time) ??
    (isAheadOfService(greatest - lookback, time) ? futureCursorFailure(greatest, time) : undefined)
  return failure === undefined ? E.right(undefined) : E.left(failure)
}

/** `last`: the entities after which the next run begins. */
const createCheckpoint = (
  run: Run,
  last: Pick<EntityGroup, 'kind' | 'ids'> | undefined,
  isEnd = false,
): ReaderEvent => {
  const { source, stream, previous, entityStates, entities, reviews, isRefresh, lookback, log } = run
  const count = log.length
  // A start date that may still be refused is not stored.
  const isTimeKnown = run.serviceTime() !== undefined
  return {
    _tag: 'Checkpoint',
    stream,
    state: () =>
      encodeEntityState(O.getOrElse(() => source.startDate)(previous.fromDate), {
        readSince: isTimeKnown
          ? O.some(startAfterRun(previous.readSince, source.startDate, run.least - lookback))
          : previous.readSince,
        filters: digestEntityFilters(source),
        entityStates: { ...entityStates, ...Object.fromEntries(log.slice(0, count)) },
        reviews,
        refreshing: !isEnd && isRefresh,
        next: last && keyAfter(entities, last),
      }),
  }
}

/** The events for what was read of some entities; `resultToRows` makes the rows. */
const toEvents =
  (run: Run, resultToRows: ReturnType<typeof toRows>) =>
  ({ results, cutoff, notes, last }: RunResults): E.Either<Failure, ReadonlyArray<ReaderEvent>> =>
    pipe(
      checkFuture(run),
      E.flatMap(() => E.traverseArray((result: (typeof results)[number]) => resultToRows(result, cutoff))(results)),
      E.map((entityRows) => {
        const { source, stream, log, incompleteKeys, select } = run
        if (cutoff !== undefined) reportScanEnd(source, [stream], { cutoff, isCertified: false, isResumed: false })
        for (const { answer, ...entity } of results)
          if (E.isLeft(answer) && !concernsEntity(answer.left)) incompleteKeys.push(entityKey(entity))
        for (const { entity, entityState } of entityRows)
          if (O.isSome(entityState)) log.push([entityKey(entity), { ...entityState.value, ...seenMember(entity) }])
        const rows = entityRows.flatMap((each) => each.rows.map(select))
        return [
          ...notes.map((note): ReaderEvent => ({ _tag: 'Note', ...note })),
          ...entityRows.flatMap((each) => each.notes),
          ...(rows.length === 0 ? [] : [{ _tag: 'Rows', stream, rows } as const]),
          createCheckpoint(run, last),
        ]
      }),
    )

/** The last checkpoint. Fails if some entities were not read, since an overwrite would delete their rows. */
const endRun = (run: Run, first: EntityGroup | undefined): Feed<Failure, ReaderEvent> => {
  const count = run.isRefresh ? run.incompleteKeys.length : 0
  return feedOf<Failure, ReaderEvent>(
    pipe(
      checkFuture(run),
      E.map(() => createCheckpoint(run, first, count === 0)),
    ),
    ...(count === 0 ? [] : [E.left(incompleteFailure(run.definition, count))]),
  )
}

const readByEntity = (
  definition: EntityDefinition,
  source: SourceEnv,
  { stream, syncMode, attributes }: StreamRequest<Row>,
  previous: EntityStreamState,
  selection: EntitySelection,
): Feed<Failure, ReaderEvent> => {
  const { fetch, serviceTime } = watchServiceTime(definition.createFetch(source), source.now)
  const entities = rotateEntities(selection.entities, previous.next)
  const entityStates = startEntityStates(selection.entities, previous)
  const { least, greatest } = cursorRange(entityStates, previous)
  const run: Run = {
    definition,
    source,
    stream,
    select: selectAttributes(attributes),
    isRefresh: syncMode === 'full_refresh',
    previous,
    reviews: selection.reviews,
    entities,
    entityStates,
    lookback: Math.max(minLookback, source.feedback.lookbackDays * day),
    least,
    greatest,
    serviceTime,
    log: [],
    incompleteKeys: [],
  }
  const from = (entity: Entity): number => windowFrom(run, entity)
  // The next full refresh keeps nothing of this one.
  const isFirst = (entity: Entity): boolean => run.isRefresh || O.isNone(cursorOf(run, entity))
  const groups = groupEntities(definition.maxIdentifiers, entities, from, isFirst)
  const resultToRows = toRows(definition, source, entities, (entity) =>
    takeRows(trackEntity(cursorOf(run, entity), entityStateOf(run, entity).digest ?? '', run.lookback, from(entity))),
  )
  const { now, concurrency } = source
  const reading = { operation: definition, fetch: withJoinedBlocks(definition, fetch, entities), now, concurrency }
  return pipe(
    // Only the starting point of the next run moves, if there is another entity.
    feedOf<Failure, ReaderEvent>(
      ...(groups.length > 1 && E.isRight(checkFuture(run)) ? [E.right(createCheckpoint(run, groups[0]))] : []),
    ),
    concatFeed(() => pipe(readEntities(reading, entities, groups), flatMapFeedEither(toEvents(run, resultToRows)))),
    concatFeed(() => endRun(run, groups[0])),
  )
}

const startEntityStates = (entities: ReadonlyArray<Entity>, { entityStates }: EntityStreamState): EntityStates =>
  Object.fromEntries(
    entities.map((entity) => {
      const { seen: _, ...entityState } = entityStates[entityKey(entity)] ?? {}
      return [entityKey(entity), { ...entityState, ...seenMember(entity) }]
    }),
  )

const cursorRange = (
  entityStates: EntityStates,
  { fromDate }: EntityStreamState,
): { readonly least: number; readonly greatest: number } => {
  let least = Number.POSITIVE_INFINITY
  let greatest = O.getOrElse(() => Number.NEGATIVE_INFINITY)(fromDate)
  for (const entityState of Object.values(entityStates)) {
    const cursor = O.getOrElse(() => Number.NEGATIVE_INFINITY)(entityCursor(entityState))
    least = Math.min(least, cursor)
    greatest = Math.max(greatest, cursor)
  }
  return { least, greatest }
}

const incompleteFailure = ({ name }: EntityDefinition, count: number): Failure =>
  transientFailure(
    `${name}: ${count === 1 ? 'one entity was' : `${count} entities were`} not read ` +
      'completely, and a full refresh without them would delete their rows. The warnings name ' +
      'them. Run again, or sync the stream incrementally, which leaves them for the next run.',
  )

/** Marks in an entity's state that it was found in the reviews. */
const seenMember = ({ isFromReviews }: Entity): Pick<EntityState, 'seen'> => (isFromReviews ? { seen: true } : {})

/** The attributes that every record has: its entity, and the mention time as cursor. */
type EntityRecord = { readonly entityType: unknown; readonly entityId: unknown; readonly mentionTime: unknown }

/**
 * A stream of an operation that lists rows by entity. `key` identifies a row within its entity; `list` names the rows
 * in messages.
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
