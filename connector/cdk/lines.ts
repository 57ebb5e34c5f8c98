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

const newline = 0x0a
const carriageReturn = 0x0d

/** The lines of a stream of bytes, those of each chunk together, without their ends. A line within a chunk is not copied. */
export async function* splitLines(input: AsyncIterable<Uint8Array>): AsyncIterable<ReadonlyArray<Buffer>> {
  let begun: Array<Buffer> = []
  for await (const bytes of input) {
    const chunk = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    const lines: Array<Buffer> = []
    let from = 0
    for (let to = chunk.indexOf(newline); to >= 0; to = chunk.indexOf(newline, from)) {
      lines.push(
        trimCarriageReturn(
          begun.length === 0 ? chunk.subarray(from, to) : Buffer.concat([...begun, chunk.subarray(from, to)]),
        ),
      )
      begun = []
      from = to + 1
    }
    if (from < chunk.length) begun.push(chunk.subarray(from))
    if (lines.length > 0) yield lines
  }
  if (begun.length > 0) yield [trimCarriageReturn(Buffer.concat(begun))]
}

const trimCarriageReturn = (line: Buffer): Buffer => (line.at(-1) === carriageReturn ? line.subarray(0, -1) : line)
