import type { Row } from './message'

/** A text to print, or the pieces of a long one. Each piece is valid until the next one is pulled. */
export type OutputText = string | Iterable<Uint8Array>

/** The whole text as a string. */
export const joinText = (text: OutputText): string =>
  typeof text === 'string' ? text : Buffer.concat([...text]).toString()

/** One JSON line. */
export const jsonLine = (value: unknown): string => `${JSON.stringify(value)}\n`

/**
 * Rows as lines in pieces, each between `before` and the result of `after`. A page is never copied into one buffer, and
 * no record becomes a string. `after` is called for each row that has changes, and once for all others.
 */
export function* wrapRows(rows: ReadonlyArray<Row>, before: string, after: (row: Row) => string): Iterable<Uint8Array> {
  const tail = `${after({ json: new Uint8Array() })}\n`
  // One piece between two records, because each piece costs a step of the iterator.
  const between = Buffer.from(tail + before)
  if (rows.length > 0) yield Buffer.from(before)
  let remaining = rows.length
  for (const row of rows) {
    yield row.json
    remaining -= 1
    const isLast = remaining === 0
    const end = row.changes === undefined ? tail : `${after(row)}\n`
    yield row.changes === undefined && !isLast ? between : Buffer.from(isLast ? end : end + before)
  }
}

const newline = 0x0a
const carriageReturn = 0x0d

/** The lines of one chunk, without their line ends. `isCut`: the input ended within this one line. */
type LineBatch = { readonly lines: ReadonlyArray<Buffer>; readonly isCut: boolean }

/**
 * Splits a stream of bytes into lines without their line ends, one batch per chunk. A line within one chunk is not
 * copied.
 */
export async function* splitLines(input: AsyncIterable<Uint8Array>): AsyncIterable<LineBatch> {
  let lineStart: Array<Buffer> = []
  for await (const bytes of input) {
    const chunk = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    const lines: Array<Buffer> = []
    let from = 0
    for (let to = chunk.indexOf(newline); to >= 0; to = chunk.indexOf(newline, from)) {
      lines.push(
        trimCarriageReturn(
          lineStart.length === 0 ? chunk.subarray(from, to) : Buffer.concat([...lineStart, chunk.subarray(from, to)]),
        ),
      )
      lineStart = []
      from = to + 1
    }
    if (from < chunk.length) lineStart.push(chunk.subarray(from))
    if (lines.length > 0) yield { lines, isCut: false }
  }
  if (lineStart.length > 0) yield { lines: [trimCarriageReturn(Buffer.concat(lineStart))], isCut: true }
}

const trimCarriageReturn = (line: Buffer): Buffer => (line.at(-1) === carriageReturn ? line.subarray(0, -1) : line)
