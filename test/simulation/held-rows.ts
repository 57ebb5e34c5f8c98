import type { Violation } from './oracles'

/**
 * How much a source may hold besides its pages: what it has passed to the pipe of stdout, and what waits before it;
 * bytes.
 */
const outputRoom = (1 << 20) + (1 << 18) + 2 * 65_536

/** Follows the rows that one run of a source has been sent and has not printed yet. */
export type HeldRows = {
  /** The service sends a page of rows; each row by a key of its version, with its length in bytes. */
  readonly serve: (page: ReadonlyArray<readonly [key: string, bytes: number]>) => void
  /** The reader of stdout has a row. */
  readonly print: (key: string) => void
  /** The most bytes that were held at a time, of the rows that were printed, and the longest page. */
  readonly peak: () => { readonly bytes: number; readonly longestPage: number }
}

/**
 * A row is held from the last time that the service sent it until it is printed. Rows that are never printed do not
 * count, since nobody outside can see if the source still holds them.
 */
export const createHeldRows = (): HeldRows => {
  /** Every change of what is held, in order. A row is added where it was sent. */
  const changes: number[] = []
  const sent = new Map<string, { readonly at: number; readonly bytes: number }>()
  let longestPage = 0
  return {
    serve: (page) => {
      longestPage = Math.max(
        longestPage,
        page.reduce((sum, [, bytes]) => sum + bytes, 0),
      )
      for (const [key, bytes] of page) sent.set(key, { at: changes.push(0) - 1, bytes })
    },
    print: (key) => {
      const row = sent.get(key)
      if (row === undefined) return
      sent.delete(key)
      changes[row.at] = row.bytes
      changes.push(-row.bytes)
    },
    peak: () => {
      let [held, most] = [0, 0]
      for (const change of changes) {
        held += change
        most = Math.max(most, held)
      }
      return { bytes: most, longestPage }
    },
  }
}

/**
 * A source holds one page that it prints, the pages that it asks for ahead of it, and what waits for the reader of
 * stdout.
 */
export const checkHeldRows = (held: HeldRows, concurrency: number): ReadonlyArray<Violation> => {
  const { bytes, longestPage } = held.peak()
  const most = outputRoom + (concurrency + 1) * longestPage
  return bytes > most
    ? [{ oracle: 'held rows', what: `${bytes} bytes of rows that were not printed, at most ${most} expected` }]
    : []
}
