import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as O from 'fp-ts/Option'
import * as TE from 'fp-ts/TaskEither'
import {
  type LookupList,
  type LookupListError,
  type LookupListRequest,
  type LookupRecord,
  listAnswerNames,
  readLookupList,
  toFailure,
} from '../api'
import {
  chainEffect,
  configFailure,
  encodeRow,
  type Failure,
  type Feed,
  feedOf,
  type Reader,
  type ReaderEvent,
  type Row,
  type Stream,
  type StreamRequest,
} from '../cdk'
import { selectAttributes } from './attributes'
import type { SourceEnv } from './source-env'
import { warningEvent } from './warnings'

/** Where the records of a lookup are, and how it is paged. */
export type LookupListSettings = Pick<LookupListRequest, 'recordsPath' | 'paging' | 'query'>

/**
 * `primaryKey`: the key attribute of the records. Both parts are configured, since the specification does not give the
 * fields.
 */
export type LookupSettings = LookupListSettings & { readonly primaryKey: string }
export type LookupName = 'sources' | 'categories'

/** The records of a list as rows, each once. A failure names the setting that does not fit the answer. */
const extractLookupRows = (
  name: LookupName,
  primaryKey: string,
  records: ReadonlyArray<LookupRecord>,
): E.Either<Failure, ReadonlyArray<Row>> =>
  pipe(
    records,
    E.traverseArrayWithIndex((index, record) => toKeyedRow(name, primaryKey, records, index, record)),
    E.chain((rows) => uniqueRows(name, rows)),
  )

const primaryKeyFailure = <A>(name: LookupName, problem: string): E.Either<Failure, A> =>
  E.left(configFailure(`lookups.${name}.primary_key: ${problem}.`))

type KeyedRow = { readonly primaryKey: string; readonly key: string; readonly row: Row }

const toKeyedRow = (
  name: LookupName,
  primaryKey: string,
  records: ReadonlyArray<LookupRecord>,
  index: number,
  { [primaryKey]: key, ...record }: LookupRecord,
): E.Either<Failure, KeyedRow> => {
  if (isKeyValue(key))
    return E.right({ primaryKey, key: String(key), row: encodeRow({ [primaryKey]: String(key), record }) })
  const keys = [...new Set(records.flatMap(Object.keys))].filter((attribute) =>
    records.every((other) => isKeyValue(other[attribute])),
  )
  const advice =
    keys.length === 0 ? 'None of its attributes is one in every record' : `Every record has ${listAnswerNames(keys)}`
  return primaryKeyFailure(
    name,
    `record ${index + 1} of ${records.length} has no ${primaryKey} that can be a key. ${advice}`,
  )
}

/** A blank text is not a key, since some destinations treat an empty text as null. */
export const isKeyValue = (value: unknown): boolean =>
  typeof value === 'string' ? value.trim() !== '' : ['number', 'bigint'].includes(typeof value)

/** Drops repeated records. Refuses two different records with the same key, since they would overwrite each other. */
const uniqueRows = (name: LookupName, rows: ReadonlyArray<KeyedRow>): E.Either<Failure, ReadonlyArray<Row>> => {
  const byKey = new Map<string, Row>()
  for (const { primaryKey, key, row } of rows) {
    const other = byKey.get(key)
    if (other !== undefined && !Buffer.from(other.json).equals(row.json))
      return primaryKeyFailure(
        name,
        `two different records have the same ${primaryKey}. Choose a distinguishing attribute`,
      )
    byKey.set(key, row)
  }
  return E.right([...byKey.values()])
}

const lookupOperations = { sources: 'lookupSources', categories: 'lookupCategories' } as const

/**
 * A lookup as a stream: full refresh, with its key as text and all other fields in one `record`, since they are not
 * specified.
 */
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

/** Refuses a key called `record`, the name of the other column. Some destinations ignore the case of names. */
export const checkLookups = (
  lookups: Partial<Readonly<Record<LookupName, LookupSettings>>>,
): E.Either<Failure, Partial<Readonly<Record<LookupName, LookupSettings>>>> => {
  const refused = (['sources', 'categories'] as const).find(
    (name) => lookups[name]?.primaryKey.toLowerCase() === 'record',
  )
  return refused === undefined
    ? E.right(lookups)
    : E.left(
        configFailure(
          `The config is wrong: lookups.${refused}.primary_key must not be record, the ` +
            'name of the column that holds the other fields. Choose another attribute.',
        ),
      )
}

/** The stream is read from a lookup. Without a lookup, the stream with the same name is made from reviews. */
export const isLookupStream = ({ reader: { name } }: Stream<SourceEnv>): boolean => name.startsWith('look up ')

const createLookupReader = (name: LookupName, lookup: LookupSettings): Reader<SourceEnv, Row> => ({
  name: `look up ${name}`,
  read: (source) => (requests) => {
    const [request] = requests
    if (request === undefined) return feedOf()
    return chainEffect(
      pipe(
        readLookupRecords(source, name, lookup, ({ [lookup.primaryKey]: key }) =>
          isKeyValue(key) ? String(key) : undefined,
        ),
        TE.mapLeft((error) => toLookupFailure(name, error)),
        TE.flatMapEither((list) =>
          pipe(
            extractLookupRows(name, lookup.primaryKey, list.records),
            E.map((rows) => ({ rows, list })),
          ),
        ),
      ),
      ({ rows, list }) => lookupEvents(source, request, list, rows),
    )
  },
})

export const readLookupRecords = (
  { api, samplesLookups = false }: SourceEnv,
  name: LookupName,
  settings: LookupListSettings,
  identify: LookupListRequest['identify'],
): TE.TaskEither<LookupListError, LookupList> =>
  readLookupList({
    ...settings,
    setting: `lookups.${name}`,
    fetch: api[lookupOperations[name]],
    identify,
    isSample: samplesLookups,
  })

/** The rows of a lookup stream, messages about the list, and a state with the time. */
export const lookupEvents = (
  { now }: SourceEnv,
  { stream, attributes }: Pick<StreamRequest<never>, 'stream' | 'attributes'>,
  { notes, doubt }: LookupList,
  rows: ReadonlyArray<Row>,
): Feed<Failure, ReaderEvent> => {
  const readAt = new Date(now()).toISOString()
  return feedOf<Failure, ReaderEvent>(
    ...[...notes, ...(doubt === undefined ? [] : [doubt])].map((note) => E.right(warningEvent(note))),
    E.right({ _tag: 'Rows', stream, rows: rows.map(selectAttributes(attributes)), total: rows.length }),
    E.right({ _tag: 'Checkpoint', stream, state: () => ({ readAt }) }),
  )
}

/** The config gives the path of the operation, so an answer that it does not exist is a failure of the config. */
export const toLookupFailure = (name: LookupName | 'locations', refused: LookupListError): Failure => {
  if (refused._tag === 'Answer') return refused.failure
  const { error } = refused
  if (error._tag === 'Http' && [404, 405].includes(error.status))
    return configFailure(
      `lookups.${name}: the service answered ${error.status}. Check ` +
        'its path, which is appended to base_url, and its method.',
      error.message,
    )
  const { scope, ...failure } = toFailure(`look up ${name}`, error)
  // The lookup may need a separate permission; other operations report a refused token themselves.
  return error._tag === 'Http' || scope === undefined ? failure : { ...failure, scope }
}
