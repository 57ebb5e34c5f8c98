import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as t from 'io-ts'
import { cutter, type Sheet } from '../../api/cut'
import { toFailure } from '../../api/error'
import { printJson } from '../../api/json-text'
import { described, optional } from '../../api/model/scalar'
import type { Failure } from '../../cdk/failure'
import { oneOfWords } from '../../cdk/settings'
import type { Resource, Source } from '../source'
import type { Entity } from './entity'
import type { Listing } from './listing'

/** Whose record it is: under which identifier it was asked for. */
export const OfEntity = t.intersection([
  t.type({
    entityType: described('Identifier family it was asked for by: person, location or entity')(
      oneOfWords('person', 'location', 'entity'),
    ),
    entityId: described('The identifier it was asked for by')(t.string),
  }),
  optional({ entityName: described('Display name of the entity')(t.string) }),
])

/** The records of a listing, and the paths of attributes in them that nobody declared. */
export type Records = (
  source: Source,
) => (entity: Entity, listing: Listing) => E.Either<Failure, Pick<Sheet, 'rows' | 'unknown'>>

/** Records of a listing, through the same check as an export: wrong values leave as null, unknown ones as the config has it. */
export const recordsOf =
  (declared: {
    readonly resource: Resource
    /** The operation, as it is called in messages. */
    readonly name: string
    /** The records, as they are called in messages. */
    readonly list: string
    readonly codec: t.Any
    readonly key: string
    readonly cursor: string
  }): Records =>
  (source) => {
    const cut = cutter({ ...declared, undeclared: source.onUnknown, actions: source.actions[declared.resource] ?? {} })
    return ({ kind, id }, { name, rows }) => {
      const own = ofEntity(kind, id, name)
      return pipe(
        cut(Buffer.from(printJson({ [declared.list]: rows.map((row) => ({ ...own, ...row, ...own })) }))),
        E.mapLeft((error) => toFailure(declared.name, error)),
      )
    }
  }

const ofEntity = (entityType: Entity['kind'], entityId: string, name: unknown) => ({
  entityType,
  entityId,
  ...(typeof name === 'string' ? { entityName: name } : {}),
})
