import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as O from 'fp-ts/Option'
import type { TaskEither } from 'fp-ts/TaskEither'
import * as TE from 'fp-ts/TaskEither'
import * as t from 'io-ts'
import { toInstant } from '../api/model/scalar'
import type { Cut } from '../api/page'
import type { Failure } from '../cdk/failure'
import { andThen, chain, drain, type Feed, following, items } from '../cdk/feed'
import type { Row } from '../cdk/message'
import type { JsonSchema } from '../cdk/schema'
import type { Demand, Reader, Reading, Stream } from '../cdk/stream'
import { deletionExport } from './deleted-reviews'
import { exportReader } from './export'
import { type ReviewItem, toRow } from './review-item'
import { reviewExport, reviewOperation } from './reviews'
import type { Source } from './source'

/** How a protocol marks a record as deleted. */
export type DeletedAt = '_ab_cdc_deleted_at' | '_sdc_deleted_at'

const declared: JsonSchema = {
  type: ['null', 'string'],
  format: 'date-time',
  airbyte_type: 'timestamp_with_timezone',
  description: 'When the review was deleted; null while it lives',
}

/** Streams whose `reviews` also say which reviews were deleted; all that read reviews share the one reader that does. */
export const withTombstones = (
  deletedAt: DeletedAt,
  streams: ReadonlyArray<Stream<Source>>,
): ReadonlyArray<Stream<Source>> => {
  const own = streams.find(({ name }) => name === 'reviews')
  const attributes = Object.keys((own?.schema.properties ?? {}) as object)
  const reader = tombstoneReader(deletedAt, attributes) as Reader<Source, unknown>
  return streams.map((stream) => {
    if (stream.reader !== reviewExport) return stream
    const properties = { ...(stream.schema.properties as object), [deletedAt]: declared }
    return stream === own ? { ...stream, reader, schema: { ...stream.schema, properties } } : { ...stream, reader }
  })
}

/** The deletions that no review has outlived yet, by id with their time, and the state that covers them. */
type Deletions = { readonly held: Map<string, number>; readonly state: unknown }

/**
 * The review export, then a tombstone for each review that was deleted since the last run and does not live. A first run
 * has nothing to delete. The state of `reviews` keeps that of the deletions under `deletions`.
 */
const tombstoneReader = (deletedAt: DeletedAt, attributes: ReadonlyArray<string>): Reader<Source, ReviewItem> => ({
  name: reviewOperation.name,
  read: (source) => (demands) => {
    const own = demands.find(({ stream }) => stream === 'reviews')
    if (own === undefined) return reviewExport.read(source)(demands)
    const before = deletionsBefore(own)
    const fail = (failure: Failure): Feed<Failure, Reading> =>
      items<Failure, Reading>(E.right({ _tag: 'Failed', stream: own.stream, failure }))
    return following<Failure, Feed<Failure, Reading>, Reading>(
      pipe(
        readDeletions(source, own, before),
        TE.match(
          (failure) =>
            pipe(
              fail(failure),
              andThen(() => reviewExport.read(source)(demands.filter((demand) => demand !== own))),
            ),
          (deletions) =>
            readReviews(source, demands, own, before, deletions, (id, at) => tombstone(id, at, deletedAt, attributes)),
        ),
        TE.fromTask,
      ),
      (feed) => feed,
    )
  },
})

/** The reviews, then what is left of the deletions. */
const readReviews = (
  source: Source,
  demands: ReadonlyArray<Demand<ReviewItem>>,
  own: Demand<ReviewItem>,
  before: O.Option<unknown>,
  deletions: Deletions,
  toRow: (id: string, at: number) => Row,
): Feed<Failure, Reading> => {
  const reviews = exportReader({ ...reviewOperation, item: outliving(deletions, reviewOperation.item) })
  // Built when it is wanted: most checkpoints are never sent, this one's successor below always is.
  let last = (): object => ({})
  return pipe(
    reviews.read(source)(demands),
    chain((reading) => {
      if (reading._tag !== 'Checkpoint' || reading.stream !== own.stream) return [reading]
      const reached = () => reading.state() as object
      last = reached
      const state = () => (O.isNone(before) ? reached() : { ...reached(), deletions: before.value })
      return [{ ...reading, state }]
    }),
    andThen(() => {
      const rows = [...deletions.held].map(([id, at]) => toRow(id, at))
      const state = () => {
        const reached = last()
        return { ...reached, deletions: deletions.state ?? cursorOf(reached) }
      }
      return items<Failure, Reading>(
        E.right({ _tag: 'Rows', stream: own.stream, rows }),
        E.right({ _tag: 'Checkpoint', stream: own.stream, state }),
      )
    }),
  )
}

/** Where the deletions stood; where tombstones were not wanted before, at the cursor of the reviews. */
const deletionsBefore = ({ state, syncMode }: Demand<ReviewItem>): O.Option<unknown> => {
  if (O.isNone(state) || syncMode === 'full_refresh' || !t.UnknownRecord.is(state.value)) return O.none
  const { deletions, scan } = state.value
  return scan === undefined || deletions !== undefined ? O.some(deletions ?? cursorOf(state.value)) : O.none
}

const cursorOf = ({ modifiedTimeFrom }: { readonly modifiedTimeFrom?: unknown }): unknown => ({ modifiedTimeFrom })

const readDeletions = (
  source: Source,
  own: Demand<ReviewItem>,
  before: O.Option<unknown>,
): TaskEither<Failure, Deletions> => {
  const held = new Map<string, number>()
  if (O.isNone(before)) return TE.right({ held, state: undefined })
  let state: unknown
  const project = ({ id, modifiedTime }: Cut) => {
    held.set(id, Math.max(modifiedTime, held.get(id) ?? 0))
    return []
  }
  return pipe(
    deletionExport.read(source)([{ ...own, state: before, attributes: O.none, project }]),
    drain((reading) => {
      if (reading._tag === 'Failed') return TE.left(reading.failure)
      if (reading._tag === 'Checkpoint') state = reading.state()
      return TE.right(undefined)
    }),
    TE.map(() => ({ held, state })),
  )
}

/** A review that was modified after its deletion was restored, and lives. */
const outliving =
  ({ held }: Deletions, item: typeof reviewOperation.item) =>
  (source: Source) => {
    const toItem = item(source)
    return (cut: Cut): ReviewItem => {
      const deleted = held.get(cut.id)
      if (deleted !== undefined && cut.modifiedTime > deleted) held.delete(cut.id)
      return toItem(cut)
    }
  }

const tombstone = (id: string, time: number, deletedAt: DeletedAt, attributes: ReadonlyArray<string>) => {
  const at = toInstant(time)
  const empty = Object.fromEntries(attributes.map((name) => [name, null]))
  return toRow({ ...empty, id: BigInt(id), modifiedTime: at, [deletedAt]: at })
}
