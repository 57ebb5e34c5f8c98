import type { Database } from '../database'
import { numberOf, numberOrNull, textOrNull } from './cells'
import { type Estimate, estimate } from './estimate'
import type { Reviews } from './reviews'

export type Location = {
  readonly id: string
  readonly name: string | null
  readonly reviews: number
  readonly rated: number
  readonly meanRating: number | null
  /** Null: none of its reviews carries a rating. */
  readonly estimate: Estimate | null
  readonly openLiabilities: number
  readonly medianHours: number | null
}

/** Every location that a review names, by the lower end of its estimate: many good ratings stand before a few. */
export const readLocations = async (
  db: Database,
  { meanRating, deviation }: Reviews,
): Promise<ReadonlyArray<Location>> => {
  const rows = await db.query(`
    SELECT location_id::VARCHAR AS id, location_name, reviews, rated, rating.mean, open_liabilities, median_hours_to_answer AS hours
    FROM location_scorecard
    JOIN (SELECT location_id, avg(rating) AS mean FROM reviews_current GROUP BY 1) AS rating USING (location_id)
    ORDER BY reviews DESC, id`)
  const locations = rows.map((row): Location => {
    const mean = numberOrNull(row.mean)
    const rated = numberOf(row.rated)
    return {
      id: String(row.id),
      name: textOrNull(row.location_name),
      reviews: numberOf(row.reviews),
      rated,
      meanRating: mean,
      estimate:
        mean === null || meanRating === null
          ? null
          : estimate({ count: rated, mean }, { overall: meanRating, deviation: deviation ?? 0 }),
      openLiabilities: numberOf(row.open_liabilities),
      medianHours: numberOrNull(row.hours),
    }
  })
  return locations.toSorted((a, b) => (b.estimate?.low ?? -1) - (a.estimate?.low ?? -1))
}
