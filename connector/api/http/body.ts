import { finished, type Readable } from 'node:stream'
import type { BufferPool } from './buffers'

/** Room for an answer that does not say how long it is. */
const defaultSize = 1 << 16

/** The bytes of an answer; `release`: nobody looks at them any more. */
export type BodyBuffer = { readonly bytes: Buffer; readonly release: () => void }

/** A byte order mark, which a JSON text should not begin with and its reader may pass over (RFC 8259, 8.1). */
const byteOrderMark = Buffer.from([0xef, 0xbb, 0xbf])

/**
 * The bytes of an answer in one buffer, without a byte order mark and the pieces they came in; none once there are more than `limit`.
 * `announced`: its Content-Length, which is not that of an answer that came compressed. Rejects where the stream breaks.
 */
export const receiveBody = (
  stream: Readable,
  announced: number,
  limit: number,
  { acquire, release }: BufferPool,
): Promise<BodyBuffer | undefined> =>
  new Promise((resolve, reject) => {
    let bytes: Buffer = acquire(Math.min(announced || defaultSize, limit))
    let end = 0
    const add = (piece: Buffer): void => {
      const needed = end + piece.length
      if (needed > limit) {
        stream.off('data', add).destroy()
        resolve(undefined)
        return
      }
      if (needed > bytes.length) {
        const larger = acquire(Math.min(Math.max(needed, bytes.length * 2), limit))
        bytes.copy(larger, 0, 0, end)
        release(bytes)
        bytes = larger
      }
      bytes.set(piece, end)
      end = needed
    }
    finished(stream, { writable: false }, (error) => {
      const whole = bytes
      const start =
        end >= byteOrderMark.length && byteOrderMark.equals(whole.subarray(0, byteOrderMark.length))
          ? byteOrderMark.length
          : 0
      if (error) reject(error)
      else resolve({ bytes: whole.subarray(start, end), release: () => release(whole) })
    })
    stream.on('data', add)
  })
