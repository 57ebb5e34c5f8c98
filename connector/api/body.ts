import { finished, type Readable } from 'node:stream'
import type { Pool } from './pool'

/** Room for an answer that does not say how long it is. */
const usual = 1 << 16

/** The bytes of an answer; `release`: nobody looks at them any more. */
export type Body = { readonly bytes: Buffer; readonly release: () => void }

/** A byte order mark, which a JSON text should not begin with and its reader may pass over (RFC 8259, 8.1). */
const mark = Buffer.from([0xef, 0xbb, 0xbf])

/**
 * The bytes of an answer in one buffer, without a byte order mark and the pieces they came in; none once there are more than `limit`.
 * `announced`: its Content-Length, which is not that of an answer that came compressed. Rejects where the stream breaks.
 */
export const bodyOf = (
  stream: Readable,
  announced: number,
  limit: number,
  { take, give }: Pool,
): Promise<Body | undefined> =>
  new Promise((resolve, reject) => {
    let bytes: Buffer = take(Math.min(announced || usual, limit))
    let end = 0
    const add = (piece: Buffer): void => {
      const needed = end + piece.length
      if (needed > limit) {
        stream.off('data', add).destroy()
        resolve(undefined)
        return
      }
      if (needed > bytes.length) {
        const larger = take(Math.min(Math.max(needed, bytes.length * 2), limit))
        bytes.copy(larger, 0, 0, end)
        give(bytes)
        bytes = larger
      }
      bytes.set(piece, end)
      end = needed
    }
    finished(stream, { writable: false }, (error) => {
      const whole = bytes
      const start = end >= mark.length && mark.equals(whole.subarray(0, mark.length)) ? mark.length : 0
      if (error) reject(error)
      else resolve({ bytes: whole.subarray(start, end), release: () => give(whole) })
    })
    stream.on('data', add)
  })
