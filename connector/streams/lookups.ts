import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as O from 'fp-ts/Option'
import * as TE from 'fp-ts/TaskEither'
import { type ApiError, toFailure } from '../api/error'
import { configFailure, type Failure } from '../cdk/failure'
import { following, items } from '../cdk/feed'
import type { Row } from '../cdk/message'
import type { Reader, Reading, Stream } from '../cdk/stream'
import { type Lookup, type LookupName, rowsIn } from './lookups/rows'
import { selecting } from './selecting'
import type { Source } from './source'

const operations = { sources: 'lookupSources', categories: 'lookupCategories' } as const

/** A lookup as a stream: full refresh, its key as text and all else in one `record`, since its fields are not shown. */
export const lookupStream = (name: LookupName, lookup: Lookup): Stream<Source> => ({
  name,
  schema: {
    type: 'object',
    properties: {
      [lookup.primaryKey]: { type: 'string', description: 'Key of the record' },
      record: {
        type: ['null', 'object'],
        additionalProperties: true,
        description: 'The record as the service looked it up, without its key',
      },
    },
    required: [lookup.primaryKey],
    additionalProperties: true,
  },
  primaryKey: [lookup.primaryKey],
  cursor: O.none,
  syncModes: ['full_refresh'],
  reader: lookupReader(name, lookup) as Reader<Source, unknown>,
  projector: () => (row) => [row as Row],
})

/** Refuses a key that would stand where the rest of the record does; names that differ only in case are one to some destinations. */
export const checkLookups = (
  lookups: Partial<Readonly<Record<LookupName, Lookup>>>,
): E.Either<Failure, Partial<Readonly<Record<LookupName, Lookup>>>> => {
  const taken = (['sources', 'categories'] as const).find(
    (name) => lookups[name]?.primaryKey.toLowerCase() === 'record',
  )
  return taken === undefined
    ? E.right(lookups)
    : E.left(
        configFailure(
          `The config is wrong: lookups.${taken}.primary_key must not be record, which holds all else. Choose another attribute.`,
        ),
      )
}

/** Whether a stream is read from a lookup; the others of its name are made of reviews. */
export const isLookup = ({ reader: { name } }: Stream<Source>): boolean => name.startsWith('look up ')

const lookupReader = (name: LookupName, lookup: Lookup): Reader<Source, Row> => ({
  name: `look up ${name}`,
  read: (source) => (demands) => {
    const [demand] = demands
    if (demand === undefined) return items()
    const select = selecting(demand.attributes)
    return following(
      pipe(
        source.api[operations[name]]({}),
        TE.mapLeft((error) => failureOf(name, error)),
        TE.flatMapEither((answer) => rowsIn(name, lookup, answer)),
      ),
      (rows) =>
        items<Failure, Reading>(
          E.right({ _tag: 'Rows', stream: demand.stream, rows: rows.map(select) }),
          E.right({
            _tag: 'Checkpoint',
            stream: demand.stream,
            state: () => ({ readAt: new Date(source.now()).toISOString() }),
          }),
        ),
    )
  },
})

/** Where the operation is, is the config's word. */
const failureOf = (name: LookupName, error: ApiError): Failure =>
  error._tag === 'Http' && [404, 405].includes(error.status)
    ? configFailure(
        `lookups.${name}: the service answered ${error.status}. Check its path, which is appended to base_url, and its method.`,
        error.message,
      )
    : toFailure(`look up ${name}`, error)
