import type { Database } from '../snapshot/database'
import { type Extent, seedDimensions } from './dimensions'
import { generated, idAt, picker, seededPools } from './generate'
import { sources } from './names'
import { indexes, tables } from './tables'

/** What the service holds at its start; the same values give the same data. */
export type Data = Extent & {
  readonly reviews: number
  readonly seed: number
  /** How many successive reviews a bulk change touches; a quarter of the reviews share their modifiedTime with so many others. */
  readonly batch: number
  readonly years: number
  /** The newest time in the data, milliseconds since 1970. */
  readonly until: number
}

const year = 365.25 * 86_400_000

/** Makes and fills all tables by a few set operations. */
export const seed = async (database: Database, data: Data): Promise<void> => {
  await database.run(tables)
  await seedDimensions(database, data)
  await database.run(`INSERT INTO review ${generated(data.seed, 0, data.reviews, timesOf(data), seededPools(data))}`)
  await database.run(`INSERT INTO deleted ${deletions(data)}`)
  await database.run(`INSERT INTO setting VALUES ('seed', ${data.seed}), ('next', ${data.reviews})`)
  await database.run(indexes)
}

/** Arrivals evenly over the years; changes soon after, or much later, or in bulk. */
const timesOf = ({ reviews, seed, batch, years, until }: Data) => {
  const pick = picker(seed)
  const start = until - years * year
  const gap = (years * year) / Math.max(1, reviews)
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
const deletions = ({ reviews, seed, years, until }: Data): string => {
  const pick = picker(seed)
  const count = Math.floor(reviews / 50)
  const gap = (years * year) / Math.max(1, count)
  return `SELECT ${idAt('(50 * i)')} + 7, [${sources.map(([id]) => id).join(', ')}][1 + ${pick('deleted', sources.length)}],
    epoch_ms((${until - years * year} + (i + ${pick('deletion', 1000)} / 1000.0) * ${gap})::BIGINT) FROM range(${count}) AS t(i)`
}
