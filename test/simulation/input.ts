import { Readable } from 'node:stream'
import type { RunInput } from './platform'
import type { Chance } from './random'
import type { Realm } from './realm'

/** How a writer fills a pipe: bytes and milliseconds. */
export type InputTraits = {
  /** The most bytes that it writes at once. */
  readonly piece: number
  /** How many bytes the reader's stream holds before it stops to read. */
  readonly room: number
  /** The longest pause between two pieces; most are shorter than a millisecond. */
  readonly pause: number
}

/** A pipe to stdin with these bytes, in pieces that are cut anywhere. */
export type SimulatedInput = RunInput & {
  /** How many bytes the program has taken from it. */
  readonly taken: () => number
}

/** `onTake` hears how many bytes the program has taken, each time that it takes some. */
export const createInput = (
  realm: Realm,
  chance: Chance,
  bytes: Buffer,
  traits: InputTraits,
  onTake: (taken: number) => void,
): SimulatedInput => {
  let taken = 0
  let isClosed = false
  let extraPause = 0
  /** A writer that ends leaves a line cut or, every other time, whole. */
  const endOfClosed = (from: number): number =>
    from % 2 === 1 || from === 0 || bytes[from - 1] === 0x0a ? from : bytes.indexOf(0x0a, from) + 1
  return {
    open: (owner) => {
      let isWaiting = false
      const stream = new Readable({
        highWaterMark: traits.room,
        read: () => {
          if (isWaiting) return
          isWaiting = true
          const pause = extraPause + (chance.happens(0.05) ? traits.pause : 1) * chance.next()
          realm.schedule(pause, owner, 'stdin', () => {
            isWaiting = false
            const from = taken
            if (isClosed) taken = endOfClosed(from)
            else if (taken < bytes.length) taken = Math.min(bytes.length, from + chance.between(1, traits.piece))
            if (taken === from) return void stream.push(null)
            onTake(taken)
            stream.push(bytes.subarray(from, taken))
          })
        },
      })
      return stream
    },
    close: () => {
      isClosed = true
    },
    slowDown: (pause) => {
      extraPause = pause
    },
    taken: () => taken,
  }
}
