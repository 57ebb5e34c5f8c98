import {
  addRemoved,
  cleanExports,
  describeRequest,
  type ForgetReceipt,
  type ForgetRequest,
  type Forgotten,
  fillTombstones,
  listExportFiles,
  listUnsearched,
  type Removed,
  readParquetRows,
  sortRemoved,
  tombstones,
} from '../snapshot'
import {
  cleanStatesSql,
  closeSnapshot,
  type Database,
  forgottenRowsSql,
  forgottenTableName,
  forgottenTableSql,
  isSearched,
  listStoredTables,
  quoteIdentifier,
  quoteLiteral,
  type StoredTable,
  snapshotFormat,
  stateTableNames,
  streamOfTable,
  toPersonRows,
  versionsTableName,
} from '../snapshot/store'
import { countRemovedSql } from './append'
import type { PlaceOptions } from './open'
import { lakeCatalogue } from './place'
import { openOwnLake, removeFiles, rewriteCatalogue } from './rewrite'

/**
 * Removes the rows of persons from all versions of a lake and from Parquet files, and leaves tombstones so that no
 * later run brings them back. If killed, run it again to finish.
 */
export const forgetInLake = async (
  path: string,
  request: ForgetRequest,
  now: number,
  options: PlaceOptions = {},
): Promise<ForgetReceipt> => ({
  ...describeRequest(request, now),
  ...(await eraseFromLake(path, request, now, options)),
})

/**
 * Deletes the rows, rewrites the files that held them, expires all older versions and removes their files. Also removes
 * what a catalogue keeps about them, such as the lowest and highest text of a column.
 */
const eraseFromLake = async (
  path: string,
  request: ForgetRequest,
  now: number,
  options: PlaceOptions,
): Promise<Forgotten> => {
  const { files: exportFiles, others } = listExportFiles(request.exports)
  const snapshot = await openOwnLake(path, options)
  const { db } = snapshot
  let forgotten: Forgotten
  try {
    const tables = await listStoredTables(db, 'lake')
    const exported = await readParquetRows(db, exportFiles)
    await fillTombstones(db, 'lake', { tables, exported }, request, now)
    const files = await cleanExports(db, exportFiles, exported, request)
    const removed = await db.transaction(() => deleteRows(db, tables))
    const expired = removed.length > 0 || (await hasOlderRows(db, tables))
    const lakeFiles = await removeFiles(db, { expires: expired })
    forgotten = {
      removed,
      files,
      not_searched: listUnsearched({ tables, exported }, others),
      lake: { expired, ...lakeFiles },
    }
  } finally {
    await closeSnapshot(snapshot)
  }
  await rewriteCatalogue(path, options)
  return forgotten
}

/** Deletes the rows of those in `tombstones`, and keeps the tombstones. */
const deleteRows = async (db: Database, tables: ReadonlyArray<StoredTable>): Promise<ForgetReceipt['removed']> => {
  const kept = `lake.main.${forgottenTableName}`
  await db.run(forgottenTableSql('lake.main.'))
  await db.run(
    `INSERT INTO ${kept} SELECT * FROM ${tombstones} AS new
     WHERE NOT EXISTS (SELECT 1 FROM ${kept} AS known WHERE known.kind = new.kind AND known.id = new.id)`,
  )
  const found = tables.filter(isSearched).flatMap((table) => {
    const where = forgottenRowsSql(table.rows, tombstones)
    return where === undefined ? [] : [{ ...table, where }]
  })
  // Which rows are shown depends on other tables, so they are counted before any is deleted.
  const removed = new Map<string, Removed>()
  for (const { name, sql, where } of found) {
    const gone = Number(await db.scalar(`SELECT count(*) FROM lake.${sql} AS t WHERE ${where}`))
    const stream = streamOfTable(name)
    const isOfStream = name === versionsTableName(stream)
    const shown =
      isOfStream && gone > 0
        ? Number(await db.scalar(`SELECT count(*) FROM lake.main.${quoteIdentifier(stream)} AS t WHERE ${where}`))
        : gone
    addRemoved(removed, stream, shown, gone - shown)
  }
  for (const { name, sql, where } of found) {
    if (name === versionsTableName(streamOfTable(name))) await db.run(countRemovedSql(`lake.${sql}`, where))
    await db.run(`DELETE FROM lake.${sql} AS t WHERE ${where}`)
  }
  for (const { sql } of tables.filter(({ name }) => stateTableNames.includes(name)))
    await db.run(cleanStatesSql(`lake.${sql}`, tombstones))
  await db.lake?.saveMeta('format', String(snapshotFormat))
  return sortRemoved(removed)
}

/**
 * An older version of the lake has rows of those in `tombstones` that were deleted since, for example by a killed run.
 */
const hasOlderRows = async (db: Database, tables: ReadonlyArray<StoredTable>): Promise<boolean> => {
  const first = await db.scalar(`SELECT min(snapshot_id) FROM ducklake_snapshots('lake')`)
  for (const { schema, name, sql, rows, last } of (await addDroppedTables(db, tables)).filter(isSearched)) {
    const where = forgottenRowsSql(rows, tombstones)
    if (where === undefined) continue
    const place = `${quoteLiteral(schema)}, ${quoteLiteral(name)}`
    const inserted = `ducklake_table_insertions('lake', ${place}, ${first}, ${last})`
    for (const from of [`(FROM lake.${sql} AT (VERSION => ${first}))`, inserted])
      try {
        if (Number(await db.scalar(`SELECT count(*) FROM ${from} AS t WHERE ${where}`)) > 0) return true
      } catch (error) {
        // The table, or a column needed to search it, was added later.
        if (!/does not exist|not found|Binder Error/i.test(String(error))) throw error
      }
  }
  return false
}

/** A table of a lake. `last`: the newest version that has it. */
type VersionedTable = StoredTable & { readonly last: number }

/** The tables of a lake's newest version, plus those that only older versions still have. */
const addDroppedTables = async (
  db: Database,
  tables: ReadonlyArray<StoredTable>,
): Promise<ReadonlyArray<VersionedTable>> => {
  const newest = Number(await db.scalar(`SELECT max(snapshot_id) FROM ducklake_snapshots('lake')`))
  const dropped = await db.query(`
    SELECT schemas.schema_name AS schema, tables.table_name AS name, max(snapshot_id) AS last
    FROM ${lakeCatalogue}.ducklake_table AS tables JOIN ${lakeCatalogue}.ducklake_schema AS schemas USING (schema_id)
    JOIN ${lakeCatalogue}.ducklake_snapshot
      ON snapshot_id >= tables.begin_snapshot AND snapshot_id < tables.end_snapshot
    GROUP BY schema, name, tables.table_id`)
  const found: VersionedTable[] = []
  for (const row of dropped) {
    const [schema, name, last] = [String(row.schema), String(row.name), Number(row.last)]
    const sql = `${quoteIdentifier(schema)}.${quoteIdentifier(name)}`
    const columns = await db.query(`DESCRIBE FROM lake.${sql} AT (VERSION => ${last})`)
    const described = columns.map((column) => ({ name: String(column.column_name), type: String(column.column_type) }))
    found.push({ schema, name, sql, last, rows: toPersonRows(name, described) })
  }
  return [...tables.map((table) => ({ ...table, last: newest })), ...found]
}
