import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as O from 'fp-ts/Option'
import * as TE from 'fp-ts/TaskEither'
import * as t from 'io-ts'
import { type ApiError, toFailure } from '../api/error'
import { configFailure, type Failure } from '../cdk/failure'
import { following, items } from '../cdk/feed'
import type { Row } from '../cdk/message'
import type { Reader, Reading, Stream } from '../cdk/stream'
import { toRow } from './review-item'
import { selecting } from './selecting'
import type { Source } from './source'

/** Where a lookup's records stand in its answer, a dotted path, and which attribute is their key (Endpoints 8: not shown). */
export type Lookup = { readonly recordsPath: string; readonly primaryKey: string }
export type LookupName = 'sources' | 'categories'

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

const lookupReader = (name: LookupName, lookup: Lookup): Reader<Source, Row> => ({
  name: `look up ${name}`,
  read: (source) => (demands) => {
    const [demand] = demands
    if (demand === undefined) return items()
    const select = selecting(demand.attributes)
    return following(
      pipe(
        source.api[operations[name]]({}),
        TE.mapLeft((error: ApiError) => toFailure(`look up ${name}`, error)),
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

const rowsIn = (
  name: LookupName,
  { recordsPath, primaryKey }: Lookup,
  answer: unknown,
): E.Either<Failure, ReadonlyArray<Row>> => {
  const at = recordsPath
    .split('.')
    .filter((key) => key !== '')
    .reduce<unknown>((value, key) => (t.UnknownRecord.is(value) ? value[key] : undefined), answer)
  if (!Array.isArray(at))
    return E.left(configFailure(`lookups.${name}.records_path: the answer holds no array at ${recordsPath}.`))
  return pipe(
    at as ReadonlyArray<unknown>,
    E.traverseArray((record) => {
      if (!t.UnknownRecord.is(record))
        return E.left(
          configFailure(`lookups.${name}.records_path: what stands at ${recordsPath} is no list of objects.`),
        )
      const { [primaryKey]: key, ...rest } = record
      return ['string', 'number', 'bigint'].includes(typeof key)
        ? E.right(toRow({ [primaryKey]: String(key), record: rest }))
        : E.left(configFailure(`lookups.${name}.primary_key: a record has no ${primaryKey} that can be a key.`))
    }),
  )
}
