import type { Database } from '../snapshot/database'
import { type DimensionCounts, seedDimensions } from './dimensions'
import { createIdPools, createPicker, reviewIdAt, selectReviews } from './generate'
import { reviewSources } from './names'
import { indexDefinitions, tableDefinitions } from './tables'

/** What the service holds at its start; the same values give the same data. */
export type SeedOptions = DimensionCounts & {
  readonly reviews: number
  readonly seed: number
  /** How many successive reviews a bulk change touches; a quarter of the reviews share their modifiedTime with so many others. */
  readonly batch: number
  readonly years: number
  /** The newest time in the data, milliseconds since 1970. */
  readonly until: number
}

const yearMs = 365.25 * 86_400_000

/** Makes and fills all tables by a few set operations. */
export const seedDatabase = async (database: Database, data: SeedOptions): Promise<void> => {
  await database.run(tableDefinitions)
  await seedDimensions(database, data)
  await database.run(
    `INSERT INTO review ${selectReviews(data.seed, 0, data.reviews, createReviewTimes(data), createIdPools(data))}`,
  )
  await database.run(`INSERT INTO deleted ${selectDeletions(data)}`)
  await database.run(`INSERT INTO setting VALUES ('seed', ${data.seed}), ('next', ${data.reviews})`)
  await database.run(indexDefinitions)
}

/** Arrivals evenly over the years; changes soon after, or much later, or in bulk. */
const createReviewTimes = ({ reviews, seed, batch, years, until }: SeedOptions) => {
  const pick = createPicker(seed)
  const start = until - years * yearMs
  const gap = (years * yearMs) / Math.max(1, reviews)
  const group = `(i // ${batch})`
  return {
    arrived: `${start} + (i + ${pick('jitter', 1000)} / 1000.0) * ${gap}`,
    modified: `CASE
      WHEN hash(${group} + ${seed * 7919}) % 4 = 0 THEN least(${until}, ${start} + (${group} + 1) * ${batch} * ${gap})
      WHEN ${pick('late', 10)} < 6 THEN least(${until}, arrived + 1000 * ${pick('soon', 3_600)})
      ELSE arrived + (${until} - arrived) * (${pick('when', 1_000_000)} / 1000000.0) END`,
  }
}

/** One review in fifty was deleted; its id lies between two that live. */
const selectDeletions = ({ reviews, seed, years, until }: SeedOptions): string => {
  const pick = createPicker(seed)
  const count = Math.floor(reviews / 50)
  const gap = (years * yearMs) / Math.max(1, count)
  return `SELECT ${reviewIdAt('(50 * i)')} + 7, [${reviewSources.map(([id]) => id).join(', ')}][1 + ${pick('deleted', reviewSources.length)}],
    epoch_ms((${until - years * yearMs} + (i + ${pick('deletion', 1000)} / 1000.0) * ${gap})::BIGINT) FROM range(${count}) AS t(i)`
}
