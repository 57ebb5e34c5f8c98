import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as O from 'fp-ts/Option'
import type { TaskEither } from 'fp-ts/TaskEither'
import * as TE from 'fp-ts/TaskEither'
import * as t from 'io-ts'
import { toInstant, toMillis } from '../api'
import {
  chainEffect,
  concatFeed,
  defined,
  drainFeed,
  encodeRow,
  type Failure,
  type Feed,
  feedOf,
  flatMapFeed,
  type JsonSchema,
  pickAttributes,
  type Reader,
  type ReaderEvent,
  type Row,
  type Stream,
  type StreamRequest,
} from '../cdk'
import type { CutRecord } from '../export'
import { decodeResumeToken, readStartTime } from '../reading'
import { createExportReader } from './export-reader'
import type { ReviewItem } from './review-item'
import { deletionExportReader, reviewExportOperation, reviewExportReader } from './reviews'
import type { SourceEnv } from './source-env'
import { withSourceLookup } from './source-lookup'

/** The column in which a protocol marks a record as deleted. */
export type DeletedAtColumn = '_ab_cdc_deleted_at' | '_sdc_deleted_at'

const deletedAtSchema: JsonSchema = {
  type: ['null', 'string'],
  format: 'date-time',
  airbyte_type: 'timestamp_with_timezone',
  description: 'When the review was deleted; null while it lives',
}

/**
 * Adds tombstones to `reviews`. The other streams made from reviews get the same reader, so that one scan feeds them
 * all.
 */
export const addTombstones = (
  deletedAt: DeletedAtColumn,
  streams: ReadonlyArray<Stream<SourceEnv>>,
): ReadonlyArray<Stream<SourceEnv>> => {
  const reviews = streams.find(({ name }) => name === 'reviews')
  const attributes = Object.keys((reviews?.schema.properties ?? {}) as object)
  const reader = withSourceLookup(createTombstoneReader(deletedAt, attributes)) as Reader<SourceEnv, unknown>
  return streams.map((stream) => {
    if (stream.reader !== reviewExportReader) return stream
    const properties = { ...(stream.schema.properties as object), [deletedAt]: deletedAtSchema }
    return stream === reviews ? { ...stream, reader, schema: { ...stream.schema, properties } } : { ...stream, reader }
  })
}

/** Restored reviews: the id, and the time of the undone deletion in milliseconds. */
const RestoredReviews = t.readonlyArray(t.tuple([t.string, t.number]))
type RestoredReviews = t.TypeOf<typeof RestoredReviews>

/** The deletions since the last run, except those undone by a review read so far. */
type PendingDeletions = {
  /** Times of the deletions in milliseconds, by review id. */
  readonly deletedTimes: Map<string, number>
  /** The undone ones, in the order in which they were found. This list only grows. */
  readonly restored: Array<RestoredReviews[number]>
  /** The state of the deletions' export that covers them. */
  readonly state: unknown
}

/**
 * Reads the review export, then adds a tombstone for each review that was deleted since the last run and not restored.
 * A first run has nothing to delete unless it resumes. The state of `reviews` keeps the state of the deletions under
 * `deletions`, and during a scan the restored reviews of its pages under `restored`, since a resumed scan does not read
 * those reviews again.
 */
const createTombstoneReader = (
  deletedAt: DeletedAtColumn,
  attributes: ReadonlyArray<string>,
): Reader<SourceEnv, ReviewItem> => ({
  name: reviewExportOperation.name,
  read: (source) => (requests) => {
    const reviews = requests.find(({ stream }) => stream === 'reviews')
    if (reviews === undefined) return reviewExportReader.read(source)(requests)
    const previous = previousDeletionState(source, reviews)
    return chainEffect<Failure, Feed<Failure, ReaderEvent>, ReaderEvent>(
      pipe(
        readDeletions(source, reviews, previous),
        TE.match(
          (failure) =>
            pipe(
              feedOf<Failure, ReaderEvent>(E.right({ _tag: 'Failed', stream: reviews.stream, failure })),
              concatFeed(() => reviewExportReader.read(source)(requests.filter((request) => request !== reviews))),
            ),
          (deletions) =>
            readReviewsAndTombstones(source, requests, reviews, previous, deletions, (id, time) =>
              encodeRow(pickAttributes(reviews.attributes)(createTombstone(id, time, deletedAt, attributes))),
            ),
        ),
        TE.fromTask,
      ),
      (feed) => feed,
    )
  },
})

/** The reviews, then the tombstones of the deletions that are still pending. */
const readReviewsAndTombstones = (
  source: SourceEnv,
  requests: ReadonlyArray<StreamRequest<ReviewItem>>,
  { stream: reviewStream }: StreamRequest<ReviewItem>,
  previous: O.Option<unknown>,
  deletions: PendingDeletions,
  toTombstone: (id: string, time: number) => Row,
): Feed<Failure, ReaderEvent> => {
  const reviews = createExportReader({
    ...reviewExportOperation,
    toItem: dropRestoredReviews(deletions, reviewExportOperation.toItem),
  })
  // States are built late, since most checkpoints are never sent. The last one is always needed for the tombstones.
  let lastState = (): object => ({})
  return pipe(
    reviews.read(source)(requests),
    flatMapFeed((event) => {
      if (event._tag !== 'Checkpoint' || event.stream !== reviewStream) return [event]
      const reviewState = () => event.state() as object
      lastState = reviewState
      // The number now. When the state is built, later pages may have added more.
      const count = deletions.restored.length
      const restored = () => (count === 0 ? {} : { restored: deletions.restored.slice(0, count) })
      const state = () =>
        pipe(
          previous,
          O.match(reviewState, (deletionState) => ({ ...reviewState(), deletions: deletionState, ...restored() })),
        )
      return [{ ...event, state }]
    }),
    concatFeed(() => {
      const rows = [...deletions.deletedTimes].map(([id, time]) => toTombstone(id, time))
      if (source.runSummary !== undefined) source.runSummary.deletedTimes = deletions.deletedTimes
      const state = () => {
        const reviewState = lastState()
        return { ...reviewState, deletions: deletions.state ?? toDeletionState(reviewState) }
      }
      return feedOf<Failure, ReaderEvent>(
        E.right({ _tag: 'Rows', stream: reviewStream, rows }),
        E.right({ _tag: 'Checkpoint', stream: reviewStream, state }),
      )
    }),
  )
}

/**
 * The state of the deletions after the last run. If that run had no tombstones, it starts at the cursor of the reviews.
 * If it was an unfinished first run, it starts where its scan did, because reviews that it sent may have been deleted
 * since. None: nothing was sent before, so there is nothing to delete.
 */
const previousDeletionState = (
  { startDate }: SourceEnv,
  { state, syncMode }: StreamRequest<ReviewItem>,
): O.Option<unknown> => {
  if (O.isNone(state) || !t.UnknownRecord.is(state.value)) return O.none
  const { deletions, scan, modifiedTimeFrom, startDate: startDateOfState } = state.value
  if (scan === undefined)
    return syncMode === 'full_refresh' ? O.none : O.some(deletions ?? toDeletionState(state.value))
  if (deletions !== undefined) return O.some(deletions)
  const isFirstScan = toMillis(String(modifiedTimeFrom)) <= toMillis(String(startDateOfState ?? toInstant(startDate)))
  const begun = isFirstScan ? O.flatMap(readStartTime)(decodeResumeToken(scan)) : O.none
  return O.some(
    toDeletionState(O.isSome(begun) ? { modifiedTimeFrom: toInstant(Math.max(startDate, begun.value)) } : state.value),
  )
}

/** The restored reviews that an interrupted run has already read. */
const previouslyRestored = ({ state }: StreamRequest<ReviewItem>): RestoredReviews =>
  O.isSome(state) && t.UnknownRecord.is(state.value) && RestoredReviews.is(state.value.restored)
    ? state.value.restored
    : []

const toDeletionState = ({
  modifiedTimeFrom,
  slack,
}: {
  readonly modifiedTimeFrom?: unknown
  readonly slack?: unknown
}): unknown => ({ modifiedTimeFrom, ...defined({ slack }) })

/** Deletions of reviews that were never read mean nothing, so they are not read again if start_date moves back. */
const withoutStart = (state: unknown): unknown => {
  const { startDate: _, ...rest } = t.UnknownRecord.is(state) ? state : {}
  return rest
}

const readDeletions = (
  source: SourceEnv,
  reviews: StreamRequest<ReviewItem>,
  previous: O.Option<unknown>,
): TaskEither<Failure, PendingDeletions> => {
  const deletedTimes = new Map<string, number>()
  const restored: Array<RestoredReviews[number]> = []
  if (O.isNone(previous)) return TE.right({ deletedTimes, restored, state: undefined })
  let state: unknown
  const project = ({ id, modifiedTime }: CutRecord) => {
    deletedTimes.set(id, Math.max(modifiedTime, deletedTimes.get(id) ?? 0))
    return []
  }
  return pipe(
    deletionExportReader.read(source)([
      { ...reviews, syncMode: 'incremental', state: previous, attributes: O.none, project },
    ]),
    drainFeed((event) => {
      if (event._tag === 'Failed') return TE.left(event.failure)
      if (event._tag === 'Checkpoint') state = withoutStart(event.state())
      return TE.right(undefined)
    }),
    TE.map(() => {
      for (const [id, time] of previouslyRestored(reviews)) {
        restored.push([id, time])
        if ((deletedTimes.get(id) ?? Number.POSITIVE_INFINITY) <= time) deletedTimes.delete(id)
      }
      return { deletedTimes, restored, state }
    }),
  )
}

/**
 * Drops the deletion of a review that was modified later, or in the same millisecond: the deletions are read first, so
 * a review that the export still returns was restored.
 */
const dropRestoredReviews =
  ({ deletedTimes, restored }: PendingDeletions, createToItem: typeof reviewExportOperation.toItem) =>
  (source: SourceEnv) => {
    const toItem = createToItem(source)
    return (record: CutRecord): ReviewItem => {
      const deletedTime = deletedTimes.get(record.id)
      if (deletedTime !== undefined && record.modifiedTime >= deletedTime) {
        deletedTimes.delete(record.id)
        restored.push([record.id, deletedTime])
      }
      return toItem(record)
    }
  }

/** A record with the key, the time of the deletion as cursor and mark, and null in all other attributes. */
const createTombstone = (id: string, time: number, deletedAt: DeletedAtColumn, attributes: ReadonlyArray<string>) => {
  const instant = toInstant(time)
  const nulls = Object.fromEntries(attributes.map((name) => [name, null]))
  return { ...nulls, id: BigInt(id), modifiedTime: instant, [deletedAt]: instant }
}
