import { chmodSync, closeSync, fsyncSync, openSync, realpathSync, renameSync, rmSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { CommandError, configFailure, type Failure, runOrThrow, systemFailure, transientFailure } from '../cdk'
import { type Database, openDatabase, quoteIdentifier, quoteLiteral } from './store/database'
import { databaseOpenFailure, databaseWriteFailure } from './store/failures'
import { chooseMemoryLimit } from './store/memory'
import { closeSnapshot, openSnapshot, type SnapshotOptions, snapshotRowGroupSize } from './store/open'

/** The size of a file in bytes, before and after. */
export type CompactResult = { readonly before: number; readonly after: number }

/**
 * Writes a snapshot anew beside itself, compares every table, and puts the new file, if it is smaller, in its place at once. Whenever it is stopped, the path
 * leads to a whole file. DuckDB reuses the place of what it has replaced, but gives it back to the disk only at the end of the file, and a
 * block that several tables share only once none of them needs it.
 */
export const compactSnapshot = async (path: string, options: SnapshotOptions = {}): Promise<CompactResult> => {
  // The name may be a link: what it leads to is replaced. Its log is brought into it, since a log beside another file would be lost.
  const snapshot = await runOrThrow(openSnapshot(path, 'change', options))
  try {
    await snapshot.db.checkpoint()
  } finally {
    await closeSnapshot(snapshot)
  }
  const target = realpathSync(path)
  // One thread writes the rows in their order and fills every block; two leave more of them half empty.
  const copy = `${target}.compact`
  const db = await runOrThrow(
    openDatabase(':memory:', { memory: [options.memoryLimit ?? chooseMemoryLimit()], spillPath: target, threads: 1 }),
  )
  try {
    // Other processes may read the file, but none can write it until this one is closed.
    await db
      .run(`ATTACH ${quoteLiteral(target)} AS old (READ_ONLY)`)
      .catch(throwAs((e) => databaseOpenFailure(path, e)))
    if (statSync(`${target}.wal`, { throwIfNoEntry: false })?.size)
      throw new CommandError(transientFailure(`${path} has just been changed by another process. Try again.`))
    // What a run before has left that was killed.
    for (const left of [copy, `${copy}.wal`]) rmSync(left, { force: true })
    await db
      .withMemory(`the copy of ${path}`, () => copyTables(db, copy))
      .catch(throwAs((e) => databaseWriteFailure(path, e)))
    const before = statSync(target).size
    if (statSync(copy).size < before) replaceFile(copy, target)
    return { before, after: statSync(target).size }
  } finally {
    db.close()
    for (const left of [copy, `${copy}.wal`]) rmSync(left, { force: true })
  }
}

const throwAs =
  (explain: (error: unknown) => Failure) =>
  (error: unknown): never => {
    throw error instanceof CommandError ? error : new CommandError(explain(error))
  }

/** Copies the database `old` into a new file, and compares both. */
const copyTables = async (db: Database, copy: string): Promise<void> => {
  await db.run(`ATTACH ${quoteLiteral(copy)} AS new (ROW_GROUP_SIZE ${snapshotRowGroupSize})`)
  chmodSync(copy, 0o600)
  await db.run('COPY FROM DATABASE old TO new; CHECKPOINT new')
  const [before, after] = [await describeDatabase(db, 'old'), await describeDatabase(db, 'new')]
  await db.run('DETACH new')
  if (before !== after)
    throw new CommandError(systemFailure('The copy is not equal to the file, so it was thrown away. Please report it.'))
}

/** The tables of a database with their columns, rows and a hash of all values, and its views, as text. */
const describeDatabase = async (db: Database, name: string): Promise<string> => {
  const lines: string[] = []
  const columns = await db.query(`
    SELECT table_name AS name, string_agg(column_name || ' ' || data_type, ', ' ORDER BY column_index) AS columns FROM duckdb_columns()
    WHERE database_name = ${quoteLiteral(name)} AND schema_name = 'main' AND table_name IN (SELECT table_name FROM duckdb_tables() WHERE database_name = ${quoteLiteral(name)})
    GROUP BY ALL ORDER BY ALL`)
  for (const table of columns) {
    const rows = `${name}.${quoteIdentifier(String(table.name))}`
    const [sums] = await db.query(
      `SELECT count(*) AS n, sum(hash(_compared_row)::HUGEINT)::VARCHAR AS hash FROM ${rows} AS _compared_row`,
    )
    lines.push(`${table.name} (${table.columns}) ${sums?.n} ${sums?.hash}`)
  }
  const views = await db.query(
    `SELECT view_name AS name, column_count AS columns FROM duckdb_views() WHERE database_name = ${quoteLiteral(name)} AND NOT internal ORDER BY ALL`,
  )
  return [...lines, ...views.map((view) => `${view.name} ${view.columns}`)].join('\n')
}

/** Puts one file in the place of another; both are on one disk. */
const replaceFile = (from: string, to: string): void => {
  try {
    flush(from)
    renameSync(from, to)
    flush(dirname(to))
  } catch (error) {
    throw new CommandError(
      configFailure(`${to} cannot be replaced. ${(error as NodeJS.ErrnoException).code}: check the folder.`),
    )
  }
}

const flush = (path: string): void => {
  const file = openSync(path, 'r')
  try {
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
}
