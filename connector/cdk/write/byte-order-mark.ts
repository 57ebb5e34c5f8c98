import * as O from 'fp-ts/Option'
import type { InputRecord } from '../message'
import type { InputStream } from '../sink'

const byteOrderMark = '\ufeff'

/** Removes the byte order mark that a file may begin with from the name of its first column. */
const withoutMark = (name: string): string => (name.startsWith(byteOrderMark) ? name.slice(1) : name)

/** The record with any byte order mark removed from its column names. */
export const withoutMarkedColumns = (record: InputRecord): InputRecord => {
  for (const name in record)
    if (name.startsWith(byteOrderMark))
      return Object.fromEntries(Object.entries(record).map(([column, value]) => [withoutMark(column), value]))
  return record
}

/** The stream with any byte order mark removed from its key and column names. */
export const withoutMarkedNames = (stream: InputStream): InputStream => ({
  ...stream,
  key: stream.key.map((path) => path.map(withoutMark)),
  columns: O.map((columns: ReadonlySet<string>) => new Set([...columns].map(withoutMark)))(stream.columns),
})
