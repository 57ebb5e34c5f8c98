import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as t from 'io-ts'
import { configFailure, type Failure } from '../../cdk/failure'
import type { Row } from '../../cdk/message'
import { encodeRow } from '../review-item'

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
