import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8'

/** Enough for the young objects of one or two pages, in bytes. */
const youngHeapBytes = 4 << 20

/**
 * Lets the old part of the heap grow by this percentage of its live objects before a collection; V8 lets it grow to
 * several times that.
 */
export const setHeapGrowth = (percent: number): void => setFlagsFromString(`--heap-growing-percent=${percent}`)

/**
 * Stops the growth of the young part of the heap if it is large enough; says whether it is. V8 does not make it smaller
 * again.
 */
export const limitYoungHeap = (): boolean => {
  const size = getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space')?.space_size ?? 0
  if (size < youngHeapBytes) return false
  setFlagsFromString('--semi-space-growth-factor=1')
  return true
}

/**
 * Keeps the heap of a run near what it needs. V8 would let it grow to several times that before a collection, and its
 * young part to 48 MB, which makes a run no faster. The returned function stops the growth of the young part once it is
 * large enough: call it after each message.
 */
export const limitHeap = (): (() => void) => {
  setHeapGrowth(150)
  let growing = true
  return () => {
    if (growing) growing = !limitYoungHeap()
  }
}
