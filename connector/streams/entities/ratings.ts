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
import { selectAttributes } from '../attributes'
import { type SourceEnv, toThresholds } from '../source-env'
import { UnknownAttributes } from '../unknown-attributes'
import { noEntitiesWarning, warningEvent } from '../warnings'
import type { EntityOperation, EntityRows, FetchEntities } from './answer'
import { groupEntities } from './groups'
import { createRecordBuilder, EntityColumns, type RecordBuilder, toRows } from './records'
import { type RunResults, readEntities } from './run'
import { type Entity, type EntitySelection, entityKey, keyAfter, readWithEntities, rotateEntities } from './selection'
import { decodeEntityState, type EntityStates, emptyEntityState, encodeEntityState } from './state'

const [, Summary] = EntitySummary.types
const { name: _name, ...summaryProps } = Summary.props

/** A record of `entity_ratings`: the service's summary of an entity. */
export const EntityRating = t.intersection(
  [
    EntityColumns,
    t.partial(summaryProps),
    optionalAttributes({
      VendorSealOfIntegrity: describeAttribute(
        'The value as JSON text: the specification gives neither its type nor its content',
      )(t.string),
    }),
    UnknownAttributes,
  ],
  'EntityRating',
)

/** The summaries of operation 2 for one entity and of operation 3 for many, without the comments. */
const summaryOperation: EntityOperation = {
  name: 'retrieve summaries',
  maxIdentifiers: 50,
  firstPage: 1,
  key: 'id',
  createFetch: (source) => (request) => {
    const { days } = source.feedback
    const filters = {
      ...toThresholds(source.feedback),
      days,
      showComments: false,
      showRatings: true,
      page: 1,
      perPage: 1,
    }
    const [id = '', ...others] = request.ids
    return pipe(
      others.length === 0
        ? source.api.retrieveComments({ ...filters, [`${request.kind}Id`]: id })
        : source.api.retrieveCommentsByForm({ ...filters, [`${request.kind}Id`]: request.ids }),
      TE.map(({ data, servedAt }) => ({
        entities: data.entities.map((entity) => ({ id: entity.id, name: entity.name, rows: [entity] })),
        perPage: Number.POSITIVE_INFINITY,
        ...defined({ servedAt }),
      })),
    )
  },
}

/**
 * Attributes of a summary that must agree in all blocks of an id. The others may be keyed by name, or belong to
 * comments.
 */
const comparedNames = new Set([...Object.keys(Summary.props), 'VendorSealOfIntegrity'])

/** Merges the blocks of one id: all their ratings, and the first value of every other attribute. */
const joinBlocks = (
  blocks: EntityRows['rows'],
  onConflict: (attribute: string) => void,
): EntityRows['rows'][number] => {
  const joined = new Map<string, unknown>()
  for (const [name, value] of blocks.flatMap((block) => Object.entries(block))) {
    const first = joined.get(name)
    if (first === undefined || first === null) joined.set(name, value)
    else if (name === 'ratings' && Array.isArray(first) && Array.isArray(value))
      joined.set(name, [...new Map([...first, ...value].map((rating) => [printExactJson(rating), rating])).values()])
    else if (comparedNames.has(name) && value !== null && printExactJson(value) !== printExactJson(first))
      onConflict(name)
  }
  return Object.fromEntries(joined)
}

/**
 * Fetches summaries with one for each id, although the specification allows several blocks. What an answer about one
 * entity lists besides it, such as the members of a roll-up, becomes rows under their own ids, unless `all` contains
 * them, so that they are requested anyway.
 */
const withJoinedSummaries = (
  fetch: FetchEntities,
  all: ReadonlyArray<Entity>,
  warn: (message: string) => void,
): FetchEntities => {
  const keys = new Set(all.map(entityKey))
  return (request) =>
    pipe(
      fetch(request),
      TE.map((page) => {
        const { kind, ids } = request
        const [id = '', ...others] = ids
        const entities = [...new Set(page.entities.map((one) => one.id))].map((each): EntityRows => {
          const blocks = page.entities.filter((one) => one.id === each)
          const conflicts = new Set<string>()
          const row = joinBlocks(
            blocks.flatMap(({ rows }) => rows),
            (attribute) => conflicts.add(attribute),
          )
          if (conflicts.size > 0)
            warn(
              `${summaryOperation.name}: the service lists ${kind} ${each} several times in one ` +
                `answer, with different values of ${[...conflicts].join(', ')}. The first ones are kept.`,
            )
          return { id: each, name: blocks[0]?.name, rows: [row] }
        })
        if (others.length > 0 || entities.length < 2) return { ...page, entities }
        const own = entities.filter((one) => one.id === id || !keys.has(entityKey({ kind, id: one.id })))
        return { ...page, entities: [{ id, name: undefined, rows: own.flatMap(({ rows }) => rows) }] }
      }),
    )
}

/** Makes a record of each summary, under the requested id if it is the only one. */
const buildRatingRecords: RecordBuilder = (source) => {
  /** The ids of members already sent, since several roll-ups may list one. */
  const members = new Set<string>()
  const buildRecords = createRecordBuilder({
    resource: 'entity_ratings',
    name: summaryOperation.name,
    list: 'entities',
    codec: EntityRating,
    primaryKey: '',
    cursor: '',
  })(source)
  return (entity, answer) => {
    const summaries = answer.rows.flatMap((row) => {
      const id = answer.rows.length === 1 ? entity.id : String(row.id)
      const key = entityKey({ ...entity, id })
      if (id !== entity.id && members.has(key)) return []
      if (id !== entity.id) members.add(key)
      return [{ entity: { ...entity, id }, row }]
    })
    return pipe(
      summaries,
      E.traverseArray((one) => buildRecords(one.entity, { ...answer, name: one.row.name, rows: [toSummary(one.row)] })),
      E.map((pages) => ({
        rows: pages.flatMap(({ rows }) => rows),
        unknownPaths: pages.flatMap(({ unknownPaths }) => unknownPaths),
      })),
    )
  }
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
  read: (source) => (requests) => {
    const [request] = requests
    if (request === undefined) return feedOf()
    return chainEffect(TE.fromEither(decodeEntityState(request.stream, request.state)), (state) =>
      readWithEntities(source, request, state, (selection) => readSummaries(source, request, state.next, selection)),
    )
  },
}

/** What the state keeps of each entity found in the reviews. */
const seenEntityStates = (entities: ReadonlyArray<Entity>): EntityStates =>
  Object.fromEntries(entities.flatMap((entity) => (entity.isFromReviews ? [[entityKey(entity), { seen: true }]] : [])))

const readSummaries = (
  source: SourceEnv,
  { stream, attributes }: StreamRequest<Row>,
  first: string | undefined,
  { entities: allEntities, reviews }: EntitySelection,
): Feed<Failure, ReaderEvent> => {
  const entities = rotateEntities(allEntities, first)
  const groups = groupEntities(
    summaryOperation.maxIdentifiers,
    entities,
    () => 0,
    () => false,
  )
  /** `last`: the entities after which the next run begins. */
  const createCheckpoint = (last: Parameters<typeof keyAfter>[1] | undefined = groups[0]): ReaderEvent => ({
    _tag: 'Checkpoint',
    stream,
    state: () =>
      encodeEntityState(source.now(), {
        ...emptyEntityState,
        entityStates: seenEntityStates(allEntities),
        reviews,
        next: last && keyAfter(entities, last),
      }),
  })
  if (entities.length === 0)
    return feedOf<Failure, ReaderEvent>(E.right(noEntitiesWarning(stream)), E.right(createCheckpoint()))
  const select = selectAttributes(attributes)
  const warnings: string[] = []
  const reading = {
    operation: summaryOperation,
    fetch: withJoinedSummaries(summaryOperation.createFetch(source), entities, (message) => warnings.push(message)),
    now: source.now,
    concurrency: source.concurrency,
  }
  const resultToRows = toRows(
    { name: summaryOperation.name, records: buildRatingRecords },
    source,
    entities,
    // A summary has no cursor: all of it is sent, and the entity has no state.
    () => (rows) => ({ rows, entityState: O.none }),
  )
  const toEvents = ({ results, cutoff, notes, last }: RunResults): E.Either<Failure, ReadonlyArray<ReaderEvent>> =>
    pipe(
      results,
      E.traverseArray((result) => resultToRows(result, cutoff)),
      E.map((entityRows) => [
        ...notes.map((note): ReaderEvent => ({ _tag: 'Note', ...note })),
        ...entityRows.flatMap((each) => each.notes),
        ...warnings.splice(0).map(warningEvent),
        { _tag: 'Rows', stream, rows: entityRows.flatMap((each) => each.rows.map(select)) },
        createCheckpoint(last),
      ]),
    )
  return pipe(
    feedOf<Failure, ReaderEvent>(...(groups.length > 1 ? [E.right(createCheckpoint())] : [])),
    concatFeed(() => pipe(readEntities(reading, entities, groups), flatMapFeedEither(toEvents))),
    concatFeed(() => feedOf<Failure, ReaderEvent>(E.right(createCheckpoint()))),
  )
}

export const entityRatingsStream = defineStream({
  name: 'entity_ratings',
  codec: EntityRating,
  primaryKey: ['entityType', 'entityId'],
  reader: ratingReader,
  project: (row: Row) => [row],
})
