import * as E from 'fp-ts/Either'
import { CommandError } from '../cdk/cli'
import { configFailure } from '../cdk/failure'
import { type Database, openDatabase } from '../snapshot/database'
import { importSnapshot } from './import'
import { type SeedOptions, seedDatabase } from './seed'

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
