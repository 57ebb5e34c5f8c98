import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8'

/** Enough for the young objects of one or two pages, in bytes. */
const youngHeapBytes = 4 << 20

/**
 * Lets the old generation of the heap grow by this percentage of its live objects before a collection. By default, V8
 * lets it grow several times over.
 */
export const setHeapGrowth = (percent: number): void => setFlagsFromString(`--heap-growing-percent=${percent}`)

/**
 * Stops the growth of the young generation if it is large enough, and returns true then. V8 does not shrink it again.
 */
export const limitYoungHeap = (): boolean => {
  const size = getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space')?.space_size ?? 0
  if (size < youngHeapBytes) return false
  setFlagsFromString('--semi-space-growth-factor=1')
  return true
}

/**
 * Keeps the heap near what a run needs. By default, V8 lets it grow several times over before a collection, and its
 * young generation to 48 MB, which makes a run no faster. Call the returned function after each message: it stops the
 * growth of the young generation once that is large enough.
 */
export const limitHeap = (): (() => void) => {
  setHeapGrowth(150)
  let growing = true
  return () => {
    if (growing) growing = !limitYoungHeap()
  }
}
