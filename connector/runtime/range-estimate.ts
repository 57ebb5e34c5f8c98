/** Milliseconds since 1970. */
export type TimeRange = { readonly from: number; readonly to: number }

/** Estimates how much of a time range a list has covered from the times of some of its rows. */
export type RangeEstimate = {
  readonly add: (time: number) => void
  /** From 0 to 1: now, and when this run began. Undefined if the rows are not in order of time. */
  readonly covered: () => { readonly now: number; readonly before: number } | undefined
}

/**
 * A list that falls back by more than this fraction of the range has another order, such as by source and then time.
 */
const maxFallback = 0.05

/** `asked`: what the list covers in the end. `earlier`: what earlier runs have read of it. */
export const createRangeEstimate = (asked: TimeRange, earlier: TimeRange | undefined): RangeEstimate => {
  let [first, last]: (number | undefined)[] = []
  /** How often the time moved forward and back from one row to the next. */
  let [forward, back] = [0, 0]
  let [highest, lowest] = [Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY]
  /** The largest distance back from the highest time, and up from the lowest. */
  let [fall, rise] = [0, 0]
  return {
    add: (time) => {
      if (last !== undefined && time > last) forward += 1
      if (last !== undefined && time < last) back += 1
      highest = Math.max(highest, time)
      lowest = Math.min(lowest, time)
      fall = Math.max(fall, highest - time)
      rise = Math.max(rise, time - lowest)
      first ??= time
      last = time
    },
    covered: () => {
      if (first === undefined || last === undefined || forward + back === 0) return undefined
      const isAscending = forward >= 20 * back
      if (!isAscending && back < 20 * forward) return undefined
      const origin = isAscending ? Math.min(first, earlier?.from ?? first) : Math.max(first, earlier?.to ?? first)
      const length = isAscending ? asked.to - origin : origin - asked.from
      if (length <= 0 || (isAscending ? fall : rise) > maxFallback * length) return undefined
      const toFraction = (time: number): number => Math.min(1, Math.abs(time - origin) / length)
      return { now: toFraction(last), before: toFraction(first) }
    },
  }
}

/** A duration in milliseconds in words, such as `2 min`. */
export const formatTimeLeft = (millis: number): string => {
  const seconds = Math.round(millis / 1000)
  if (seconds < 60) return `${seconds} s`
  const minutes = Math.round(seconds / 60)
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`
}
