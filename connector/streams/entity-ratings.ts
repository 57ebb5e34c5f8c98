import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as O from 'fp-ts/Option'
import * as TE from 'fp-ts/TaskEither'
import * as t from 'io-ts'
import { printJson } from '../api/json-text'
import { EntitySummary } from '../api/model/entity'
import { described, optional } from '../api/model/scalar'
import type { Failure } from '../cdk/failure'
import { andThen, chainEither, type Feed, following, items } from '../cdk/feed'
import type { Row } from '../cdk/message'
import { type Demand, type Reader, type Reading, stream } from '../cdk/stream'
import { type Found, keyOf, withEntities } from './entities/entity'
import { gathering } from './entities/gathering'
import { heeding } from './entities/heed'
import type { Operation } from './entities/listing'
import { nobody } from './entities/notes'
import { tasksOf } from './entities/reader'
import { OfEntity, type Records, recordsOf } from './entities/records'
import { noState, readState, writeState } from './entities/state'
import { type Outcome, readWindows } from './entities/windows'
import { selecting } from './selecting'
import type { Source } from './source'
import { Unknown } from './unknown'

const [, Summary] = EntitySummary.types
const { name: _name, ...summaryProps } = Summary.props

/** What is known of an entity as a whole (Resources, EntitySummary). */
export const EntityRating = t.intersection(
  [
    OfEntity,
    t.partial(summaryProps),
    optional({
      VendorSealOfIntegrity: described('As it came, as JSON text: its type and content are not shown')(t.string),
    }),
    Unknown,
  ],
  'EntityRating',
)

/** Operation 2 for one entity, operation 3 for many, without their comments. */
const summaries: Operation = {
  name: 'retrieve summaries',
  most: 50,
  firstPage: 1,
  key: 'id',
  ask: (source) => (request) => {
    const { thresholds, days } = source.feedback
    const filters = { ...thresholds, days, showComments: false, showRatings: true, page: 1, perPage: 1 }
    const [only = ''] = request.ids
    return pipe(
      request.ids.length === 1
        ? source.api.retrieveComments({ ...filters, [`${request.kind}Id`]: only })
        : source.api.retrieveCommentsByForm({ ...filters, [`${request.kind}Id`]: request.ids }),
      TE.map(({ data, servedAt }) => ({
        listings: data.entities.map((entity) => ({ id: entity.id, name: entity.name, rows: [entity] })),
        perPage: Number.POSITIVE_INFINITY,
        ...(servedAt === undefined ? {} : { servedAt }),
      })),
    )
  },
}

const records: Records = (source) => {
  const cut = recordsOf({
    resource: 'entity_ratings',
    name: summaries.name,
    list: 'entities',
    codec: EntityRating,
    key: '',
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
  VendorSealOfIntegrity: seal === undefined || seal === null ? null : printJson(seal),
})

const ratingReader: Reader<Source, Row> = {
  name: summaries.name,
  read: (source) => (demands) => {
    const [demand] = demands
    if (demand === undefined) return items()
    return following(TE.fromEither(readState(demand.stream, demand.state)), (state) =>
      withEntities(source, demand, state, (found) => readSummaries(source, demand, found)),
    )
  },
}

const readSummaries = (source: Source, { stream, attributes }: Demand<Row>, found: Found): Feed<Failure, Reading> => {
  const { entities, reviews } = found
  const partitions = Object.fromEntries(entities.flatMap((one) => (one.seen ? [[keyOf(one), { seen: true }]] : [])))
  const last: Reading = {
    _tag: 'Checkpoint',
    stream,
    state: () => writeState(source.now(), { ...noState, partitions, reviews }),
  }
  if (entities.length === 0) return items<Failure, Reading>(E.right(nobody(stream)), E.right(last))
  const select = selecting(attributes)
  const take = gathering({ name: summaries.name, records }, source, entities, () => (rows) => ({
    rows,
    standing: O.none,
  }))
  const toReadings = ({ parts, until, notes }: Outcome): E.Either<Failure, ReadonlyArray<Reading>> =>
    pipe(
      parts,
      E.traverseArray((part) => take(part, until)),
      E.map((taken) => [
        ...notes.map((note): Reading => ({ _tag: 'Note', ...note })),
        ...taken.flatMap((one) => one.notes),
        { _tag: 'Rows', stream, rows: taken.flatMap((one) => one.rows.map(select)) },
      ]),
    )
  return pipe(
    readWindows(
      { operation: summaries, fetch: heeding(summaries.ask(source)), now: source.now, concurrency: source.concurrency },
      tasksOf(summaries, entities, () => 0),
    ),
    chainEither(toReadings),
    andThen(() => items<Failure, Reading>(E.right(last))),
  )
}

export const entityRatings = stream({
  name: 'entity_ratings',
  codec: EntityRating,
  primaryKey: ['entityType', 'entityId'],
  reader: ratingReader,
  project: (row: Row) => [row],
})
