import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as O from 'fp-ts/Option'
import * as t from 'io-ts'
import { type ApiError, describeAttribute, maskCode, optionalAttributes, toFailure } from '../../api'
import { enumField, type Failure, printExactJson, type ReaderEvent } from '../../cdk'
import { type CutPage, createCutter } from '../../export'
import type { ResourceName, SourceEnv } from '../source-env'
import { warningEvent } from '../warnings'
import { type Entity, entityKey } from './entities'
import type { EntityFeedback } from './page'
import type { FeedbackDefinition } from './reader'
import type { PartitionRows, PartitionTracker } from './state'
import type { EntityResult } from './window'

/** Whose record it is: under which identifier it was asked for. */
export const EntityColumns = t.intersection([
  t.type({
    entityType: describeAttribute('Identifier family it was asked for by: person, location or entity')(
      enumField('person', 'location', 'entity'),
    ),
    entityId: describeAttribute('The identifier it was asked for by')(t.string),
  }),
  optionalAttributes({ entityName: describeAttribute('Display name of the entity')(t.string) }),
])

/** The records of a listing, and the paths of attributes in them that nobody declared. */
export type RecordBuilder = (
  source: SourceEnv,
) => (entity: Entity, listing: EntityFeedback) => E.Either<Failure, Pick<CutPage, 'rows' | 'unknownPaths'>>

/** Records of a listing, through the same check as an export: wrong values leave as null, unknown ones as the config has it. */
export const createRecordBuilder =
  (declared: {
    readonly resource: ResourceName
    /** The operation, as it is called in messages. */
    readonly name: string
    /** The records, as they are called in messages. */
    readonly list: string
    readonly codec: t.Any
    readonly primaryKey: string
    readonly cursor: string
  }): RecordBuilder =>
  (source) => {
    const cut = createCutter({
      ...declared,
      undeclared: source.onUnknown,
      actions: source.actions[declared.resource] ?? {},
    })
    return ({ kind, id }, { name, rows }) => {
      const own = toEntityColumns(kind, id, name)
      return pipe(
        cut(Buffer.from(printExactJson({ [declared.list]: rows.map((row) => ({ ...own, ...row, ...own })) }))),
        E.mapLeft((error) => toFailure(declared.name, error)),
      )
    }
  }

const toEntityColumns = (entityType: Entity['kind'], entityId: string, name: unknown) => ({
  entityType,
  entityId,
  ...(typeof name === 'string' ? { entityName: name } : {}),
})

/** What a part of an entity brought. */
export type EntityRows = PartitionRows & { readonly entity: Entity; readonly notes: ReadonlyArray<ReaderEvent> }

/** Turns parts into rows. An entity that is refused stays where it stood; what is worth a warning is said once. */
export const toRows = (
  { name, records }: Pick<FeedbackDefinition, 'name' | 'records'>,
  source: SourceEnv,
  entities: ReadonlyArray<Entity>,
  begin: (entity: Entity) => PartitionTracker,
) => {
  const byKey = new Map(entities.map((entity) => [entityKey(entity), entity]))
  const open = new Map<string, PartitionTracker>()
  const said = new Set<string>()
  const once = (message: string): ReadonlyArray<ReaderEvent> => {
    if (said.has(message)) return []
    said.add(message)
    return [warningEvent(message)]
  }
  const cut = records(source)
  return (part: EntityResult, until: number | undefined): E.Either<Failure, EntityRows> => {
    const entity = byKey.get(entityKey(part)) as Entity
    const key = entityKey(entity)
    const nothing: EntityRows = { entity, rows: [], partition: O.none, notes: [] }
    if (said.has(key)) return E.right(nothing)
    if (E.isLeft(part.feedback)) {
      said.add(key)
      open.delete(key)
      return E.right({ ...nothing, notes: [refusalWarning(name, part, part.feedback.left)] })
    }
    const progress = open.get(key) ?? begin(entity)
    if (part.to === undefined) open.delete(key)
    else open.set(key, progress)
    const listing = part.feedback.right
    return pipe(
      listing === undefined ? E.right({ rows: [], unknownPaths: [] }) : cut(entity, listing),
      E.map(({ rows, unknownPaths }) => ({
        entity,
        ...progress(rows, part.to, until ?? Number.POSITIVE_INFINITY),
        notes: unknownPaths.flatMap((path) =>
          once(`The service sent an attribute this version does not know: ${path}.`),
        ),
      })),
    )
  }
}

const refusalReason = (error: ApiError): string =>
  error._tag === 'Application'
    ? `application error, code ${maskCode(error.code)}`
    : error._tag === 'Decode'
      ? error.message
      : '404'

const refusalWarning = (operation: string, { kind, id }: EntityResult, error: ApiError): ReaderEvent =>
  warningEvent(
    `${operation}: the service refuses ${kind} ${id} (${refusalReason(error)}). It stays as it is and is asked for again in the next run; if it no longer exists, take it out of entities.`,
  )
