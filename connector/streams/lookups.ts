import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as O from 'fp-ts/Option'
import * as TE from 'fp-ts/TaskEither'
import * as t from 'io-ts'
import { type ApiError, toFailure } from '../api'
import {
  chainEffect,
  configFailure,
  encodeRow,
  type Failure,
  feedOf,
  type Reader,
  type ReaderEvent,
  type Row,
  type Stream,
} from '../cdk'
import { maskAttributeName } from '../export'
import { selectAttributes } from './record'
import type { SourceEnv } from './source-env'

/**
 * The dotted path of the records in a lookup's answer, and the attribute that is their key. Both are configured, since the
 * service's specification does not give the fields of a lookup.
 */
export type LookupSettings = { readonly recordsPath: string; readonly primaryKey: string }
export type LookupName = 'sources' | 'categories'

type LookupRecord = Readonly<Record<string, unknown>>

/** The records of an answer as rows, each once; a failure names the setting that does not fit the answer. */
const extractLookupRows = (
  name: LookupName,
  { recordsPath, primaryKey }: LookupSettings,
  answer: unknown,
): E.Either<Failure, ReadonlyArray<Row>> =>
  pipe(
    findRecords(name, recordsPath, answer),
    E.chain((records) =>
      pipe(
        records,
        E.traverseArrayWithIndex((index, record) => toKeyedRow(name, primaryKey, records, index, record)),
      ),
    ),
    E.chain((rows) => uniqueRows(name, primaryKey, rows)),
  )

const settingFailure = <A>(
  name: LookupName,
  key: 'records_path' | 'primary_key',
  problem: string,
): E.Either<Failure, A> => E.left(configFailure(`lookups.${name}.${key}: ${problem}.`))

const isRecordList = (value: unknown): value is ReadonlyArray<LookupRecord> =>
  Array.isArray(value) && value.every((record) => t.UnknownRecord.is(record))

const findRecords = (
  name: LookupName,
  path: string,
  answer: unknown,
): E.Either<Failure, ReadonlyArray<LookupRecord>> => {
  const records = path
    .split('.')
    .filter((key) => key !== '')
    .reduce<unknown>((value, key) => (t.UnknownRecord.is(value) ? value[key] : undefined), answer)
  if (isRecordList(records)) return E.right(records)
  const lists = findLists(answer, '', 3)
  const places = lists.length === 0 ? 'nowhere' : `at ${listNames(lists)}`
  return settingFailure(
    name,
    'records_path',
    `there is no list of objects at ${path === '' ? 'the top of the answer' : path}. The answer has one ${places}`,
  )
}

const maxListedNames = 10

/** Names of the answer's attributes for a message. */
const listNames = (names: ReadonlyArray<string>): string => {
  const masked = [
    ...new Set(names.map((name) => (name === '' ? '' : name.split('.').map(maskAttributeName).join('.')))),
  ]
  const more = masked.length > maxListedNames ? [`${masked.length - maxListedNames} more`] : []
  return [...masked.slice(0, maxListedNames).map((name) => name || '"" (the answer itself)'), ...more].join(', ')
}

/** The paths of the lists of objects in an answer, down to `depth` levels. */
const findLists = (value: unknown, path: string, depth: number): ReadonlyArray<string> => {
  if (isRecordList(value)) return [path]
  if (!t.UnknownRecord.is(value) || depth === 0) return []
  return Object.entries(value).flatMap(([key, inner]) =>
    findLists(inner, path === '' ? key : `${path}.${key}`, depth - 1),
  )
}

type KeyedRow = { readonly key: string; readonly row: Row }

const toKeyedRow = (
  name: LookupName,
  primaryKey: string,
  records: ReadonlyArray<LookupRecord>,
  index: number,
  { [primaryKey]: key, ...record }: LookupRecord,
): E.Either<Failure, KeyedRow> => {
  if (isKeyValue(key)) return E.right({ key: String(key), row: encodeRow({ [primaryKey]: String(key), record }) })
  const keys = [...new Set(records.flatMap(Object.keys))].filter((attribute) =>
    records.every((other) => isKeyValue(other[attribute])),
  )
  const advice =
    keys.length === 0 ? 'None of its attributes is one in every record' : `Every record has ${listNames(keys)}`
  return settingFailure(
    name,
    'primary_key',
    `record ${index + 1} of ${records.length} has no ${primaryKey} that can be a key. ${advice}`,
  )
}

/** A blank text is no key: some destinations take an empty text for null. */
const isKeyValue = (value: unknown): boolean =>
  typeof value === 'string' ? value.trim() !== '' : ['number', 'bigint'].includes(typeof value)

/** Drops repeated records, and refuses two different records with one key, since they would overwrite each other. */
const uniqueRows = (
  name: LookupName,
  primaryKey: string,
  rows: ReadonlyArray<KeyedRow>,
): E.Either<Failure, ReadonlyArray<Row>> => {
  const byKey = new Map<string, Row>()
  for (const { key, row } of rows) {
    const other = byKey.get(key)
    if (other !== undefined && !Buffer.from(other.json).equals(row.json))
      return settingFailure(
        name,
        'primary_key',
        `two different records have the same ${primaryKey}. Choose what tells them apart`,
      )
    byKey.set(key, row)
  }
  return E.right([...byKey.values()])
}

const lookupOperations = { sources: 'lookupSources', categories: 'lookupCategories' } as const

/** A lookup as a stream: full refresh, its key as text and all other fields in one `record`, since they are not specified. */
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

/** Refuses a key called `record`, the name of the other column; some destinations take names that differ in case for one. */
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
          `The config is wrong: lookups.${refused}.primary_key must not be record, the name of the column that holds the other fields. Choose another attribute.`,
        ),
      )
}

/** Whether a stream is read from a lookup; without a lookup the stream of the same name is made of reviews. */
export const isLookupStream = ({ reader: { name } }: Stream<SourceEnv>): boolean => name.startsWith('look up ')

const createLookupReader = (name: LookupName, lookup: LookupSettings): Reader<SourceEnv, Row> => ({
  name: `look up ${name}`,
  read: (source) => (requests) => {
    const [request] = requests
    if (request === undefined) return feedOf()
    const select = selectAttributes(request.attributes)
    return chainEffect(
      pipe(
        source.api[lookupOperations[name]]({}),
        TE.mapLeft((error) => toLookupFailure(name, error)),
        TE.flatMapEither((answer) => extractLookupRows(name, lookup, answer)),
      ),
      (rows) => {
        const readAt = new Date(source.now()).toISOString()
        return feedOf<Failure, ReaderEvent>(
          E.right({ _tag: 'Rows', stream: request.stream, rows: rows.map(select) }),
          E.right({ _tag: 'Checkpoint', stream: request.stream, state: () => ({ readAt }) }),
        )
      },
    )
  },
})

/** The config gives the path of the operation, so an answer that it does not exist is a failure of the config. */
const toLookupFailure = (name: LookupName, error: ApiError): Failure =>
  error._tag === 'Http' && [404, 405].includes(error.status)
    ? configFailure(
        `lookups.${name}: the service answered ${error.status}. Check its path, which is appended to base_url, and its method.`,
        error.message,
      )
    : toFailure(`look up ${name}`, error)
