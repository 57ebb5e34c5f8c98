import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as O from 'fp-ts/Option'
import * as TE from 'fp-ts/TaskEither'
import { type ApiError, toFailure } from '../api/error'
import { configFailure, type Failure } from '../cdk/failure'
import { chainEffect, feedOf } from '../cdk/feed'
import type { Row } from '../cdk/message'
import type { Reader, ReaderEvent, Stream } from '../cdk/stream'
import { extractLookupRows, type LookupName, type LookupSettings } from './lookups/rows'
import { selectAttributes } from './selecting'
import type { SourceEnv } from './source'

const lookupOperations = { sources: 'lookupSources', categories: 'lookupCategories' } as const

/** A lookup as a stream: full refresh, its key as text and all else in one `record`, since its fields are not shown. */
export const createLookupStream = (name: LookupName, lookup: LookupSettings): Stream<SourceEnv> => ({
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
  reader: createLookupReader(name, lookup) as Reader<SourceEnv, unknown>,
  projector: () => (row) => [row as Row],
})

/** Refuses a key that would stand where the rest of the record does; names that differ only in case are one to some destinations. */
export const checkLookups = (
  lookups: Partial<Readonly<Record<LookupName, LookupSettings>>>,
): E.Either<Failure, Partial<Readonly<Record<LookupName, LookupSettings>>>> => {
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
export const isLookupStream = ({ reader: { name } }: Stream<SourceEnv>): boolean => name.startsWith('look up ')

const createLookupReader = (name: LookupName, lookup: LookupSettings): Reader<SourceEnv, Row> => ({
  name: `look up ${name}`,
  read: (source) => (demands) => {
    const [demand] = demands
    if (demand === undefined) return feedOf()
    const select = selectAttributes(demand.attributes)
    return chainEffect(
      pipe(
        source.api[lookupOperations[name]]({}),
        TE.mapLeft((error) => toLookupFailure(name, error)),
        TE.flatMapEither((answer) => extractLookupRows(name, lookup, answer)),
      ),
      (rows) => {
        const readAt = new Date(source.now()).toISOString()
        return feedOf<Failure, ReaderEvent>(
          E.right({ _tag: 'Rows', stream: demand.stream, rows: rows.map(select) }),
          E.right({ _tag: 'Checkpoint', stream: demand.stream, state: () => ({ readAt }) }),
        )
      },
    )
  },
})

/** Where the operation is, is the config's word. */
const toLookupFailure = (name: LookupName, error: ApiError): Failure =>
  error._tag === 'Http' && [404, 405].includes(error.status)
    ? configFailure(
        `lookups.${name}: the service answered ${error.status}. Check its path, which is appended to base_url, and its method.`,
        error.message,
      )
    : toFailure(`look up ${name}`, error)
