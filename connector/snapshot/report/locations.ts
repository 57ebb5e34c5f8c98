import type { Database } from '../database'
import { cellToNumber, cellToNumberOrNull, cellToTextOrNull } from './cells'
import { estimateRating, type RatingEstimate } from './estimate'
import type { ReviewStatistics } from './reviews'

export type LocationStatistics = {
  readonly id: string
  readonly name: string | null
  readonly reviews: number
  readonly rated: number
  readonly meanRating: number | null
  /** Null: none of its reviews carries a rating. */
  readonly estimate: RatingEstimate | null
  readonly openLiabilities: number
  readonly medianHours: number | null
}

/** Every location that a review names, by the lower end of its estimate: many good ratings stand before a few. */
export const readLocationStatistics = async (
  db: Database,
  { meanRating, deviation }: ReviewStatistics,
): Promise<ReadonlyArray<LocationStatistics>> => {
  const rows = await db.query(`
    SELECT location_id::VARCHAR AS id, location_name, reviews, rated, rating.mean, open_liabilities, median_hours_to_answer AS hours
    FROM location_scorecard
    JOIN (SELECT location_id, avg(rating) AS mean FROM reviews_current GROUP BY 1) AS rating USING (location_id)
    ORDER BY reviews DESC, id`)
  const locations = rows.map((row): LocationStatistics => {
    const mean = cellToNumberOrNull(row.mean)
    const rated = cellToNumber(row.rated)
    return {
      id: String(row.id),
      name: cellToTextOrNull(row.location_name),
      reviews: cellToNumber(row.reviews),
      rated,
      meanRating: mean,
      estimate:
        mean === null || meanRating === null
          ? null
          : estimateRating({ count: rated, mean }, { overall: meanRating, deviation: deviation ?? 0 }),
      openLiabilities: cellToNumber(row.open_liabilities),
      medianHours: cellToNumberOrNull(row.hours),
    }
  })
  return locations.toSorted((a, b) => (b.estimate?.low ?? -1) - (a.estimate?.low ?? -1))
}
