import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8'

/** Room for the young objects of a page or two, of all that V8 gives them (bytes). */
const youngHeapBytes = 4 << 20

/** Lets the old part of the heap grow by so much of what lives in it, rather than to several times that, before it is cleaned up. */
export const setHeapGrowth = (percent: number): void => setFlagsFromString(`--heap-growing-percent=${percent}`)

/**
 * Keeps the heap of a run near what it needs. V8 lets it grow to several times that before it cleans up, and the young part
 * to 48 MB, which makes a run no faster. To be asked now and then, until the young part is large enough.
 */
export const limitHeap = (): (() => void) => {
  setHeapGrowth(150)
  let growing = true
  return () => {
    if (!growing) return
    const size = getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space')?.space_size ?? 0
    if (size < youngHeapBytes) return
    growing = false
    setFlagsFromString('--semi-space-growth-factor=1')
  }
}
