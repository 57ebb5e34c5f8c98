import type { BufferPool } from '../pool'

/** Where the records of a page that do not leave as they came are written, one behind the other. */
export type OutputBuffer = {
  /** So many bytes in `bytes()`, from the place answered on. */
  readonly reserve: (length: number) => number
  readonly bytes: () => Buffer
  /** Nobody looks at the records any more. */
  readonly release: () => void
}

/** Room for about `expected` bytes; more is had where it does not do. */
export const createOutputBuffer = ({ acquire, release }: BufferPool, expected: number): OutputBuffer => {
  const taken: Buffer[] = []
  let open: Buffer = Buffer.alloc(0)
  let used = 0
  return {
    reserve: (length) => {
      if (used + length > open.length) {
        open = acquire(Math.max(length, taken.length === 0 ? expected : expected >> 3))
        taken.push(open)
        used = 0
      }
      used += length
      return used - length
    },
    bytes: () => open,
    release: () => {
      for (const buffer of taken.splice(0)) release(buffer)
      open = Buffer.alloc(0)
    },
  }
}
