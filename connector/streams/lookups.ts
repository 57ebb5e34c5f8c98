import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as O from 'fp-ts/Option'
import * as TE from 'fp-ts/TaskEither'
import * as t from 'io-ts'
import { type ApiError, toFailure } from '../api'
import {
  chainEffect,
  configFailure,
  type Failure,
  feedOf,
  type Reader,
  type ReaderEvent,
  type Row,
  type Stream,
} from '../cdk'
import { selectAttributes } from './record'
import { encodeRow } from './review-item'
import type { SourceEnv } from './source'

/** Where a lookup's records stand in its answer, a dotted path, and which attribute is their key (Endpoints 8: not shown). */
export type LookupSettings = { readonly recordsPath: string; readonly primaryKey: string }
export type LookupName = 'sources' | 'categories'

type LookupRecord = Readonly<Record<string, unknown>>

/** The records of an answer, each once; a failure says which setting does not fit it. */
export const extractLookupRows = (
  name: LookupName,
  { recordsPath, primaryKey }: LookupSettings,
  answer: unknown,
): E.Either<Failure, ReadonlyArray<Row>> =>
  pipe(
    findRecords(name, recordsPath, answer),
    E.chain((records) =>
      pipe(
        records,
        E.traverseArrayWithIndex((i, record) => toKeyedRow(name, primaryKey, records, i, record)),
      ),
    ),
    E.chain((rows) => uniqueRows(name, primaryKey, rows)),
  )

const settingFailure = <A>(name: LookupName, key: 'records_path' | 'primary_key', what: string): E.Either<Failure, A> =>
  E.left(configFailure(`lookups.${name}.${key}: ${what}.`))

const isRecordList = (value: unknown): value is ReadonlyArray<LookupRecord> =>
  Array.isArray(value) && value.every((record) => t.UnknownRecord.is(record))

const findRecords = (
  name: LookupName,
  path: string,
  answer: unknown,
): E.Either<Failure, ReadonlyArray<LookupRecord>> => {
  const at = path
    .split('.')
    .filter((key) => key !== '')
    .reduce<unknown>((value, key) => (t.UnknownRecord.is(value) ? value[key] : undefined), answer)
  if (isRecordList(at)) return E.right(at)
  const lists = findLists(answer, '', 3)
  const found =
    lists.length === 0 ? 'nowhere' : `at ${lists.map((list) => list || '"" (the answer itself)').join(', ')}`
  return settingFailure(
    name,
    'records_path',
    `there is no list of objects at ${path === '' ? 'the top of the answer' : path}. The answer has one ${found}`,
  )
}

/** Where lists of objects stand in an answer, down to so many steps. */
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
  i: number,
  { [primaryKey]: key, ...record }: LookupRecord,
): E.Either<Failure, KeyedRow> => {
  if (isKeyValue(key)) return E.right({ key: String(key), row: encodeRow({ [primaryKey]: String(key), record }) })
  const keys = [...new Set(records.flatMap(Object.keys))].filter((one) => records.every((row) => isKeyValue(row[one])))
  const advice =
    keys.length === 0 ? 'None of its attributes is one in every record' : `Every record has ${keys.join(', ')}`
  return settingFailure(
    name,
    'primary_key',
    `record ${i + 1} of ${records.length} has no ${primaryKey} that can be a key. ${advice}`,
  )
}

const isKeyValue = (value: unknown): boolean => ['string', 'number', 'bigint'].includes(typeof value)

/** A record that is there twice is sent once; two different ones under one key would overwrite each other. */
const uniqueRows = (
  name: LookupName,
  primaryKey: string,
  rows: ReadonlyArray<KeyedRow>,
): E.Either<Failure, ReadonlyArray<Row>> => {
  const held = new Map<string, Row>()
  for (const { key, row } of rows) {
    const other = held.get(key)
    if (other !== undefined && !Buffer.from(other.json).equals(row.json))
      return settingFailure(
        name,
        'primary_key',
        `two different records have the same ${primaryKey}. Choose what tells them apart`,
      )
    held.set(key, row)
  }
  return E.right([...held.values()])
}

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
