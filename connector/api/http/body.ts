import { finished, type Readable } from 'node:stream'
import type { BufferPool } from './buffers'

/** Bytes reserved for a response without a Content-Length. */
const defaultSize = 1 << 16

/** The bytes of a response; call `release` when they are no longer read. */
export type BodyBuffer = { readonly bytes: Buffer; readonly release: () => void }

/** A JSON text should not begin with a byte order mark, and a parser may ignore it (RFC 8259, section 8.1). */
const byteOrderMark = Buffer.from([0xef, 0xbb, 0xbf])

/**
 * The bytes of a response in one buffer, without a byte order mark; undefined where there are more than `limit`. `announced` is the
 * Content-Length, which differs from the number of bytes where the response came compressed. Rejects where the stream breaks.
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
    const append = (chunk: Buffer): void => {
      const needed = end + chunk.length
      if (needed > limit) {
        stream.off('data', append).destroy()
        resolve(undefined)
        return
      }
      if (needed > bytes.length) {
        const larger = acquire(Math.min(Math.max(needed, bytes.length * 2), limit))
        bytes.copy(larger, 0, 0, end)
        release(bytes)
        bytes = larger
      }
      bytes.set(chunk, end)
      end = needed
    }
    finished(stream, { writable: false }, (error) => {
      const hasMark = end >= byteOrderMark.length && byteOrderMark.equals(bytes.subarray(0, byteOrderMark.length))
      if (error) reject(error)
      else resolve({ bytes: bytes.subarray(hasMark ? byteOrderMark.length : 0, end), release: () => release(bytes) })
    })
    stream.on('data', append)
  })
