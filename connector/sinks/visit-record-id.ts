import { createHash } from 'node:crypto'
import * as t from 'io-ts'
import { printExactJson } from '../api/json-text'
import type { InputRecord, InputStream } from '../cdk/sink'

/** What platforms add to a record and change with every run. */
const platformColumn = /^_(airbyte|ab|sdc)_/

const hashValue = (value: unknown): string =>
  createHash('sha256').update(printExactJson(value)).digest('hex').slice(0, 32)

const sortKeys = (value: unknown): unknown =>
  Array.isArray(value)
    ? value.map(sortKeys)
    : t.UnknownRecord.is(value)
      ? Object.fromEntries(
          Object.keys(value)
            .sort()
            .map((key) => [key, sortKeys(value[key])]),
        )
      : value

const valueAtPath = (columns: InputRecord, path: ReadonlyArray<string>): unknown =>
  path.reduce((value: unknown, name) => (t.UnknownRecord.is(value) ? value[name] : undefined), columns)

/**
 * An id for a visit that brings none, the same for the same visit in every run: of its stream and primary key, or of the whole
 * record where that has no key.
 */
export const deriveVisitId = ({ id, key }: Pick<InputStream, 'id' | 'key'>, columns: InputRecord): string => {
  const values = key.map((path) => valueAtPath(columns, path))
  return values.length > 0 && values.every((value) => value !== undefined && value !== null && value !== '')
    ? hashValue([id, values])
    : hashValue([
        id,
        sortKeys(Object.fromEntries(Object.entries(columns).filter(([name]) => !platformColumn.test(name)))),
      ])
}
