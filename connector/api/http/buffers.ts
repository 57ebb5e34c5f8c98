/**
 * Buffers that are used again. Responses are megabytes long, the garbage collector frees such buffers late, and the kernel
 * clears each new one. A buffer that is not released is garbage-collected.
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
