import type { Row } from './message'

/** One JSON line. */
export const line = (value: unknown): string => `${JSON.stringify(value)}\n`

/**
 * Rows as lines, each between the two texts `around` gives for it, in one buffer: a page is written with one call and no
 * record is turned into a string. Rows that were changed ask for their own ending.
 */
export const wrap = (rows: ReadonlyArray<Row>, before: string, after: (row: Row) => string): Uint8Array => {
  const plain = Buffer.from(`${after({ json: new Uint8Array() })}\n`)
  const head = Buffer.from(before)
  const tails = rows.map((row) => (row.changes === undefined ? plain : Buffer.from(`${after(row)}\n`)))
  const size = rows.reduce((sum, { json }, i) => sum + head.length + json.length + (tails[i] ?? plain).length, 0)
  const out = Buffer.allocUnsafe(size)
  let at = 0
  rows.forEach(({ json }, i) => {
    at += head.copy(out, at)
    out.set(json, at)
    at += json.length
    at += (tails[i] ?? plain).copy(out, at)
  })
  return out
}
