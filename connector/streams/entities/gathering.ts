import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as O from 'fp-ts/Option'
import { type ApiError, maskCode } from '../../api/error'
import type { Failure } from '../../cdk/failure'
import type { ReaderEvent } from '../../cdk/stream'
import type { SourceEnv } from '../source'
import { type Entity, entityKey } from './entity'
import { warningEvent } from './notes'
import type { PartitionRows, PartitionTracker } from './progress'
import type { FeedbackDefinition } from './reader'
import type { EntityResult } from './settle'

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
    if (E.isLeft(part.listing)) {
      said.add(key)
      open.delete(key)
      return E.right({ ...nothing, notes: [refusalWarning(name, part, part.listing.left)] })
    }
    const progress = open.get(key) ?? begin(entity)
    if (part.to === undefined) open.delete(key)
    else open.set(key, progress)
    const listing = part.listing.right
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
