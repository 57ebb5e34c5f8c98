import { chmodSync, closeSync, openSync, realpathSync, rmSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { CommandError, configFailure, type Failure, runOrThrow, systemFailure, transientFailure } from '../cdk'
import { type Database, openDatabase, quoteIdentifier, quoteLiteral, type Snapshot } from './store/database'
import { chooseMemoryLimit, databaseOpenFailure, databaseWriteFailure } from './store/failures'
import { closeSnapshot, openSnapshot, type SnapshotOptions, snapshotAttachOptions } from './store/file'
import { dataFilePattern, lakeCatalogue, postgresPrefix } from './store/lake-access'
import { replaceFile } from './store/values'

/** The size of a file in bytes, before and after. */
export type CompactResult = { readonly before: number; readonly after: number }

/** How a file is written anew. */
export type Rewrite<A> = {
  /** What is added to the name of the file as long as it is written. */
  readonly ending: 'compact' | 'forget'
  /** Fills the new database `new` from the old one, `old`, and checks it. */
  readonly write: (db: Database) => Promise<A>
  /** Called once the new file is whole: whether it takes the place of the old one. `handle`: of the old one, which is not to be opened again. */
  readonly isWanted: (copy: string, target: string, handle: number) => Promise<boolean>
}

/**
 * Writes a snapshot anew beside itself and puts the new file in its place at once: whenever it is stopped, the path leads to a whole file. What
 * killed runs have left beside it is removed.
 */
export const rewriteSnapshot = async <A>(
  path: string,
  { ending, write, isWanted }: Rewrite<A>,
  options: SnapshotOptions = {},
): Promise<A> => {
  // The name may be a link: what it leads to is replaced. Its log is brought into it, since a log beside another file would be lost.
  const snapshot = await runOrThrow(openSnapshot(path, 'change', options))
  const target = realpathSync(path)
  try {
    await snapshot.db.checkpoint().catch(throwAs((e) => databaseWriteFailure(path, e)))
    // No other process uses the file now, so nothing beside it is needed.
    for (const left of ['.compact', '.compact.wal', '.forget', '.forget.wal', '.tmp'])
      rmSync(`${target}${left}`, { recursive: true, force: true })
  } finally {
    await closeSnapshot(snapshot)
  }
  return rewriteFile(path, { ending, write, isWanted }, options)
}

/** The same for any DuckDB file that no other process uses, and that has no log. */
const rewriteFile = async <A>(
  path: string,
  { ending, write, isWanted }: Rewrite<A>,
  options: SnapshotOptions = {},
): Promise<A> => {
  const target = realpathSync(path)
  const copy = `${target}.${ending}`
  // One thread writes the rows in their order and fills every block; two leave more of them half empty.
  const db = await runOrThrow(
    openDatabase(':memory:', { memory: [options.memoryLimit ?? chooseMemoryLimit()], spillPath: target, threads: 1 }),
  )
  // Closing a handle of the file gives up DuckDB's lock, so this one stays open as long.
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
 * Writes a snapshot anew and keeps what is smaller. DuckDB reuses the place of what it has replaced, but gives it back to the disk only at the
 * end of the file, and a block that several tables share only once none of them needs it.
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
 * Refuses a file with tables that cannot be copied. DuckDB fills them in any order, whatever their foreign keys need, and the storage
 * version of our files has no VARIANT. `byRow`: tables are filled by INSERT, which generated columns do not take.
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
const copyTables = async (db: Database): Promise<void> => {
  await db.run('COPY FROM DATABASE old TO new; CHECKPOINT new')
  const [before, after] = [await describeDatabase(db, 'old'), await describeDatabase(db, 'new')]
  if (before !== after) throw unequalCopyError()
}

export const unequalCopyError = (): CommandError =>
  new CommandError(systemFailure('The copy is not equal to the file, so it was thrown away. Please report it.'))

/** The tables of a database with their columns, rows and a hash of all values, and what else it holds, as text. */
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

/** Which files of a lake went, as a receipt tells them. */
export type RemovedFiles = {
  /** Files that no version needs any more. */
  readonly removed_files: number
  /** Files of the lake's tables that no version has ever named: killed processes have left them. */
  readonly orphaned_files: number
  /** Other Parquet files in the lake's folder, which were neither searched nor touched. */
  readonly unknown_files: ReadonlyArray<string>
}

/**
 * Removes the files that no version of a lake needs, and of its catalogue what was deleted. `expires`: leaves the newest version alone before, in
 * files that hold none of the deleted rows. Nothing else may write to the lake: a file that is about to be committed looks like one that was left.
 */
export const rewriteLake = async (db: Database, expires: boolean): Promise<RemovedFiles> => {
  // A file tells the bounds of its columns; of rows that the catalogue holds itself nothing would.
  await db.run(`CALL ducklake_flush_inlined_data('lake')`)
  if (expires) {
    await db.run(`CALL ducklake_rewrite_data_files('lake', delete_threshold => 0)`)
    await db.run(`CALL ducklake_expire_snapshots('lake', older_than => now() + INTERVAL 1 DAY)`)
  }
  const removed = await db.query(cleanupSql)
  const orphanedFiles = await removeOrphans(db)
  const unknown = await listUnknownFiles(db)
  await narrowColumnBounds(db)
  return { removed_files: removed.length, orphaned_files: orphanedFiles, unknown_files: unknown }
}

const cleanupSql = `CALL ducklake_cleanup_old_files('lake', cleanup_all => true)`

const listUnknownFiles = async (db: Database): Promise<ReadonlyArray<string>> =>
  (await db.query(`CALL ducklake_delete_orphaned_files('lake', dry_run => true, cleanup_all => true)`)).map(
    ({ path }) => String(path),
  )

/**
 * Removes the Parquet files that lie where the lake writes those of its tables, under such names, and that no version names. DuckLake's own
 * `ducklake_delete_orphaned_files` removes all of its folder, also what someone else has put there, so these are given to its cleanup by name.
 */
const removeOrphans = async (db: Database): Promise<number> => {
  const folders = await listTableFolders(db)
  const orphans = (await listUnknownFiles(db)).filter((path) => {
    const [, folder = '', name = ''] = /^(.*\/)([^/]*)$/.exec(path) ?? []
    return folders.has(folder) && dataFilePattern.test(name)
  })
  if (orphans.length === 0) return 0
  // Files without an id get some that no file of the lake has; DuckLake counts from 0.
  const rows = orphans.map((path, i) => `(${2n ** 62n + BigInt(i)}, ${quoteLiteral(path)}, false, now())`)
  await db.run(`INSERT INTO ${lakeCatalogue}.ducklake_files_scheduled_for_deletion VALUES ${rows.join(', ')}`)
  await db.run(cleanupSql)
  return orphans.length
}

/** The folders in which a lake has ever written the rows of a table, each with a slash at its end. */
const listTableFolders = async (db: Database): Promise<ReadonlySet<string>> => {
  const found = await db.query(`
    SELECT CASE WHEN tables.path_is_relative THEN CASE WHEN schemas.path_is_relative THEN data.value ELSE '' END || schemas.path ELSE '' END || tables.path AS folder
    FROM ${lakeCatalogue}.ducklake_table AS tables JOIN ${lakeCatalogue}.ducklake_schema AS schemas USING (schema_id)
    CROSS JOIN (SELECT value FROM ducklake_options('lake') WHERE option_name = 'data_path') AS data`)
  return new Set(found.map(({ folder }) => String(folder)))
}

/** The catalogue keeps the least and the greatest text that a column has ever had: sets them to those of the files that are left. */
const narrowColumnBounds = async (db: Database): Promise<void> => {
  const wide = await db.query(`
    SELECT kept.table_id, kept.column_id, coalesce(min(found.min_value), '') AS least, coalesce(max(found.max_value), '') AS greatest
    FROM ${lakeCatalogue}.ducklake_table_column_stats AS kept
    JOIN ${lakeCatalogue}.ducklake_column AS columns ON columns.table_id = kept.table_id AND columns.column_id = kept.column_id AND columns.end_snapshot IS NULL
    LEFT JOIN (SELECT stats.* FROM ${lakeCatalogue}.ducklake_file_column_stats AS stats JOIN ${lakeCatalogue}.ducklake_data_file AS files
      ON files.data_file_id = stats.data_file_id AND files.end_snapshot IS NULL) AS found
      ON found.table_id = kept.table_id AND found.column_id = kept.column_id
    WHERE columns.column_type IN ('varchar', 'json') AND kept.min_value IS NOT NULL
    GROUP BY kept.table_id, kept.column_id, kept.min_value, kept.max_value
    HAVING kept.min_value <> least OR kept.max_value <> greatest`)
  for (const { table_id, column_id, least, greatest } of wide)
    await db.run(
      `UPDATE ${lakeCatalogue}.ducklake_table_column_stats SET min_value = ${quoteLiteral(String(least))}, max_value = ${quoteLiteral(String(greatest))}
       WHERE table_id = ${table_id} AND column_id = ${column_id}`,
    )
}

/** The catalogue's tables in PostgreSQL. */
const catalogueTablesSql = `SELECT quote_ident(schemaname) || '.' || quote_ident(tablename) AS name FROM pg_tables WHERE schemaname = current_schema() AND starts_with(tablename, 'ducklake_')`

/** True for the owner of the database and those with its rights, whom PostgreSQL lets vacuum all of its tables. Others it lets off with a warning. */
const ownerSql = `SELECT pg_has_role(datdba, 'USAGE') AS is_owner FROM pg_database WHERE datname = current_database()`

/** Opens a lake whose catalogue this user may write anew, with all memory, since nothing here can be run again. */
export const openOwnLake = async (path: string, options: SnapshotOptions): Promise<Snapshot> => {
  const snapshot = await runOrThrow(openSnapshot(path, 'change', options))
  const { db } = snapshot
  try {
    await db.giveAllMemory()
    if (!path.startsWith(postgresPrefix)) return snapshot
    if ((await db.scalar(`SELECT is_owner FROM postgres_query('lake_locks', ${quoteLiteral(ownerSql)})`)) === true)
      return snapshot
    throw new CommandError(
      configFailure(
        `${db.path}: PostgreSQL lets only the owner of the database write the catalogue's tables anew, which keep deleted rows until then. Nothing was changed; connect as the owner, such as with PGUSER.`,
      ),
    )
  } catch (error) {
    await closeSnapshot(snapshot)
    throw error
  }
}

/** For how long to wait for transactions of others, in steps. */
const [waitSteps, stepMillis] = [60, 500]

/** Waits until no transaction is left that began before this: PostgreSQL keeps deleted rows which one could still see. */
const waitForTransactions = async (db: Database, name: string): Promise<void> => {
  const ask = (sql: string) => db.scalar(`SELECT value FROM postgres_query('catalogue', ${quoteLiteral(sql)})`)
  const now = await ask('SELECT (txid_current() % 4294967296)::text AS value')
  const older = `SELECT count(*) AS value FROM pg_stat_activity WHERE datname = current_database() AND age(backend_xmin) > age('${now}'::xid)`
  for (let step = 0; Number(await ask(older)) > 0; step += 1) {
    if (step === waitSteps)
      throw new CommandError(
        transientFailure(
          `${name}: the rows are deleted, but as long as older transactions are open in its database (pg_stat_activity shows them), PostgreSQL keeps what they could see. End them, and run the same command again.`,
        ),
      )
    await sleep(stepMillis)
  }
}

/** Takes out of the catalogue's own files what was deleted there. Nothing of ours may be open in it: PostgreSQL keeps what an open transaction could see. */
export const rewriteCatalogue = async (path: string, options: SnapshotOptions): Promise<void> => {
  if (!path.startsWith(postgresPrefix)) {
    const file = resolve(path.replace(/^ducklake:(?:duckdb:)?/, ''))
    await rewriteFile(file, { ending: 'forget', write: copyTables, isWanted: async () => true }, options)
    return
  }
  const snapshot = await runOrThrow(openSnapshot(path, 'read', options))
  const { db } = snapshot
  try {
    await db.run(
      `USE memory; DETACH lake; ATTACH ${quoteLiteral(path.slice(postgresPrefix.length))} AS catalogue (TYPE postgres)`,
    )
    await waitForTransactions(db, db.path)
    const tables = await db.query(`SELECT name FROM postgres_query('catalogue', ${quoteLiteral(catalogueTablesSql)})`)
    const names = tables.map(({ name }) => String(name))
    // PostgreSQL's planner keeps samples of the columns; of the old ones, dead rows.
    for (const sql of [`VACUUM (FULL, ANALYZE) ${names.join(', ')}`, 'VACUUM FULL pg_catalog.pg_statistic'])
      await db.run(`CALL postgres_execute('catalogue', ${quoteLiteral(sql)}, use_transaction => false)`)
  } finally {
    await closeSnapshot(snapshot)
  }
}
