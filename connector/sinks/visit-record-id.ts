import { createHash } from 'node:crypto'
import * as t from 'io-ts'
import { printJson } from '../api/json-text'
import type { Columns, Inlet } from '../cdk/sink'

/** What platforms add to a record and change with every run. */
const added = /^_(airbyte|ab|sdc)_/

const hash = (value: unknown): string => createHash('sha256').update(printJson(value)).digest('hex').slice(0, 32)

const sorted = (value: unknown): unknown =>
  Array.isArray(value)
    ? value.map(sorted)
    : t.UnknownRecord.is(value)
      ? Object.fromEntries(
          Object.keys(value)
            .sort()
            .map((key) => [key, sorted(value[key])]),
        )
      : value

const at = (columns: Columns, path: ReadonlyArray<string>): unknown =>
  path.reduce((value: unknown, name) => (t.UnknownRecord.is(value) ? value[name] : undefined), columns)

/**
 * An id for a visit that brings none, the same for the same visit in every run: of its stream and primary key, or of the whole
 * record where that has no key.
 */
export const deriveId = ({ id, key }: Pick<Inlet, 'id' | 'key'>, columns: Columns): string => {
  const values = key.map((path) => at(columns, path))
  return values.length > 0 && values.every((value) => value !== undefined && value !== null && value !== '')
    ? hash([id, values])
    : hash([id, sorted(Object.fromEntries(Object.entries(columns).filter(([name]) => !added.test(name))))])
}
