import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as O from 'fp-ts/Option'
import type { TaskEither } from 'fp-ts/TaskEither'
import * as TE from 'fp-ts/TaskEither'
import * as t from 'io-ts'
import { toInstant } from '../api'
import {
  chainEffect,
  concatFeed,
  drainFeed,
  type Failure,
  type Feed,
  feedOf,
  flatMapFeed,
  type JsonSchema,
  type Reader,
  type ReaderEvent,
  type Row,
  type Stream,
  type StreamRequest,
} from '../cdk'
import type { CutRecord } from '../export'
import { deletionExportReader } from './deleted-reviews'
import { createExportReader } from './export-reader'
import { encodeRow, type ReviewItem } from './review-item'
import { reviewExportOperation, reviewExportReader } from './reviews'
import type { SourceEnv } from './source'

/** How a protocol marks a record as deleted. */
export type DeletedAtColumn = '_ab_cdc_deleted_at' | '_sdc_deleted_at'

const deletedAtSchema: JsonSchema = {
  type: ['null', 'string'],
  format: 'date-time',
  airbyte_type: 'timestamp_with_timezone',
  description: 'When the review was deleted; null while it lives',
}

/** Streams whose `reviews` also say which reviews were deleted; all that read reviews share the one reader that does. */
export const addTombstones = (
  deletedAt: DeletedAtColumn,
  streams: ReadonlyArray<Stream<SourceEnv>>,
): ReadonlyArray<Stream<SourceEnv>> => {
  const own = streams.find(({ name }) => name === 'reviews')
  const attributes = Object.keys((own?.schema.properties ?? {}) as object)
  const reader = createTombstoneReader(deletedAt, attributes) as Reader<SourceEnv, unknown>
  return streams.map((stream) => {
    if (stream.reader !== reviewExportReader) return stream
    const properties = { ...(stream.schema.properties as object), [deletedAt]: deletedAtSchema }
    return stream === own ? { ...stream, reader, schema: { ...stream.schema, properties } } : { ...stream, reader }
  })
}

/** Reviews that were restored: id, and the time of the deletion they have restored, in milliseconds. */
const RestoredReviews = t.readonlyArray(t.tuple([t.string, t.number]))
type RestoredReviews = t.TypeOf<typeof RestoredReviews>

/** The deletions that no review has restored yet, by id with their time, and the state that covers them. */
type PendingDeletions = {
  readonly deletedTimes: Map<string, number>
  /** Those that one has, in the order in which they were found; it only grows. */
  readonly restored: Array<RestoredReviews[number]>
  readonly state: unknown
}

/**
 * The review export, then a tombstone for each review that was deleted since the last run and does not live. A first run
 * has nothing to delete. The state of `reviews` keeps that of the deletions under `deletions`, and while a scan is under way
 * what its pages have shown to be restored under `restored`: a resumed scan does not see those reviews again.
 */
const createTombstoneReader = (
  deletedAt: DeletedAtColumn,
  attributes: ReadonlyArray<string>,
): Reader<SourceEnv, ReviewItem> => ({
  name: reviewExportOperation.name,
  read: (source) => (demands) => {
    const own = demands.find(({ stream }) => stream === 'reviews')
    if (own === undefined) return reviewExportReader.read(source)(demands)
    const before = previousDeletionState(own)
    const fail = (failure: Failure): Feed<Failure, ReaderEvent> =>
      feedOf<Failure, ReaderEvent>(E.right({ _tag: 'Failed', stream: own.stream, failure }))
    return chainEffect<Failure, Feed<Failure, ReaderEvent>, ReaderEvent>(
      pipe(
        readDeletions(source, own, before),
        TE.match(
          (failure) =>
            pipe(
              fail(failure),
              concatFeed(() => reviewExportReader.read(source)(demands.filter((demand) => demand !== own))),
            ),
          (deletions) =>
            readReviewsAndTombstones(source, demands, own, before, deletions, (id, at) =>
              createTombstone(id, at, deletedAt, attributes),
            ),
        ),
        TE.fromTask,
      ),
      (feed) => feed,
    )
  },
})

/** The reviews, then what is left of the deletions. */
const readReviewsAndTombstones = (
  source: SourceEnv,
  demands: ReadonlyArray<StreamRequest<ReviewItem>>,
  own: StreamRequest<ReviewItem>,
  before: O.Option<unknown>,
  deletions: PendingDeletions,
  toRow: (id: string, at: number) => Row,
): Feed<Failure, ReaderEvent> => {
  const reviews = createExportReader({
    ...reviewExportOperation,
    toItem: dropRestoredReviews(deletions, reviewExportOperation.toItem),
  })
  // Built when it is wanted: most checkpoints are never sent, this one's successor below always is.
  let last = (): object => ({})
  return pipe(
    reviews.read(source)(demands),
    flatMapFeed((reading) => {
      if (reading._tag !== 'Checkpoint' || reading.stream !== own.stream) return [reading]
      const reached = () => reading.state() as object
      last = reached
      // As many as the rows so far have shown: by the time the state is wanted there may be more.
      const count = deletions.restored.length
      const restored = () => (count === 0 ? {} : { restored: deletions.restored.slice(0, count) })
      const state = () => (O.isNone(before) ? reached() : { ...reached(), deletions: before.value, ...restored() })
      return [{ ...reading, state }]
    }),
    concatFeed(() => {
      const rows = [...deletions.deletedTimes].map(([id, at]) => toRow(id, at))
      const state = () => {
        const reached = last()
        return { ...reached, deletions: deletions.state ?? toDeletionState(reached) }
      }
      return feedOf<Failure, ReaderEvent>(
        E.right({ _tag: 'Rows', stream: own.stream, rows }),
        E.right({ _tag: 'Checkpoint', stream: own.stream, state }),
      )
    }),
  )
}

/** Where the deletions stood; where tombstones were not wanted before, at the cursor of the reviews. */
const previousDeletionState = ({ state, syncMode }: StreamRequest<ReviewItem>): O.Option<unknown> => {
  if (O.isNone(state) || syncMode === 'full_refresh' || !t.UnknownRecord.is(state.value)) return O.none
  const { deletions, scan } = state.value
  return scan === undefined || deletions !== undefined ? O.some(deletions ?? toDeletionState(state.value)) : O.none
}

/** What an interrupted run has found restored. */
const restoredBefore = ({ state }: StreamRequest<ReviewItem>): RestoredReviews =>
  O.isSome(state) && t.UnknownRecord.is(state.value) && RestoredReviews.is(state.value.restored)
    ? state.value.restored
    : []

const toDeletionState = ({ modifiedTimeFrom }: { readonly modifiedTimeFrom?: unknown }): unknown => ({
  modifiedTimeFrom,
})

const readDeletions = (
  source: SourceEnv,
  own: StreamRequest<ReviewItem>,
  before: O.Option<unknown>,
): TaskEither<Failure, PendingDeletions> => {
  const deletedTimes = new Map<string, number>()
  const restored: Array<RestoredReviews[number]> = []
  if (O.isNone(before)) return TE.right({ deletedTimes, restored, state: undefined })
  let state: unknown
  const project = ({ id, modifiedTime }: CutRecord) => {
    deletedTimes.set(id, Math.max(modifiedTime, deletedTimes.get(id) ?? 0))
    return []
  }
  return pipe(
    deletionExportReader.read(source)([{ ...own, state: before, attributes: O.none, project }]),
    drainFeed((reading) => {
      if (reading._tag === 'Failed') return TE.left(reading.failure)
      if (reading._tag === 'Checkpoint') state = reading.state()
      return TE.right(undefined)
    }),
    TE.map(() => {
      for (const [id, time] of restoredBefore(own)) {
        restored.push([id, time])
        if ((deletedTimes.get(id) ?? Number.POSITIVE_INFINITY) <= time) deletedTimes.delete(id)
      }
      return { deletedTimes, restored, state }
    }),
  )
}

/** A review that was modified after its deletion was restored, and lives. */
const dropRestoredReviews =
  ({ deletedTimes, restored }: PendingDeletions, item: typeof reviewExportOperation.toItem) =>
  (source: SourceEnv) => {
    const toItem = item(source)
    return (cut: CutRecord): ReviewItem => {
      const deleted = deletedTimes.get(cut.id)
      if (deleted !== undefined && cut.modifiedTime > deleted) {
        deletedTimes.delete(cut.id)
        restored.push([cut.id, deleted])
      }
      return toItem(cut)
    }
  }

const createTombstone = (id: string, time: number, deletedAt: DeletedAtColumn, attributes: ReadonlyArray<string>) => {
  const at = toInstant(time)
  const empty = Object.fromEntries(attributes.map((name) => [name, null]))
  return encodeRow({ ...empty, id: BigInt(id), modifiedTime: at, [deletedAt]: at })
}
