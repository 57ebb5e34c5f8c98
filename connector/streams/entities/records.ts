import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as t from 'io-ts'
import type { Action } from '../../api/cut'
import { cutter } from '../../api/cut'
import { toFailure } from '../../api/error'
import { printJson } from '../../api/json-text'
import { described, optional } from '../../api/model/scalar'
import type { Cut } from '../../api/page'
import { oneOfWords } from '../../cdk/settings'
import type { Source } from '../source'
import type { Feedback } from './reader'

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

/** What an undeclared attribute is collected in. */
export const Unknown = optional({
  unknown_attributes: described('Attributes the service sent that this version does not know, as they came')(
    t.UnknownRecord,
  ),
})

/** Records of a listing, through the same check as an export: wrong values leave as null, unknown ones as the config has it. */
export const recordsOf =
  (declared: {
    readonly name: string
    readonly codec: t.Any
    readonly key: string
    readonly cursor: string
    readonly actions?: Readonly<Record<string, Action>>
  }): Feedback['records'] =>
  (source: Source) => {
    const cut = cutter({ ...declared, list: 'rows', undeclared: source.onUnknown })
    return ({ kind, id }, { name, rows }) =>
      pipe(
        cut(
          Buffer.from(
            printJson({
              rows: rows.map((row) => ({
                ...row,
                entityType: kind,
                entityId: id,
                ...(typeof name === 'string' ? { entityName: name } : {}),
              })),
              filter: {},
            }),
          ),
        ),
        E.bimap(
          (error) => toFailure(declared.name, error),
          (sheet): ReadonlyArray<Cut> => sheet.rows,
        ),
      )
  }
