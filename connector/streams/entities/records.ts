import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as O from 'fp-ts/Option'
import * as TE from 'fp-ts/TaskEither'
import * as t from 'io-ts'
import { type ApiError, describeApplicationError, describeAttribute, optionalAttributes, toFailure } from '../../api'
import { enumField, type Failure, printExactJson, type ReaderEvent } from '../../cdk'
import { type CutPage, createCutter } from '../../export'
import type { ResourceName, SourceEnv } from '../source-env'
import { collectUnknownAttributes } from '../unknown-attributes'
import { warningEvent } from '../warnings'
import {
  concernsEntity,
  type EntityOperation,
  type EntityRequest,
  type EntityResult,
  type EntityRows,
  type FetchEntities,
} from './answer'
import { type Entity, entityKey } from './selection'
import type { TakenRows, TakeRows } from './tracker'

/** The entity of a record, under the identifier with which it was requested. */
export const EntityColumns = t.intersection([
  t.type({
    entityType: describeAttribute('Identifier family of the entity: person, location or entity (a roll-up)')(
      enumField('person', 'location', 'entity'),
    ),
    entityId: describeAttribute('Identifier used to request the entity')(t.string),
  }),
  optionalAttributes({ entityName: describeAttribute('Display name of the entity')(t.string) }),
])

/** Makes records of an entity's rows. Also returns the paths of undeclared attributes. */
export type RecordBuilder = (
  source: SourceEnv,
) => (entity: Entity, answer: EntityRows) => E.Either<Failure, Pick<CutPage, 'rows' | 'unknownPaths'>>

/**
 * Checks records like those of an export: wrong values become null, and undeclared attributes are handled as
 * configured.
 */
export const createRecordBuilder =
  (declared: {
    readonly resource: ResourceName
    /** The operation's name in messages. */
    readonly name: string
    /** The name of the records in messages. */
    readonly list: string
    readonly codec: t.Any
    readonly primaryKey: string
    readonly cursor: string
  }): RecordBuilder =>
  (source) => {
    const cutPage = createCutter({
      ...declared,
      undeclared: source.onUnknown,
      actions: source.actions[declared.resource] ?? {},
    })
    return ({ kind, id }, { name, rows }) => {
      const columns = toEntityColumns(kind, id, name)
      const page = { [declared.list]: rows.map((row) => ({ ...columns, ...row, ...columns })) }
      return pipe(
        cutPage(Buffer.from(printExactJson(page))),
        E.mapLeft((error) => toFailure(declared.name, error)),
      )
    }
  }

const toEntityColumns = (entityType: Entity['kind'], entityId: string, name: unknown) => ({
  entityType,
  entityId,
  ...(typeof name === 'string' ? { entityName: name } : {}),
})

/** Merges the blocks of an answer about one entity, with each row once. */
const joinBlocks = (key: string, id: string, blocks: ReadonlyArray<EntityRows>): EntityRows => {
  const seen = new Set<string>()
  const rows = blocks.flatMap((block) => {
    const fresh = block.rows.filter((row) => !seen.has(String(row[key])))
    for (const row of fresh) seen.add(String(row[key]))
    return fresh
  })
  const { name } = blocks.find((block) => block.id === id) ?? blocks[0] ?? {}
  // NaN if one of the blocks does not give its number of pages.
  const pages = Math.max(...blocks.map((block) => block.pages ?? Number.NaN))
  return { id, name, rows, ...(Number.isNaN(pages) ? {} : { pages }) }
}

/**
 * Fetches pages with one block per entity, although the specification allows several. An answer about one entity is
 * about it under whatever ids, such as those of a roll-up's members. What it lists of another person or location in
 * `all` is left out: that one is requested separately.
 */
export const withJoinedBlocks = (
  { key }: Pick<EntityOperation, 'key'>,
  fetch: FetchEntities,
  all: ReadonlyArray<Entity>,
): FetchEntities => {
  const keys = new Set(all.map(entityKey))
  const joinEntities = (
    { kind, ids: [id = '', ...others] }: EntityRequest,
    entities: ReadonlyArray<EntityRows>,
  ): ReadonlyArray<EntityRows> => {
    if (others.length === 0) {
      const own = entities.filter((one) => kind === 'entity' || one.id === id || !keys.has(entityKey({ ...one, kind })))
      return entities.length < 2 ? entities : [joinBlocks(key, id, own.length > 0 ? own : entities)]
    }
    const ids = new Set(entities.map((block) => block.id))
    return ids.size === entities.length
      ? entities
      : [...ids].map((each) =>
          joinBlocks(
            key,
            each,
            entities.filter((block) => block.id === each),
          ),
        )
  }
  return (request) =>
    pipe(
      fetch(request),
      TE.map((page) => ({ ...page, entities: joinEntities(request, page.entities) })),
    )
}

/** The rows of an entity's window, its state after it, and its warnings. */
type TrackedRows = TakenRows & { readonly entity: Entity; readonly notes: ReadonlyArray<ReaderEvent> }

/**
 * Turns entity results into rows. A refused entity gives none and keeps its state; each warning is given once. An
 * entity that no answer lists keeps its state too: the service may hide it below a threshold, and list it with its
 * older rows in a later run.
 */
export const toRows = (
  { name, records }: { readonly name: string; readonly records: RecordBuilder },
  source: SourceEnv,
  entities: ReadonlyArray<Entity>,
  startEntity: (entity: Entity) => TakeRows,
) => {
  const byKey = new Map(entities.map((entity) => [entityKey(entity), entity]))
  /** The entities that have windows left. */
  const started = new Map<string, TakeRows>()
  const refusedKeys = new Set<string>()
  const listedKeys = new Set<string>()
  const nameUnknown = collectUnknownAttributes()
  const buildRecords = records(source)
  return (result: EntityResult, cutoff: number | undefined): E.Either<Failure, TrackedRows> => {
    const key = entityKey(result)
    const entity = byKey.get(key) as Entity
    const noRows: TrackedRows = { entity, rows: [], entityState: O.none, notes: [] }
    if (refusedKeys.has(key)) return E.right(noRows)
    if (E.isLeft(result.answer)) {
      refusedKeys.add(key)
      started.delete(key)
      return E.right({ ...noRows, notes: [refusalWarning(name, result, result.answer.left)] })
    }
    const takeRows = started.get(key) ?? startEntity(entity)
    if (result.scroll?.isEnd ?? result.to === undefined) started.delete(key)
    else started.set(key, takeRows)
    const answer = result.answer.right
    if (answer !== undefined) listedKeys.add(key)
    return pipe(
      answer === undefined ? E.right({ rows: [], unknownPaths: [] }) : buildRecords(entity, answer),
      E.map(({ rows, unknownPaths }) => ({
        entity,
        ...takeRows(rows, result, cutoff ?? Number.POSITIVE_INFINITY),
        ...(listedKeys.has(key) ? {} : { entityState: O.none }),
        notes: nameUnknown(unknownPaths).map(warningEvent),
      })),
    )
  }
}

const refusalReason = (error: ApiError): string =>
  error._tag === 'Application'
    ? describeApplicationError(error)
    : error._tag === 'Http'
      ? String(error.status)
      : 'message' in error
        ? error.message
        : error._tag

const refusalWarning = (operation: string, { kind, id }: EntityResult, error: ApiError): ReaderEvent =>
  warningEvent(
    concernsEntity(error)
      ? `${operation}: the service refuses ${kind} ${id} (${refusalReason(error)}). Its state does not ` +
          'change and the next run asks for it again; if it no longer exists, remove it from entities.'
      : `${operation}: ${kind} ${id} cannot be read completely: ${refusalReason(error)}. ` +
          'Its state stays where it is and the next run asks again.',
  )
