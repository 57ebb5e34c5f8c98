import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as O from 'fp-ts/Option'
import * as TE from 'fp-ts/TaskEither'
import * as t from 'io-ts'
import { describeAttribute, EntitySummary, optionalAttributes } from '../../api'
import {
  chainEffect,
  concatFeed,
  defined,
  defineStream,
  type Failure,
  type Feed,
  feedOf,
  flatMapFeedEither,
  printExactJson,
  type Reader,
  type ReaderEvent,
  type Row,
  type StreamRequest,
} from '../../cdk'
import { selectAttributes, UnknownAttributes } from '../record'
import type { SourceEnv } from '../source-env'
import { noEntitiesWarning } from '../warnings'
import { withConsistencyCheck } from './consistency'
import { type EntitySelection, entityKey, readWithEntities } from './entities'
import type { FeedbackOperation } from './page'
import { groupEntities } from './reader'
import { createRecordBuilder, EntityColumns, type RecordBuilder, toRows } from './records'
import { decodeFeedbackState, emptyFeedbackState, encodeFeedbackState } from './state'
import { readWindows, type WindowResults } from './window-reader'

const [, Summary] = EntitySummary.types
const { name: _name, ...summaryProps } = Summary.props

/** What is known of an entity as a whole (Resources, EntitySummary). */
export const EntityRating = t.intersection(
  [
    EntityColumns,
    t.partial(summaryProps),
    optionalAttributes({
      VendorSealOfIntegrity: describeAttribute('As it came, as JSON text: its type and content are not shown')(
        t.string,
      ),
    }),
    UnknownAttributes,
  ],
  'EntityRating',
)

/** Operation 2 for one entity, operation 3 for many, without their comments. */
const summaryOperation: FeedbackOperation = {
  name: 'retrieve summaries',
  maxIdentifiers: 50,
  firstPage: 1,
  key: 'id',
  createFetch: (source) => (request) => {
    const { thresholds, days } = source.feedback
    const filters = { ...thresholds, days, showComments: false, showRatings: true, page: 1, perPage: 1 }
    const [only = ''] = request.ids
    return pipe(
      request.ids.length === 1
        ? source.api.retrieveComments({ ...filters, [`${request.kind}Id`]: only })
        : source.api.retrieveCommentsByForm({ ...filters, [`${request.kind}Id`]: request.ids }),
      TE.map(({ data, servedAt }) => ({
        entities: data.entities.map((entity) => ({ id: entity.id, name: entity.name, rows: [entity] })),
        perPage: Number.POSITIVE_INFINITY,
        ...defined({ servedAt }),
      })),
    )
  },
}

const buildRatingRecords: RecordBuilder = (source) => {
  const cut = createRecordBuilder({
    resource: 'entity_ratings',
    name: summaryOperation.name,
    list: 'entities',
    codec: EntityRating,
    primaryKey: '',
    cursor: '',
  })(source)
  return (entity, listing) => cut(entity, { ...listing, rows: listing.rows.map(toSummary) })
}

const toSummary = ({
  id: _id,
  name: _name,
  comments: _comments,
  reviews: _reviews,
  totalPages: _totalPages,
  VendorSealOfIntegrity: seal,
  ...summary
}: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> => ({
  ...summary,
  VendorSealOfIntegrity: seal === undefined || seal === null ? null : printExactJson(seal),
})

const ratingReader: Reader<SourceEnv, Row> = {
  name: summaryOperation.name,
  read: (source) => (demands) => {
    const [demand] = demands
    if (demand === undefined) return feedOf()
    return chainEffect(TE.fromEither(decodeFeedbackState(demand.stream, demand.state)), (state) =>
      readWithEntities(source, demand, state, (found) => readSummaries(source, demand, found)),
    )
  },
}

const readSummaries = (
  source: SourceEnv,
  { stream, attributes }: StreamRequest<Row>,
  found: EntitySelection,
): Feed<Failure, ReaderEvent> => {
  const { entities, reviews } = found
  const partitions = Object.fromEntries(
    entities.flatMap((one) => (one.isFromReviews ? [[entityKey(one), { seen: true }]] : [])),
  )
  const last: ReaderEvent = {
    _tag: 'Checkpoint',
    stream,
    state: () => encodeFeedbackState(source.now(), { ...emptyFeedbackState, partitions, reviews }),
  }
  if (entities.length === 0) return feedOf<Failure, ReaderEvent>(E.right(noEntitiesWarning(stream)), E.right(last))
  const select = selectAttributes(attributes)
  const take = toRows({ name: summaryOperation.name, records: buildRatingRecords }, source, entities, () => (rows) => ({
    rows,
    partition: O.none,
  }))
  const toReadings = ({ parts, cutoff, notes }: WindowResults): E.Either<Failure, ReadonlyArray<ReaderEvent>> =>
    pipe(
      parts,
      E.traverseArray((part) => take(part, cutoff)),
      E.map((taken) => [
        ...notes.map((note): ReaderEvent => ({ _tag: 'Note', ...note })),
        ...taken.flatMap((one) => one.notes),
        { _tag: 'Rows', stream, rows: taken.flatMap((one) => one.rows.map(select)) },
      ]),
    )
  return pipe(
    readWindows(
      {
        operation: summaryOperation,
        fetch: withConsistencyCheck(summaryOperation.createFetch(source)),
        now: source.now,
        concurrency: source.concurrency,
      },
      groupEntities(summaryOperation, entities, () => 0),
    ),
    flatMapFeedEither(toReadings),
    concatFeed(() => feedOf<Failure, ReaderEvent>(E.right(last))),
  )
}

export const entityRatingsStream = defineStream({
  name: 'entity_ratings',
  codec: EntityRating,
  primaryKey: ['entityType', 'entityId'],
  reader: ratingReader,
  project: (row: Row) => [row],
})
