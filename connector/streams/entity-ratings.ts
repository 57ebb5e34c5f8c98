import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as TE from 'fp-ts/TaskEither'
import * as t from 'io-ts'
import { EntitySummary } from '../api/model/entity'
import { described, optional } from '../api/model/scalar'
import type { Failure } from '../cdk/failure'
import { andThen, chain, type Feed, following, items } from '../cdk/feed'
import type { Row } from '../cdk/message'
import { type Reader, type Reading, stream } from '../cdk/stream'
import { conforming } from './conforming'
import { findEntities, type Kind, keyOf } from './entities/entity'
import type { Operation } from './entities/listing'
import { nobody } from './entities/reader'
import { OfEntity, Unknown } from './entities/records'
import { readState, writeState } from './entities/state'
import { readWindows } from './entities/windows'
import { toRow } from './review-item'
import { selecting } from './selecting'
import type { Source } from './source'

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
      TE.map(({ data }) => ({
        listings: data.entities.map((entity) => ({ id: entity.id, name: entity.name, rows: [entity], pages: 1 })),
        perPage: 2,
      })),
    )
  },
}

const ratingReader: Reader<Source, Row> = {
  name: summaries.name,
  read: (source) => (demands) => {
    const [demand] = demands
    if (demand === undefined) return items()
    const select = selecting(demand.attributes)
    const conform = conforming(EntityRating, source.onUnknown)
    return following(
      pipe(
        TE.fromEither(readState(demand.stream, demand.state)),
        TE.flatMap((state) => findEntities(source, state)),
      ),
      ({ entities, reviews }) => {
        const seen = Object.fromEntries(entities.flatMap((one) => (one.seen ? [[keyOf(one), { seen: true }]] : [])))
        const state = () => writeState(source.now(), seen, reviews)
        const last = items<Failure, Reading>(E.right({ _tag: 'Checkpoint', stream: demand.stream, state }))
        if (entities.length === 0) return andThen(() => last)(items(E.right(nobody(demand.stream))))
        const readKind = (kind: Kind): Feed<Failure, Reading> =>
          pipe(
            readWindows(summaries, summaries.ask(source), [
              { kind, from: 0, to: 0, ids: entities.filter((one) => one.kind === kind).map(({ id }) => id) },
            ]),
            chain(({ whole }) => [
              {
                _tag: 'Rows' as const,
                stream: demand.stream,
                rows: whole.flatMap(({ id, listing }) =>
                  (listing?.rows ?? []).map((row) => select(conform(summaryOf(kind, id, row)))),
                ),
              },
            ]),
          )
        const kinds = [...new Set(entities.map(({ kind }) => kind))]
        return kinds.map(readKind).reduceRight<Feed<Failure, Reading>>((rest, feed) => andThen(() => rest)(feed), last)
      },
    )
  },
}

const summaryOf = (
  entityType: Kind,
  entityId: string,
  {
    id: _,
    name,
    comments: __,
    totalPages: ___,
    VendorSealOfIntegrity: seal,
    ...summary
  }: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> => ({
  entityType,
  entityId,
  entityName: name,
  ...summary,
  VendorSealOfIntegrity:
    seal === undefined || seal === null ? null : Buffer.from(toRow(seal as object).json).toString(),
})

export const entityRatings = stream({
  name: 'entity_ratings',
  codec: EntityRating,
  primaryKey: ['entityType', 'entityId'],
  reader: ratingReader,
  project: (row: Row) => [row],
})
