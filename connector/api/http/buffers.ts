import { finished, type Readable } from 'node:stream'

/**
 * Reuses buffers. Responses are megabytes long, the garbage collector frees their buffers late, and the kernel clears
 * each new one. A buffer that is never released is garbage-collected.
 */
export type BufferPool = {
  /** A buffer of at least `size` bytes with arbitrary content. */
  readonly acquire: (size: number) => Buffer
  /** Returns a buffer that is no longer read. */
  readonly release: (buffer: Buffer) => void
}

/** Smaller buffers are not kept, in bytes. */
const minSize = 1 << 18

/** More than the number of responses in memory at any time. */
const maxBuffers = 16

export const createBufferPool = (): BufferPool => {
  const free: Buffer[] = []
  return {
    acquire: (size) => {
      if (size < minSize) return Buffer.allocUnsafeSlow(size)
      const index = free.findIndex(({ length }) => length >= size)
      const [found] = index < 0 ? [] : free.splice(index, 1)
      // A tenth larger, because the next response may be slightly longer.
      return found ?? Buffer.allocUnsafeSlow(Math.ceil((size * 1.1) / minSize) * minSize)
    },
    release: (buffer) => {
      if (buffer.length < minSize) return
      free.push(buffer)
      // Drop the oldest: its size is the least likely to be needed again.
      if (free.length > maxBuffers) free.shift()
    },
  }
}

/** Bytes reserved for a response without a Content-Length. */
const defaultSize = 1 << 16

/** The bytes of a response; call `release` when they are no longer read. */
type BodyBuffer = { readonly bytes: Buffer; readonly release: () => void }

/** JSON should not begin with a byte order mark, but a parser may ignore one (RFC 8259, section 8.1). */
const byteOrderMark = Buffer.from([0xef, 0xbb, 0xbf])

/**
 * Receives a response into one buffer, without a byte order mark. Undefined if it has more than `limit` bytes.
 * `announced`: the Content-Length, which differs from the number of bytes if the response was compressed. Rejects if
 * the stream breaks.
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
