import { isUtf8 } from 'node:buffer'
import type { Row } from '../../cdk'

const surrogatePattern =
  /\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})|\\./g

/** JSON allows half of a surrogate pair as an escape, DuckDB does not: such a half becomes U+FFFD, as does what is no UTF-8. */
export const replaceLoneSurrogates = (json: Buffer): Buffer =>
  isUtf8(json) && !json.includes('\\ud') && !json.includes('\\uD')
    ? json
    : Buffer.from(
        json
          .toString()
          .replace(surrogatePattern, (found, lone: string | undefined) => (lone === undefined ? found : '\\ufffd')),
      )

const newlineByte = 0x0a

/**
 * Records on their way into DuckDB, copied behind one another, a line each: one text costs less to hand over than a list,
 * and nothing of the pages they came in is kept.
 */
export type RowBatch = {
  /** `at`: when it was read, in milliseconds since 1970. */
  readonly add: (row: Row, at: number) => void
  readonly count: () => number
  /** All that was added since the last time. */
  readonly take: () => {
    /** UTF-8, without lone surrogates; good until the next time. */
    readonly lines: Buffer
    readonly at: ReadonlyArray<number>
    /** Of each record, its changes as JSON without the brackets; null where there are none. */
    readonly changes: ReadonlyArray<string | null>
  }
}

export const createRowBatch = (): RowBatch => {
  let bytes = Buffer.allocUnsafe(65_536)
  let spare = Buffer.allocUnsafe(0)
  let used = 0
  let at: Array<number> = []
  let changes: Array<string | null> = []
  return {
    add: (row, time) => {
      const needed = used + row.json.length + 1
      if (needed > bytes.length) {
        const larger = Buffer.allocUnsafe(Math.max(needed, bytes.length * 2))
        bytes.copy(larger, 0, 0, used)
        bytes = larger
      }
      if (used > 0) bytes[used++] = newlineByte
      bytes.set(row.json, used)
      used += row.json.length
      at.push(time)
      changes.push(row.changes?.map((change) => JSON.stringify(change)).join(',') || null)
    },
    count: () => at.length,
    take: () => {
      const taken = { lines: replaceLoneSurrogates(bytes.subarray(0, used)), at, changes }
      ;[bytes, spare] = [spare, bytes]
      used = 0
      at = []
      changes = []
      return taken
    },
  }
}
