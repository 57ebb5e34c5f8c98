import { chmodSync, closeSync, openSync, realpathSync, rmSync, statSync } from 'node:fs'
import { CommandError, configFailure, type Failure, runOrThrow, systemFailure, transientFailure } from '../cdk'
import { type Database, openDatabase, quoteIdentifier, quoteLiteral } from './store/database'
import { databaseOpenFailure, databaseWriteFailure } from './store/failures'
import { closeSnapshot, openSnapshot, type SnapshotOptions, snapshotAttachOptions } from './store/file'
import { chooseMemoryLimit } from './store/memory'
import { replaceFile } from './store/values'

/** The size of a file in bytes, before and after. */
type CompactResult = { readonly before: number; readonly after: number }

/** How a file is rewritten. */
type Rewrite<A> = {
  /** The suffix of the new file while it is being written. */
  readonly ending: 'compact' | 'forget'
  /** Fills the new database `new` from the old one, `old`, and checks it. */
  readonly write: (db: Database) => Promise<A>
  /**
   * Called once the new file is complete. Resolves to true if it is to replace the old one. `handle`: an open handle of
   * the old file, which must not be opened again.
   */
  readonly isWanted: (copy: string, target: string, handle: number) => Promise<boolean>
}

/**
 * Rewrites a snapshot into a new file next to it, and replaces the old one atomically: whenever it is stopped, the path
 * has a complete file. Removes what killed runs left next to it.
 */
export const rewriteSnapshot = async <A>(
  path: string,
  { ending, write, isWanted }: Rewrite<A>,
  options: SnapshotOptions = {},
): Promise<A> => {
  // The name may be a link, so its target is replaced. The log is written into the file first, since a log next to
  // another file would be lost.
  const snapshot = await runOrThrow(openSnapshot(path, 'change', options))
  const target = realpathSync(path)
  try {
    await snapshot.db.checkpoint().catch(throwAs((e) => databaseWriteFailure(path, e)))
    // No other process uses the file now, so the files next to it are not needed.
    for (const left of ['.compact', '.compact.wal', '.forget', '.forget.wal', '.tmp'])
      rmSync(`${target}${left}`, { recursive: true, force: true })
  } finally {
    await closeSnapshot(snapshot)
  }
  return rewriteFile(path, { ending, write, isWanted }, options)
}

/** The same for any DuckDB file that no other process uses and that has no log. */
export const rewriteFile = async <A>(
  path: string,
  { ending, write, isWanted }: Rewrite<A>,
  options: SnapshotOptions = {},
): Promise<A> => {
  const target = realpathSync(path)
  const copy = `${target}.${ending}`
  // A single thread writes the rows in order and fills every block; two leave more blocks half empty.
  const db = await runOrThrow(
    openDatabase(':memory:', { memory: [options.memoryLimit ?? chooseMemoryLimit()], spillPath: target, threads: 1 }),
  )
  // Closing any handle of the file releases DuckDB's lock, so this one stays open as long.
  const handle = openSync(target, 'r')
  try {
    // Other processes may read the file, but none can write it until this one is closed.
    await db
      .run(`ATTACH ${quoteLiteral(target)} AS old (READ_ONLY)`)
      .catch(throwAs((e) => databaseOpenFailure(path, e)))
    if (statSync(`${target}.wal`, { throwIfNoEntry: false })?.size)
      throw new CommandError(transientFailure(`${path} has just been changed by another process. Try again.`))
    const result = await db
      .withMemory(`the copy of ${path}`, async () => {
        for (const left of [copy, `${copy}.wal`]) rmSync(left, { force: true })
        await db.run(`DETACH DATABASE IF EXISTS new; ATTACH ${quoteLiteral(copy)} AS new (${snapshotAttachOptions})`)
        chmodSync(copy, 0o600)
        const written = await write(db)
        await db.run('CHECKPOINT new; DETACH new')
        return written
      })
      .catch(throwAs((e) => databaseWriteFailure(path, e)))
    if (await isWanted(copy, target, handle)) replaceFile(copy, target)
    return result
  } finally {
    db.close()
    closeSync(handle)
    for (const left of [copy, `${copy}.wal`]) rmSync(left, { force: true })
  }
}

const throwAs =
  (explain: (error: unknown) => Failure) =>
  (error: unknown): never => {
    throw error instanceof CommandError ? error : new CommandError(explain(error))
  }

/**
 * Rewrites a snapshot and keeps the smaller of the two files. DuckDB reuses freed space, but returns it to the disk
 * only at the end of the file, and a block shared by several tables only once none of them needs it.
 */
export const compactSnapshot = async (path: string, options?: SnapshotOptions): Promise<CompactResult> => {
  let before = 0
  const isWanted: Rewrite<void>['isWanted'] = async (copy, target) => {
    before = statSync(target).size
    return statSync(copy).size < before
  }
  const write = async (db: Database): Promise<void> => {
    await requireCopyableTables(db, path)
    await copyTables(db)
  }
  await rewriteSnapshot(path, { ending: 'compact', write, isWanted }, options)
  return { before, after: statSync(path).size }
}

/**
 * Refuses a file with tables that cannot be copied. DuckDB fills them in any order, regardless of foreign keys, and the
 * storage version of our files has no VARIANT. `byRow`: tables are filled by INSERT, which does not support generated
 * columns.
 */
export const requireCopyableTables = async (db: Database, path: string, byRow = false): Promise<void> => {
  const found = await db.query(`
    SELECT table_name AS name FROM duckdb_constraints() WHERE database_name = 'old' AND constraint_type = 'FOREIGN KEY'
    UNION SELECT table_name FROM duckdb_columns()
      WHERE database_name = 'old' AND regexp_matches(data_type, '\\bVARIANT\\b')
    UNION SELECT table_name FROM duckdb_tables()
      WHERE ${byRow} AND database_name = 'old' AND contains(sql, ' GENERATED ALWAYS AS')
    ORDER BY ALL`)
  if (found.length === 0) return
  const kinds = `${byRow ? 'generated columns, ' : ''}foreign keys or the type VARIANT`
  const names = found.map(({ name }) => name).join(', ')
  throw new CommandError(
    configFailure(
      `${path} has tables of your own with ${kinds}, which cannot be copied: ${names}. ` +
        'Nothing was changed; drop them first, or make them views.',
    ),
  )
}

/** Copies the database `old` into a new file, and compares both. */
export const copyTables = async (db: Database): Promise<void> => {
  await db.run('COPY FROM DATABASE old TO new; CHECKPOINT new')
  const [before, after] = [await describeDatabase(db, 'old'), await describeDatabase(db, 'new')]
  if (before !== after) throw unequalCopyError()
}

export const unequalCopyError = (): CommandError =>
  new CommandError(systemFailure('The copy differs from the file, so it was discarded. Please report this.'))

/**
 * Describes a database as text: its tables with their columns, rows and a hash of all values, and what else it
 * contains.
 */
const describeDatabase = async (db: Database, name: string): Promise<string> => {
  const lines: string[] = []
  const tables = await db.query(`
    SELECT schema_name AS schema, table_name AS name,
      string_agg(column_name || ' ' || data_type, ', ' ORDER BY column_index) AS columns
    FROM duckdb_columns() SEMI JOIN duckdb_tables() USING (database_name, schema_name, table_name)
    WHERE database_name = ${quoteLiteral(name)}
    GROUP BY ALL ORDER BY ALL`)
  for (const table of tables) {
    const rows = [name, String(table.schema), String(table.name)].map(quoteIdentifier).join('.')
    const [sums] = await db.query(
      `SELECT count(*) AS n, sum(hash(_compared_row)::HUGEINT)::VARCHAR AS hash FROM ${rows} AS _compared_row`,
    )
    lines.push(`${table.schema}.${table.name} (${table.columns}) ${sums?.n} ${sums?.hash}`)
  }
  const others = await db.query(`
    SELECT concat_ws(' ', kind, schema_name, name) AS text FROM (
      SELECT concat('view of ', column_count) AS kind, schema_name, view_name AS name, database_name, internal
      FROM duckdb_views()
      UNION ALL SELECT 'macro', schema_name, function_name, database_name, internal FROM duckdb_functions()
      UNION ALL SELECT 'type', schema_name, type_name, database_name, internal FROM duckdb_types()
      UNION ALL SELECT 'index', schema_name, index_name, database_name, false FROM duckdb_indexes()
      UNION ALL SELECT 'sequence', schema_name, sequence_name, database_name, false FROM duckdb_sequences())
    WHERE database_name = ${quoteLiteral(name)} AND NOT internal ORDER BY ALL`)
  return [...lines, ...others.map(({ text }) => String(text))].join('\n')
}
