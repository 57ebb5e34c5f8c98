import * as E from 'fp-ts/Either'
import { CommandError, configFailure } from '../../cdk'
import { type Database, openDatabase } from '../../snapshot/store'
import {
  createIdPools,
  createPicker,
  type DimensionCounts,
  reviewIdAt,
  seedDimensions,
  selectReviews,
} from './generate'
import { importSnapshot } from './import-snapshot'
import { indexDefinitions, tableDefinitions } from './tables'
import { reviewSources } from './vocabulary'

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

/** Where the data comes from and stays. */
export type DataFiles = {
  /** A file that keeps the data; without it the data is gone with the process. */
  readonly db?: string
  /** A snapshot to serve instead of made-up reviews. */
  readonly from?: string
}

const listTables = async (database: Database): Promise<ReadonlyArray<string>> =>
  (await database.query('SELECT table_name AS name FROM duckdb_tables()')).map(({ name }) => String(name))

const fillDatabase = async (database: Database, { db, from }: DataFiles, data: SeedOptions): Promise<void> => {
  const present = await listTables(database)
  if (present.length === 0)
    return from === undefined ? seedDatabase(database, data) : importSnapshot(database, from, data.seed)
  if (!present.includes('setting') || !present.includes('review'))
    throw new CommandError(
      configFailure(`${db} holds other tables than a sandbox's. It is left as it is; give another path with --db.`),
    )
  if (from !== undefined)
    throw new CommandError(configFailure(`${db} holds data already, so --from ${from} cannot be read into it.`))
}

/** The service's data: what the file holds, else the snapshot, else seeded; rejects with `Stopped`. */
export const openData = async (place: DataFiles, data: SeedOptions): Promise<Database> => {
  const opened = await openDatabase(place.db ?? ':memory:')()
  if (E.isLeft(opened)) throw new CommandError(opened.left)
  const database = opened.right
  try {
    await fillDatabase(database, place, data)
    return database
  } catch (error) {
    database.close()
    throw error
  }
}
