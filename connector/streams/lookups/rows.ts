import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as t from 'io-ts'
import { configFailure, type Failure } from '../../cdk/failure'
import type { Row } from '../../cdk/message'
import { toRow } from '../review-item'

/** Where a lookup's records stand in its answer, a dotted path, and which attribute is their key (Endpoints 8: not shown). */
export type Lookup = { readonly recordsPath: string; readonly primaryKey: string }
export type LookupName = 'sources' | 'categories'

type Fields = Readonly<Record<string, unknown>>

/** The records of an answer, each once; a failure says which setting does not fit it. */
export const rowsIn = (
  name: LookupName,
  { recordsPath, primaryKey }: Lookup,
  answer: unknown,
): E.Either<Failure, ReadonlyArray<Row>> =>
  pipe(
    recordsAt(name, recordsPath, answer),
    E.chain((records) =>
      pipe(
        records,
        E.traverseArrayWithIndex((i, record) => keyed(name, primaryKey, records, i, record)),
      ),
    ),
    E.chain((rows) => eachOnce(name, primaryKey, rows)),
  )

const wrong = <A>(name: LookupName, key: 'records_path' | 'primary_key', what: string): E.Either<Failure, A> =>
  E.left(configFailure(`lookups.${name}.${key}: ${what}.`))

const isList = (value: unknown): value is ReadonlyArray<Fields> =>
  Array.isArray(value) && value.every((record) => t.UnknownRecord.is(record))

const recordsAt = (name: LookupName, path: string, answer: unknown): E.Either<Failure, ReadonlyArray<Fields>> => {
  const at = path
    .split('.')
    .filter((key) => key !== '')
    .reduce<unknown>((value, key) => (t.UnknownRecord.is(value) ? value[key] : undefined), answer)
  if (isList(at)) return E.right(at)
  const lists = listsIn(answer, '', 3)
  const found =
    lists.length === 0 ? 'nowhere' : `at ${lists.map((list) => list || '"" (the answer itself)').join(', ')}`
  return wrong(
    name,
    'records_path',
    `there is no list of objects at ${path === '' ? 'the top of the answer' : path}. The answer has one ${found}`,
  )
}

/** Where lists of objects stand in an answer, down to so many steps. */
const listsIn = (value: unknown, path: string, depth: number): ReadonlyArray<string> => {
  if (isList(value)) return [path]
  if (!t.UnknownRecord.is(value) || depth === 0) return []
  return Object.entries(value).flatMap(([key, inner]) =>
    listsIn(inner, path === '' ? key : `${path}.${key}`, depth - 1),
  )
}

type Keyed = { readonly key: string; readonly row: Row }

const keyed = (
  name: LookupName,
  primaryKey: string,
  records: ReadonlyArray<Fields>,
  i: number,
  { [primaryKey]: key, ...record }: Fields,
): E.Either<Failure, Keyed> => {
  if (isKey(key)) return E.right({ key: String(key), row: toRow({ [primaryKey]: String(key), record }) })
  const keys = [...new Set(records.flatMap(Object.keys))].filter((one) => records.every((row) => isKey(row[one])))
  const advice =
    keys.length === 0 ? 'None of its attributes is one in every record' : `Every record has ${keys.join(', ')}`
  return wrong(
    name,
    'primary_key',
    `record ${i + 1} of ${records.length} has no ${primaryKey} that can be a key. ${advice}`,
  )
}

const isKey = (value: unknown): boolean => ['string', 'number', 'bigint'].includes(typeof value)

/** A record that is there twice is sent once; two different ones under one key would overwrite each other. */
const eachOnce = (
  name: LookupName,
  primaryKey: string,
  rows: ReadonlyArray<Keyed>,
): E.Either<Failure, ReadonlyArray<Row>> => {
  const held = new Map<string, Row>()
  for (const { key, row } of rows) {
    const other = held.get(key)
    if (other !== undefined && !Buffer.from(other.json).equals(row.json))
      return wrong(
        name,
        'primary_key',
        `two different records have the same ${primaryKey}. Choose what tells them apart`,
      )
    held.set(key, row)
  }
  return E.right([...held.values()])
}
