import type { Pool } from '../pool'

/** Where the records of a page that do not leave as they came are written, one behind the other. */
export type Room = {
  readonly take: (length: number) => Buffer
  /** Nobody looks at the records any more. */
  readonly release: () => void
}

/** Room for about `expected` bytes; more is had where it does not do. */
export const roomIn = ({ take, give }: Pool, expected: number): Room => {
  const taken: Buffer[] = []
  let open: Buffer | undefined
  let used = 0
  return {
    take: (length) => {
      if (open === undefined || used + length > open.length) {
        open = take(Math.max(length, open === undefined ? expected : expected >> 3))
        taken.push(open)
        used = 0
      }
      used += length
      return open.subarray(used - length, used)
    },
    release: () => {
      for (const buffer of taken.splice(0)) give(buffer)
      open = undefined
    },
  }
}
