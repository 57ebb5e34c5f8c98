import * as O from 'fp-ts/Option'
import type { InputRecord } from '../message'
import type { InputStream } from '../sink'

const byteOrderMark = '\ufeff'

/**
 * The name of a column without the byte order mark that a file may begin with, which is no part of its first column's
 * name.
 */
const withoutMark = (name: string): string => (name.startsWith(byteOrderMark) ? name.slice(1) : name)

/** A record whose columns have their names without a byte order mark. */
export const withoutMarkedColumns = (record: InputRecord): InputRecord => {
  for (const name in record)
    if (name.startsWith(byteOrderMark))
      return Object.fromEntries(Object.entries(record).map(([column, value]) => [withoutMark(column), value]))
  return record
}

/** A stream whose keys and columns have their names without a byte order mark. */
export const withoutMarkedNames = (stream: InputStream): InputStream => ({
  ...stream,
  key: stream.key.map((path) => path.map(withoutMark)),
  columns: O.map((columns: ReadonlySet<string>) => new Set([...columns].map(withoutMark)))(stream.columns),
})
