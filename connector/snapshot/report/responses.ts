import type { Database } from '../database'
import { cellToNumber, cellToNumberOrNull } from './cells'

export type ResponseStatistics = {
  readonly answered: number
  readonly medianHours: number | null
  /** Nine of ten answers came within it. */
  readonly ninthDecileHours: number | null
  readonly buckets: ReadonlyArray<{ readonly label: string; readonly count: number }>
  /** Answers that are older than what they answer, or whose review has no time: in no other number than `answered`. */
  readonly unclear: number
}

/** Up to so many hours; the last without end. */
const responseBuckets: ReadonlyArray<readonly [label: string, hours: number]> = [
  ['< 1 h', 1],
  ['1–4 h', 4],
  ['4–24 h', 24],
  ['1–3 d', 72],
  ['3–7 d', 168],
  ['1–4 w', 672],
  ['> 4 w', Number.POSITIVE_INFINITY],
]

/** Asks the view response_times: from a review to its first answer. */
export const readResponseStatistics = async (db: Database): Promise<ResponseStatistics> => {
  const counts = responseBuckets.map(([, hours], i) => {
    const below = Number.isFinite(hours) ? `AND hours < ${hours}` : ''
    return `count(*) FILTER (hours >= ${responseBuckets[i - 1]?.[1] ?? 0} ${below}) AS bucket_${i}`
  })
  const [row] = await db.query(`
    SELECT count(*) AS answered, median(hours) FILTER (hours >= 0) AS median,
      quantile_cont(hours, 0.9) FILTER (hours >= 0) AS decile, count(*) - count(*) FILTER (hours >= 0) AS unclear, ${counts.join(', ')}
    FROM response_times`)
  return {
    answered: cellToNumber(row?.answered),
    medianHours: cellToNumberOrNull(row?.median),
    ninthDecileHours: cellToNumberOrNull(row?.decile),
    buckets: responseBuckets.map(([label], i) => ({ label, count: cellToNumber(row?.[`bucket_${i}`]) })),
    unclear: cellToNumber(row?.unclear),
  }
}
