import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as t from 'io-ts'
import { type CutPage, createCutter } from '../../api/cut'
import { toFailure } from '../../api/error'
import { printExactJson } from '../../api/json-text'
import { describeAttribute, optionalAttributes } from '../../api/model/scalar'
import type { Failure } from '../../cdk/failure'
import { enumField } from '../../cdk/settings'
import type { ResourceName, SourceEnv } from '../source'
import type { Entity } from './entity'
import type { EntityListing } from './listing'

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
) => (entity: Entity, listing: EntityListing) => E.Either<Failure, Pick<CutPage, 'rows' | 'unknownPaths'>>

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
