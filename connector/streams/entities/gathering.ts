import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as O from 'fp-ts/Option'
import { type ApiError, codeOf } from '../../api/error'
import type { Failure } from '../../cdk/failure'
import type { Reading } from '../../cdk/stream'
import type { Source } from '../source'
import { type Entity, keyOf } from './entity'
import { warn } from './notes'
import type { Progress, Taken } from './progress'
import type { Feedback } from './reader'
import type { Part } from './settle'

/** What a part of an entity brought. */
export type Gathered = Taken & { readonly entity: Entity; readonly notes: ReadonlyArray<Reading> }

/** Turns parts into rows. An entity that is refused stays where it stood; what is worth a warning is said once. */
export const gathering = (
  { name, records }: Pick<Feedback, 'name' | 'records'>,
  source: Source,
  entities: ReadonlyArray<Entity>,
  begin: (entity: Entity) => Progress,
) => {
  const byKey = new Map(entities.map((entity) => [keyOf(entity), entity]))
  const open = new Map<string, Progress>()
  const said = new Set<string>()
  const once = (message: string): ReadonlyArray<Reading> => {
    if (said.has(message)) return []
    said.add(message)
    return [warn(message)]
  }
  const cut = records(source)
  return (part: Part, until: number | undefined): E.Either<Failure, Gathered> => {
    const entity = byKey.get(keyOf(part)) as Entity
    const key = keyOf(entity)
    const nothing: Gathered = { entity, rows: [], standing: O.none, notes: [] }
    if (said.has(key)) return E.right(nothing)
    if (E.isLeft(part.listing)) {
      said.add(key)
      open.delete(key)
      return E.right({ ...nothing, notes: [refused(name, part, part.listing.left)] })
    }
    const progress = open.get(key) ?? begin(entity)
    if (part.to === undefined) open.delete(key)
    else open.set(key, progress)
    const listing = part.listing.right
    return pipe(
      listing === undefined ? E.right({ rows: [], unknown: [] }) : cut(entity, listing),
      E.map(({ rows, unknown }) => ({
        entity,
        ...progress(rows, part.to, until ?? Number.POSITIVE_INFINITY),
        notes: unknown.flatMap((path) => once(`The service sent an attribute this version does not know: ${path}.`)),
      })),
    )
  }
}

const reasonOf = (error: ApiError): string =>
  error._tag === 'Application'
    ? `application error, code ${codeOf(error.code)}`
    : error._tag === 'Decode'
      ? error.message
      : '404'

const refused = (operation: string, { kind, id }: Part, error: ApiError): Reading =>
  warn(
    `${operation}: the service refuses ${kind} ${id} (${reasonOf(error)}). It stays as it is and is asked for again in the next run; if it no longer exists, take it out of entities.`,
  )
