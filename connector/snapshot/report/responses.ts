import type { Database } from '../database'
import { numberOf, numberOrNull } from './cells'

export type Responses = {
  readonly answered: number
  readonly medianHours: number | null
  /** Nine of ten answers came within it. */
  readonly ninthDecileHours: number | null
  readonly buckets: ReadonlyArray<{ readonly label: string; readonly count: number }>
  /** Answers that are older than what they answer, or whose review has no time: in no other number than `answered`. */
  readonly unclear: number
}

/** Up to so many hours; the last without end. */
const steps: ReadonlyArray<readonly [label: string, hours: number]> = [
  ['< 1 h', 1],
  ['1–4 h', 4],
  ['4–24 h', 24],
  ['1–3 d', 72],
  ['3–7 d', 168],
  ['1–4 w', 672],
  ['> 4 w', Number.POSITIVE_INFINITY],
]

/** Asks the view response_times: from a review to its first answer. */
export const readResponses = async (db: Database): Promise<Responses> => {
  const counts = steps.map(([, hours], i) => {
    const below = Number.isFinite(hours) ? `AND hours < ${hours}` : ''
    return `count(*) FILTER (hours >= ${steps[i - 1]?.[1] ?? 0} ${below}) AS bucket_${i}`
  })
  const [row] = await db.query(`
    SELECT count(*) AS answered, median(hours) FILTER (hours >= 0) AS median,
      quantile_cont(hours, 0.9) FILTER (hours >= 0) AS decile, count(*) - count(*) FILTER (hours >= 0) AS unclear, ${counts.join(', ')}
    FROM response_times`)
  return {
    answered: numberOf(row?.answered),
    medianHours: numberOrNull(row?.median),
    ninthDecileHours: numberOrNull(row?.decile),
    buckets: steps.map(([label], i) => ({ label, count: numberOf(row?.[`bucket_${i}`]) })),
    unclear: numberOf(row?.unclear),
  }
}
