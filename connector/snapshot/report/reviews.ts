import type { Database } from '../database'
import { cellToNumber, cellToNumberOrNull, cellToTextOrNull, cellToTimeOrNull } from './cells'

export type ChartPeriod = 'day' | 'week' | 'month' | 'quarter' | 'year'

export type ReviewStatistics = {
  readonly reviews: number
  /** Those that carry a rating; 0 means none. */
  readonly rated: number
  readonly meanRating: number | null
  /** The standard deviation of the ratings; null for fewer than two. */
  readonly deviation: number | null
  readonly lastMention: string | null
  /** How many have a rating that rounds to 1, 2, 3, 4 and 5. */
  readonly ratings: ReadonlyArray<number>
  readonly period: ChartPeriod
  /** Without a gap, oldest first; `start` as 2026-11-21. */
  readonly points: ReadonlyArray<PeriodStatistics>
  /** Those without a mention time, which are in no point. */
  readonly undated: number
}
/** The reviews mentioned in a period; `meanRating` is null where none of them is rated. */
export type PeriodStatistics = {
  readonly start: string
  readonly reviews: number
  readonly answered: number
  readonly meanRating: number | null
}

/** The longest span of days that a chart shows by each period. */
const maxDaysByPeriod: ReadonlyArray<readonly [ChartPeriod, number]> = [
  ['day', 45],
  ['week', 300],
  ['month', 1_500],
  ['quarter', 4_500],
]

const choosePeriod = (days: number): ChartPeriod => maxDaysByPeriod.find(([, most]) => days <= most)?.[0] ?? 'year'

/** Asks the views reviews_current and response_times. */
export const readReviewStatistics = async (db: Database): Promise<ReviewStatistics> => {
  const [sums] = await db.query(`
    SELECT count(*) AS reviews, count(rating) AS rated, avg(rating) AS mean, stddev_samp(rating) AS deviation,
      max(mention_time) AS last, date_diff('day', min(mention_time), max(mention_time)) AS days,
      count(*) - count(mention_time) AS undated
    FROM reviews_current`)
  const ratings = await db.query(
    `SELECT least(5, greatest(1, round(rating)))::INT AS rating, count(*) AS reviews FROM reviews_current WHERE rating IS NOT NULL GROUP BY 1`,
  )
  const period = choosePeriod(cellToNumber(sums?.days))
  const points = await db.query(`
    WITH found AS (
      SELECT date_trunc('${period}', mention_time)::DATE AS start, count(*) AS reviews, avg(rating) AS mean,
        count(*) FILTER (review_id IN (SELECT review_id FROM response_times)) AS answered
      FROM reviews_current WHERE mention_time IS NOT NULL GROUP BY 1)
    SELECT strftime(start, '%Y-%m-%d') AS start, coalesce(reviews, 0) AS reviews, coalesce(answered, 0) AS answered, mean
    FROM (SELECT unnest(generate_series(min(start), max(start), INTERVAL 1 ${period}))::DATE AS start FROM found)
    LEFT JOIN found USING (start) ORDER BY start`)
  return {
    reviews: cellToNumber(sums?.reviews),
    rated: cellToNumber(sums?.rated),
    meanRating: cellToNumberOrNull(sums?.mean),
    deviation: cellToNumberOrNull(sums?.deviation),
    lastMention: cellToTimeOrNull(sums?.last),
    ratings: [1, 2, 3, 4, 5].map((rating) => cellToNumber(ratings.find((row) => row.rating === rating)?.reviews)),
    period,
    points: points.map(({ start, reviews, answered, mean }) => ({
      start: cellToTextOrNull(start) ?? '',
      reviews: cellToNumber(reviews),
      answered: cellToNumber(answered),
      meanRating: cellToNumberOrNull(mean),
    })),
    undated: cellToNumber(sums?.undated),
  }
}
