import { resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { CommandError, configFailure, runOrThrow, transientFailure } from '../cdk'
import { copyTables, type RemovedLakeFiles, rewriteFile } from '../snapshot'
import { closeSnapshot, type Database, dataFilePattern, quoteLiteral, type Snapshot } from '../snapshot/store'
import { openLake, type PlaceOptions } from './open'
import { lakeCatalogue, postgresPrefix } from './place'

/**
 * Removes the files that no version of a lake needs, and what was deleted from its catalogue. `expires` first leaves
 * only the newest version, in files without the deleted rows; `merges` also joins small files. Nothing else may write
 * to the lake: a file that is about to be committed looks like a leftover.
 */
export const removeFiles = async (
  db: Database,
  { expires, merges = false }: { readonly expires: boolean; readonly merges?: boolean },
): Promise<RemovedLakeFiles> => {
  // A file stores the bounds of its columns; rows stored in the catalogue have none.
  await db.run(`CALL ducklake_flush_inlined_data('lake')`)
  if (expires) await db.run(`CALL ducklake_rewrite_data_files('lake', delete_threshold => 0)`)
  if (merges) await db.run(`CALL ducklake_merge_adjacent_files('lake')`)
  if (expires) await db.run(`CALL ducklake_expire_snapshots('lake', older_than => now() + INTERVAL 1 DAY)`)
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
 * Removes Parquet files that are in the lake's table folders, have names like its own, and belong to no version.
 * DuckLake's `ducklake_delete_orphaned_files` would also remove files that someone else put there, so these are passed
 * to its cleanup by name.
 */
const removeOrphans = async (db: Database): Promise<number> => {
  const folders = await listTableFolders(db)
  const orphans = (await listUnknownFiles(db)).filter((path) => {
    const [, folder = '', name = ''] = /^(.*\/)([^/]*)$/.exec(path) ?? []
    return folders.has(folder) && dataFilePattern.test(name)
  })
  if (orphans.length === 0) return 0
  // Files without an id get one that no file of the lake has. DuckLake counts from 0.
  const rows = orphans.map((path, i) => `(${2n ** 62n + BigInt(i)}, ${quoteLiteral(path)}, false, now())`)
  await db.run(`INSERT INTO ${lakeCatalogue}.ducklake_files_scheduled_for_deletion VALUES ${rows.join(', ')}`)
  await db.run(cleanupSql)
  return orphans.length
}

/** The folders in which a lake has ever written the rows of a table, each with a trailing slash. */
const listTableFolders = async (db: Database): Promise<ReadonlySet<string>> => {
  const found = await db.query(`
    SELECT CASE WHEN schemas.path_is_relative THEN data.value ELSE '' END || schemas.path AS parent,
      CASE WHEN tables.path_is_relative THEN parent ELSE '' END || tables.path AS folder
    FROM ${lakeCatalogue}.ducklake_table AS tables
    JOIN ${lakeCatalogue}.ducklake_schema AS schemas USING (schema_id)
    CROSS JOIN (SELECT value FROM ducklake_options('lake') WHERE option_name = 'data_path') AS data`)
  return new Set(found.map(({ folder }) => String(folder)))
}

/**
 * Narrows the lowest and highest text that the catalogue keeps for a column since its beginning to those of the
 * remaining files.
 */
const narrowColumnBounds = async (db: Database): Promise<void> => {
  const wide = await db.query(`
    SELECT kept.table_id, kept.column_id,
      coalesce(min(found.min_value), '') AS least, coalesce(max(found.max_value), '') AS greatest
    FROM ${lakeCatalogue}.ducklake_table_column_stats AS kept
    JOIN ${lakeCatalogue}.ducklake_column AS columns
      ON columns.table_id = kept.table_id AND columns.column_id = kept.column_id AND columns.end_snapshot IS NULL
    LEFT JOIN (
      SELECT stats.* FROM ${lakeCatalogue}.ducklake_file_column_stats AS stats
      JOIN ${lakeCatalogue}.ducklake_data_file AS files
        ON files.data_file_id = stats.data_file_id AND files.end_snapshot IS NULL) AS found
      ON found.table_id = kept.table_id AND found.column_id = kept.column_id
    WHERE columns.column_type IN ('varchar', 'json') AND kept.min_value IS NOT NULL
    GROUP BY kept.table_id, kept.column_id, kept.min_value, kept.max_value
    HAVING kept.min_value <> least OR kept.max_value <> greatest`)
  for (const { table_id, column_id, least, greatest } of wide)
    await db.run(`
      UPDATE ${lakeCatalogue}.ducklake_table_column_stats
      SET min_value = ${quoteLiteral(String(least))}, max_value = ${quoteLiteral(String(greatest))}
      WHERE table_id = ${table_id} AND column_id = ${column_id}`)
}

/** The catalogue's tables in PostgreSQL. */
const catalogueTablesSql = `
  SELECT quote_ident(schemaname) || '.' || quote_ident(tablename) AS name FROM pg_tables
  WHERE schemaname = current_schema() AND starts_with(tablename, 'ducklake_')`

/**
 * True for the owner of the database and those with its rights, who may vacuum all its tables. Others only get a
 * warning from PostgreSQL.
 */
const ownerSql = `
  SELECT pg_has_role(datdba, 'USAGE') AS is_owner FROM pg_database WHERE datname = current_database()`

/** Opens a lake whose catalogue this user may rewrite, with all memory, since nothing here can be retried. */
export const openOwnLake = async (path: string, options: PlaceOptions): Promise<Snapshot> => {
  const snapshot = await runOrThrow(openLake(path, 'change', options))
  const { db } = snapshot
  try {
    await db.giveAllMemory()
    if (!path.startsWith(postgresPrefix)) return snapshot
    if ((await db.scalar(`SELECT is_owner FROM postgres_query('lake_locks', ${quoteLiteral(ownerSql)})`)) === true)
      return snapshot
    throw new CommandError(
      configFailure(
        `${db.path}: PostgreSQL lets only the owner of the database rewrite the catalogue's tables, which keep ` +
          'deleted rows until then. Nothing was changed; connect as the owner, such as with PGUSER.',
      ),
    )
  } catch (error) {
    await closeSnapshot(snapshot)
    throw error
  }
}

/** How long to wait for other transactions, in steps. */
const [waitSteps, stepMillis] = [60, 500]

/**
 * Waits until all transactions that began before this have ended: PostgreSQL keeps deleted rows that one could still
 * see.
 */
const waitForTransactions = async (db: Database, name: string): Promise<void> => {
  const ask = (sql: string) => db.scalar(`SELECT value FROM postgres_query('catalogue', ${quoteLiteral(sql)})`)
  const now = await ask('SELECT (txid_current() % 4294967296)::text AS value')
  const older = `
    SELECT count(*) AS value FROM pg_stat_activity
    WHERE datname = current_database() AND age(backend_xmin) > age('${now}'::xid)`
  for (let step = 0; Number(await ask(older)) > 0; step += 1) {
    if (step === waitSteps)
      throw new CommandError(
        transientFailure(
          `${name}: the rows are deleted, but as long as older transactions are open in its database ` +
            '(pg_stat_activity shows them), PostgreSQL keeps what they could see. ' +
            'End them, and run the same command again.',
        ),
      )
    await sleep(stepMillis)
  }
}

/**
 * Removes deleted data from the catalogue's own files. We may have no transaction open: PostgreSQL keeps what an open
 * one could see.
 */
export const rewriteCatalogue = async (path: string, options: PlaceOptions): Promise<void> => {
  if (!path.startsWith(postgresPrefix)) {
    const file = resolve(path.replace(/^ducklake:(?:duckdb:)?/, ''))
    await rewriteFile(file, { ending: 'forget', write: copyTables, isWanted: async () => true }, options)
    return
  }
  const snapshot = await runOrThrow(openLake(path, 'read', options))
  const { db } = snapshot
  try {
    await db.run(
      `USE memory; DETACH lake; ATTACH ${quoteLiteral(path.slice(postgresPrefix.length))} AS catalogue (TYPE postgres)`,
    )
    await waitForTransactions(db, db.path)
    const tables = await db.query(`SELECT name FROM postgres_query('catalogue', ${quoteLiteral(catalogueTablesSql)})`)
    const names = tables.map(({ name }) => String(name))
    // PostgreSQL's planner keeps samples of the columns, and dead rows of older samples.
    for (const sql of [`VACUUM (FULL, ANALYZE) ${names.join(', ')}`, 'VACUUM FULL pg_catalog.pg_statistic'])
      await db.run(`CALL postgres_execute('catalogue', ${quoteLiteral(sql)}, use_transaction => false)`)
  } finally {
    await closeSnapshot(snapshot)
  }
}
