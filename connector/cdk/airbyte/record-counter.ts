/** Counts the records of an input, to compare them with the source's own counts (`sourceStats.recordCount`). */
export type RecordCounter = {
  /** The records of each stream since its last state. */
  readonly counts: Map<string, number>
  /** A state of a single stream came. The count in a state of all streams is then ambiguous. */
  hasStreamStates: boolean
}

export const createRecordCounter = (): RecordCounter => ({ counts: new Map(), hasStreamStates: false })

export const countRecord = ({ counts }: RecordCounter, stream: string): void => {
  counts.set(stream, (counts.get(stream) ?? 0) + 1)
}

/** The problem with the count in a stream's state, if there is one. `counted`: NaN if the source does not count. */
export const checkStreamCount = (counter: RecordCounter, stream: string, counted: number): string | undefined => {
  counter.hasStreamStates = true
  const received = counter.counts.get(stream) ?? 0
  counter.counts.delete(stream)
  return describeDifference(counted, received, ` of ${stream}`)
}

/** The same for a state of all streams. */
export const checkTotalCount = ({ counts, hasStreamStates }: RecordCounter, counted: number): string | undefined => {
  const received = [...counts.values()].reduce((sum, count) => sum + count, 0)
  counts.clear()
  return hasStreamStates ? undefined : describeDifference(counted, received, '')
}

const describeDifference = (counted: number, received: number, of: string): string | undefined =>
  Number.isFinite(counted) && counted !== received
    ? `is a state whose source counted ${counted} records${of} since the previous state, but ${received} arrived`
    : undefined
