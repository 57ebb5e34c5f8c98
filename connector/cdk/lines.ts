import type { Row } from './message'

/** What is printed: a text, or the pieces of a long one, each to be taken before the next is asked for. */
export type OutputText = string | Iterable<Uint8Array>

/** The whole of a text, for those who hold it in memory anyway. */
export const joinText = (text: OutputText): string =>
  typeof text === 'string' ? text : Buffer.concat([...text]).toString()

/** One JSON line. */
export const jsonLine = (value: unknown): string => `${JSON.stringify(value)}\n`

/**
 * Rows as lines, each between `before` and what `after` gives for it, in pieces: a page is not put together anywhere, and no
 * record is turned into a string. Rows that were changed ask for their own ending.
 */
export function* wrapRows(rows: ReadonlyArray<Row>, before: string, after: (row: Row) => string): Iterable<Uint8Array> {
  const tail = `${after({ json: new Uint8Array() })}\n`
  // Between two records one piece, since each is asked for on its own.
  const between = Buffer.from(tail + before)
  if (rows.length > 0) yield Buffer.from(before)
  let left = rows.length
  for (const row of rows) {
    yield row.json
    left -= 1
    const isLast = left === 0
    const end = row.changes === undefined ? tail : `${after(row)}\n`
    yield row.changes === undefined && !isLast ? between : Buffer.from(isLast ? end : end + before)
  }
}
