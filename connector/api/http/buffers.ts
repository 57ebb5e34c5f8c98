/**
 * Buffers that are used again: pages are megabytes, which the collector sees late, and the kernel clears each new one.
 * One that is not given back is only lost to the collector.
 */
export type BufferPool = {
  /** A buffer of at least so many bytes, holding anything. */
  readonly acquire: (size: number) => Buffer
  /** The buffer, once nobody looks at it any more. */
  readonly release: (buffer: Buffer) => void
}

/** Smaller ones are not worth keeping. */
const minSize = 1 << 18

/** More pages than are ever under way at once. */
const maxBuffers = 16

export const createBufferPool = (): BufferPool => {
  const free: Buffer[] = []
  return {
    acquire: (size) => {
      if (size < minSize) return Buffer.allocUnsafeSlow(size)
      const place = free.findIndex(({ length }) => length >= size)
      const [found] = place < 0 ? [] : free.splice(place, 1)
      // Somewhat more, since pages are never quite as long as the last one.
      return found ?? Buffer.allocUnsafeSlow(Math.ceil((size * 1.1) / minSize) * minSize)
    },
    release: (buffer) => {
      if (buffer.length < minSize) return
      free.push(buffer)
      // Those in use of late are of the sizes that are asked for.
      if (free.length > maxBuffers) free.shift()
    },
  }
}
