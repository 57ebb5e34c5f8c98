import * as E from 'fp-ts/Either'
import { Stopped } from '../cdk/cli'
import { configFailure } from '../cdk/failure'
import { type Database, openDatabase } from '../snapshot/database'
import { importSnapshot } from './import'
import { type Data, seed } from './seed'

/** Where the data comes from and stays. */
export type Place = {
  /** A file that keeps the data; without it the data is gone with the process. */
  readonly db?: string
  /** A snapshot to serve instead of made-up reviews. */
  readonly from?: string
}

const tablesOf = async (database: Database): Promise<ReadonlyArray<string>> =>
  (await database.query('SELECT table_name AS name FROM duckdb_tables()')).map(({ name }) => String(name))

const fill = async (database: Database, { db, from }: Place, data: Data): Promise<void> => {
  const present = await tablesOf(database)
  if (present.length === 0) return from === undefined ? seed(database, data) : importSnapshot(database, from, data.seed)
  if (!present.includes('setting') || !present.includes('review'))
    throw new Stopped(
      configFailure(`${db} holds other tables than a sandbox's. It is left as it is; give another path with --db.`),
    )
  if (from !== undefined)
    throw new Stopped(configFailure(`${db} holds data already, so --from ${from} cannot be read into it.`))
}

/** The service's data: what the file holds, else the snapshot, else seeded; rejects with `Stopped`. */
export const holdData = async (place: Place, data: Data): Promise<Database> => {
  const opened = await openDatabase(place.db ?? ':memory:')()
  if (E.isLeft(opened)) throw new Stopped(opened.left)
  const database = opened.right
  try {
    await fill(database, place, data)
    return database
  } catch (error) {
    database.close()
    throw error
  }
}
