import { createHash } from 'node:crypto'
import { addDroppedTables } from './diff'
import {
  describeFile,
  isParquet,
  listExportFiles,
  type ParquetRows,
  type RewrittenFile,
  readParquetRows,
  removeLetters,
  removeParquetRows,
} from './export-parquet'
import {
  openOwnLake,
  type RemovedFiles,
  requireCopyableTables,
  rewriteCatalogue,
  rewriteLake,
  rewriteSnapshot,
  unequalCopyError,
} from './rewrite'
import { type Database, quoteLiteral } from './store/database'
import { closeSnapshot, type SnapshotOptions } from './store/file'
import {
  cleanStatesSql,
  collectForgotten,
  forgottenRowsSql,
  forgottenTableName,
  forgottenTableSql,
  hasForgottenTable,
  isSearched,
  listStoredTables,
  type StoredTable,
  stateTableNames,
} from './store/forgotten'
import { isLakePath } from './store/lake-access'
import { snapshotFormat, updateRowCountsSql } from './store/metadata'
import { historyTableName, listStreamTables } from './store/tables'

/** Whom to forget. `exports`: Parquet files, folders of them, and files of dead letters, that are cleaned too. */
export type ForgetRequest = {
  readonly reviews: ReadonlyArray<string>
  readonly visitRecords: ReadonlyArray<string>
  readonly exports: ReadonlyArray<string>
}

/** What was removed, without a word of it. */
export type ForgetReceipt = {
  /** When, in ISO 8601. */
  readonly time: string
  /** SHA-256 of each id that was asked for. */
  readonly asked: { readonly reviews: ReadonlyArray<string>; readonly visit_records: ReadonlyArray<string> }
  /** By table: rows, and older versions of rows. */
  readonly removed: ReadonlyArray<{ readonly table: string; readonly rows: number; readonly versions: number }>
  readonly files: ReadonlyArray<RewrittenFile>
  /** Tables and files that name no person by an id that is known here. */
  readonly not_searched: ReadonlyArray<string>
  /** Of a lake: whether its older versions were expired, and how many files went. */
  readonly lake?: RemovedFiles & { readonly expired: boolean }
}

const hashId = (id: string): string => createHash('sha256').update(id).digest('hex')

/** The tombstones, in the memory of the process that writes the file anew. */
const tombstones = `memory.main.${forgottenTableName}`

type Removed = ForgetReceipt['removed'][number]

/** Adds the rows that went from a table, or from its history. */
const addRemoved = (removed: Map<string, Removed>, name: string, gone: number): void => {
  const historyPrefix = historyTableName('')
  const isHistory = name.startsWith(historyPrefix)
  const table = isHistory ? name.slice(historyPrefix.length) : name
  const sum = removed.get(table) ?? { table, rows: 0, versions: 0 }
  if (gone > 0) removed.set(table, { ...sum, ...(isHistory ? { versions: gone } : { rows: sum.rows + gone }) })
}

const sortRemoved = (removed: ReadonlyMap<string, Removed>): ReadonlyArray<Removed> =>
  [...removed.values()].sort((a, b) => (a.table < b.table ? -1 : 1))

/** Counts the rows of each table anew, and marks the format, which older versions of this package refuse. */
const updateMetadata = async (db: Database): Promise<void> => {
  const streams = await listStreamTables(db)
  const histories = streams.filter(({ history }) => history).map(({ name }) => name)
  const counts = updateRowCountsSql(
    streams.map(({ name }) => name),
    histories,
  )
  for (const sql of [...counts, `UPDATE _meta SET value = '${snapshotFormat}' WHERE name = 'format'`]) await db.run(sql)
}

/** Copies states into memory and cleans them there: what they held before is never in the new file. */
const copyStates = async (db: Database, table: string, copy = 'memory.main._cleaned_states'): Promise<string> => {
  await db.run(`CREATE OR REPLACE TABLE ${copy} AS FROM ${table}; ${cleanStatesSql(copy, tombstones)}`)
  return copy
}

/** Fills `new` with the rows of `old` but those of someone forgotten, which are never written, and compares both. */
const copyKeptRows = async (db: Database, tables: ReadonlyArray<StoredTable>): Promise<ForgetReceipt['removed']> => {
  await db.run('COPY FROM DATABASE old TO new (SCHEMA)')
  const removed = new Map<string, Removed>()
  for (const table of tables) {
    const { name, sql } = table
    if (name === forgottenTableName) continue
    const condition = isSearched(table) ? forgottenRowsSql(table.rows, tombstones) : undefined
    const from = stateTableNames.includes(name) ? await copyStates(db, `old.${sql}`) : `old.${sql}`
    const kept = `${from} AS t${condition === undefined ? '' : ` WHERE NOT ${condition}`}`
    await db.run(`INSERT INTO new.${sql} SELECT * FROM ${kept}`)
    const describe = (from: string) =>
      db.query(`SELECT count(*) AS n, sum(hash(t)::HUGEINT)::VARCHAR AS hash FROM ${from}`)
    const [[before], [after]] = [await describe(kept), await describe(`new.${sql} AS t`)]
    if (before?.n !== after?.n || before?.hash !== after?.hash) throw unequalCopyError()
    addRemoved(removed, name, Number(await db.scalar(`SELECT count(*) FROM old.${sql}`)) - Number(after?.n))
  }
  await db.run(
    `${forgottenTableSql('new.main.')}; INSERT INTO new.main.${forgottenTableName} FROM ${tombstones}; USE new`,
  )
  await updateMetadata(db)
  await db.run('USE memory')
  return sortRemoved(removed)
}

/** Where rows of a person may be: the tables of a file or a lake, and Parquet files. */
type Searched = {
  readonly tables: ReadonlyArray<StoredTable>
  readonly exported: ReadonlyArray<ParquetRows>
}

/** Fills `tombstones` with all who are forgotten by now. `attached`: the name of the file or lake. */
const fillTombstones = async (
  db: Database,
  attached: string,
  { tables, exported }: Searched,
  request: ForgetRequest,
  now: number,
): Promise<void> => {
  const sources = [
    ...tables.filter(isSearched).map(({ rows, sql }) => [rows, `${attached}.${sql}`] as const),
    ...exported.map(({ rows, sql }) => [rows, sql] as const),
  ]
  await db.run(`DROP TABLE IF EXISTS ${tombstones}; ${forgottenTableSql('memory.main.')}`)
  if (await hasForgottenTable(db, attached))
    await db.run(`INSERT INTO ${tombstones} FROM ${attached}.main.${forgottenTableName}`)
  await collectForgotten(db, tombstones, request, sources, now)
}

/** Takes those in `tombstones` out of Parquet files and dead letters. */
const cleanExports = async (
  db: Database,
  files: ReadonlyArray<string>,
  exported: ReadonlyArray<ParquetRows>,
  request: ForgetRequest,
): Promise<ReadonlyArray<RewrittenFile>> => {
  const cleaned: Array<RewrittenFile | undefined> = []
  for (const file of exported) cleaned.push(await removeParquetRows(db, file, forgottenRowsSql(file.rows, tombstones)))
  const visits = new Set(
    (await db.query(`SELECT id FROM ${tombstones} WHERE kind = 'visit_record'`)).map(({ id }) => id),
  )
  for (const file of files.filter((each) => !isParquet(each)))
    cleaned.push(await removeLetters(file, request.visitRecords, (visit) => visits.has(hashId(visit.trim()))))
  return cleaned.filter((file) => file !== undefined)
}

const isUnsearched = ({ rows }: StoredTable | ParquetRows): boolean => forgottenRowsSql(rows) === undefined

/** `others`: files of the exports that were not read. */
const listUnsearched = ({ tables, exported }: Searched, others: ReadonlyArray<string>): ReadonlyArray<string> => [
  ...tables
    .filter((table) => isSearched(table) && isUnsearched(table) && !table.name.startsWith(historyTableName('')))
    .map(({ name }) => name),
  ...exported.filter(isUnsearched).map(({ path }) => path),
  ...others,
]

/**
 * Removes the rows of persons, and their older versions, from every table of a file or a lake and from Parquet files, and leaves tombstones, by
 * which no later run brings them back. Run again after a kill, it finishes.
 */
export const forgetPersons = async (
  path: string,
  request: ForgetRequest,
  now: number,
  options: SnapshotOptions = {},
): Promise<ForgetReceipt> => ({
  time: new Date(now).toISOString(),
  asked: { reviews: request.reviews.map(hashId), visit_records: request.visitRecords.map(hashId) },
  ...(isLakePath(path)
    ? await forgetInLake(path, request, now, options)
    : await forgetInFile(path, request, now, options)),
})

type Forgotten = Omit<ForgetReceipt, 'time' | 'asked'>

/** The file is written anew without the rows, so that no byte of them is left. */
const forgetInFile = async (
  path: string,
  request: ForgetRequest,
  now: number,
  options: SnapshotOptions,
): Promise<Forgotten> => {
  const files: RewrittenFile[] = []
  const { files: exportFiles, others } = listExportFiles(request.exports)
  const forgotten = await rewriteSnapshot(
    path,
    {
      ending: 'forget',
      write: async (db) => {
        await requireCopyableTables(db, path, true)
        const tables = await listStoredTables(db, 'old')
        const exported = await readParquetRows(db, exportFiles)
        await fillTombstones(db, 'old', { tables, exported }, request, now)
        // The file is last: as long as it has the rows, a run that is killed can be run again with the id of a visit.
        files.push(...(await cleanExports(db, exportFiles, exported, request)))
        return { removed: await copyKeptRows(db, tables), not_searched: listUnsearched({ tables, exported }, others) }
      },
      isWanted: async (copy, target, handle) => {
        files.push({ path, before: await describeFile(target, handle), after: await describeFile(copy) })
        return true
      },
    },
    options,
  )
  return { ...forgotten, files }
}

/**
 * The rows are deleted, the files that held them are written anew, and all older versions are expired and their files removed. What a catalogue
 * keeps of them, such as the least and the greatest text of a column, goes too.
 */
const forgetInLake = async (
  path: string,
  request: ForgetRequest,
  now: number,
  options: SnapshotOptions,
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
    const lakeFiles = await rewriteLake(db, expired)
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
  const removed = new Map<string, Removed>()
  const kept = `lake.main.${forgottenTableName}`
  await db.run(forgottenTableSql('lake.main.'))
  await db.run(
    `INSERT INTO ${kept} SELECT * FROM ${tombstones} AS new
     WHERE NOT EXISTS (SELECT 1 FROM ${kept} AS known WHERE known.kind = new.kind AND known.id = new.id)`,
  )
  for (const table of tables.filter(isSearched)) {
    const where = forgottenRowsSql(table.rows, tombstones)
    if (where === undefined) continue
    const gone = Number(await db.scalar(`SELECT count(*) FROM lake.${table.sql} AS t WHERE ${where}`))
    if (gone > 0) await db.run(`DELETE FROM lake.${table.sql} AS t WHERE ${where}`)
    addRemoved(removed, table.name, gone)
  }
  for (const { sql } of tables.filter(({ name }) => stateTableNames.includes(name)))
    await db.run(cleanStatesSql(`lake.${sql}`, tombstones))
  await updateMetadata(db)
  return sortRemoved(removed)
}

/** Whether an older version of the lake has rows of those in `tombstones`: they were deleted since, as by a run before that was killed. */
const hasOlderRows = async (db: Database, tables: ReadonlyArray<StoredTable>): Promise<boolean> => {
  const first = await db.scalar(`SELECT min(snapshot_id) FROM ducklake_snapshots('lake')`)
  for (const { schema, name, sql, rows, last } of (await addDroppedTables(db, tables)).filter(isSearched)) {
    const where = forgottenRowsSql(rows, tombstones)
    if (where === undefined) continue
    const inserted = `ducklake_table_insertions('lake', ${quoteLiteral(schema)}, ${quoteLiteral(name)}, ${first}, ${last})`
    for (const from of [`(FROM lake.${sql} AT (VERSION => ${first}))`, inserted])
      try {
        if (Number(await db.scalar(`SELECT count(*) FROM ${from} AS t WHERE ${where}`)) > 0) return true
      } catch (error) {
        // The table, or a column by which it is searched, came later.
        if (!/does not exist|not found|Binder Error/i.test(String(error))) throw error
      }
  }
  return false
}
