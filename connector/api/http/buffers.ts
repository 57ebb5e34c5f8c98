import { finished, type Readable } from 'node:stream'

/**
 * Buffers that are used again. Responses are megabytes long, the garbage collector frees such buffers late, and the
 * kernel clears each new one. A buffer that is not released is garbage-collected.
 */
export type BufferPool = {
  /** A buffer of at least `size` bytes with any content. */
  readonly acquire: (size: number) => Buffer
  /** Gives back a buffer that is no longer read. */
  readonly release: (buffer: Buffer) => void
}

/** Smaller buffers are not kept; bytes. */
const minSize = 1 << 18

/** More than the responses that are ever in memory at once. */
const maxBuffers = 16

export const createBufferPool = (): BufferPool => {
  const free: Buffer[] = []
  return {
    acquire: (size) => {
      if (size < minSize) return Buffer.allocUnsafeSlow(size)
      const index = free.findIndex(({ length }) => length >= size)
      const [found] = index < 0 ? [] : free.splice(index, 1)
      // A tenth more, since the next response may be a little longer.
      return found ?? Buffer.allocUnsafeSlow(Math.ceil((size * 1.1) / minSize) * minSize)
    },
    release: (buffer) => {
      if (buffer.length < minSize) return
      free.push(buffer)
      // The oldest goes: its size is the least likely to be asked for again.
      if (free.length > maxBuffers) free.shift()
    },
  }
}

/** Bytes reserved for a response without a Content-Length. */
const defaultSize = 1 << 16

/** The bytes of a response; call `release` when they are no longer read. */
type BodyBuffer = { readonly bytes: Buffer; readonly release: () => void }

/** A JSON text should not begin with a byte order mark, and a parser may ignore it (RFC 8259, section 8.1). */
const byteOrderMark = Buffer.from([0xef, 0xbb, 0xbf])

/**
 * The bytes of a response in one buffer, without a byte order mark; undefined where there are more than `limit`.
 * `announced` is the Content-Length, which differs from the number of bytes where the response came compressed. Rejects
 * where the stream breaks.
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
