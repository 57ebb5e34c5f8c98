import { createHash } from 'node:crypto'
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
import { requireCopyableTables, rewriteSnapshot, unequalCopyError } from './rewrite'
import type { Database } from './store/database'
import type { SnapshotOptions } from './store/file'
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
import { snapshotFormat, updateRowCountsSql } from './store/metadata'
import { historyTableName, listStreamTables, streamOfTable } from './store/tables'

/** Whom to forget. `exports`: Parquet files, folders of them, and files of dead letters, which are cleaned too. */
export type ForgetRequest = {
  readonly reviews: ReadonlyArray<string>
  readonly visitRecords: ReadonlyArray<string>
  readonly exports: ReadonlyArray<string>
}

/** What was removed, without any of its content. */
export type ForgetReceipt = {
  /** When, in ISO 8601. */
  readonly time: string
  /** SHA-256 of each requested id. */
  readonly asked: { readonly reviews: ReadonlyArray<string>; readonly visit_records: ReadonlyArray<string> }
  /** Number of rows, and of older versions of rows, by table. */
  readonly removed: ReadonlyArray<{ readonly table: string; readonly rows: number; readonly versions: number }>
  readonly files: ReadonlyArray<RewrittenFile>
  /** Tables and files in which no known id identifies a person. */
  readonly not_searched: ReadonlyArray<string>
  /** For a lake: if older versions were expired, and how many files were removed. */
  readonly lake?: RemovedLakeFiles & { readonly expired: boolean }
}

/** The removed files of a lake, as listed in a receipt. */
export type RemovedLakeFiles = {
  /** Files that no version needs any more. */
  readonly removed_files: number
  /** Files in the lake's table folders that belong to no version, left by killed processes. */
  readonly orphaned_files: number
  /** Other Parquet files in the lake's folder, which were neither searched nor touched. */
  readonly unknown_files: ReadonlyArray<string>
}

const hashId = (id: string): string => createHash('sha256').update(id).digest('hex')

/** The tombstones, in the memory of the process that rewrites the file. */
export const tombstones = `memory.main.${forgottenTableName}`

export type Removed = ForgetReceipt['removed'][number]

/** Adds the removed rows of a table, and the older versions of them. */
export const addRemoved = (removed: Map<string, Removed>, table: string, rows: number, versions: number): void => {
  const before = removed.get(table) ?? { table, rows: 0, versions: 0 }
  if (rows + versions > 0) removed.set(table, { table, rows: before.rows + rows, versions: before.versions + versions })
}

export const sortRemoved = (removed: ReadonlyMap<string, Removed>): ReadonlyArray<Removed> =>
  [...removed.values()].sort((a, b) => (a.table < b.table ? -1 : 1))

/** Recounts the rows of each table, and sets the format so that older versions of this package refuse the file. */
const updateMetadata = async (db: Database): Promise<void> => {
  const counts = updateRowCountsSql(await listStreamTables(db))
  for (const sql of [...counts, `UPDATE _meta SET value = '${snapshotFormat}' WHERE name = 'format'`]) await db.run(sql)
}

/** Copies states into memory and cleans them there, so that their old content never reaches the new file. */
const copyStates = async (db: Database, table: string, copy = 'memory.main._cleaned_states'): Promise<string> => {
  await db.run(`CREATE OR REPLACE TABLE ${copy} AS FROM ${table}; ${cleanStatesSql(copy, tombstones)}`)
  return copy
}

/** Fills `new` with the rows of `old`, except those of forgotten persons, and compares both. */
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
    const gone = Number(await db.scalar(`SELECT count(*) FROM old.${sql}`)) - Number(after?.n)
    const stream = streamOfTable(name)
    addRemoved(removed, stream, stream === name ? gone : 0, stream === name ? 0 : gone)
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

/** Fills `tombstones` with all persons forgotten so far. `attached`: the name of the file or lake. */
export const fillTombstones = async (
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

/** Removes those in `tombstones` from Parquet files and dead letters. */
export const cleanExports = async (
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

/** Lists what was not searched. `others`: files of the exports that were not read. */
export const listUnsearched = (
  { tables, exported }: Searched,
  others: ReadonlyArray<string>,
): ReadonlyArray<string> => [
  ...tables
    .filter((table) => isSearched(table) && isUnsearched(table) && !table.name.startsWith(historyTableName('')))
    .map(({ name }) => name),
  ...exported.filter(isUnsearched).map(({ path }) => path),
  ...others,
]

/**
 * Removes the rows of persons, and their older versions, from every table of a file and from Parquet files, and leaves
 * tombstones so that no later run brings them back. If killed, run it again to finish.
 */
export const forgetPersons = async (
  path: string,
  request: ForgetRequest,
  now: number,
  options: SnapshotOptions = {},
): Promise<ForgetReceipt> => ({
  ...describeRequest(request, now),
  ...(await forgetInFile(path, request, now, options)),
})

/** What a receipt says about its request. */
export const describeRequest = (
  { reviews, visitRecords }: ForgetRequest,
  now: number,
): Pick<ForgetReceipt, 'time' | 'asked'> => ({
  time: new Date(now).toISOString(),
  asked: { reviews: reviews.map(hashId), visit_records: visitRecords.map(hashId) },
})

export type Forgotten = Omit<ForgetReceipt, 'time' | 'asked'>

/** Rewrites the file without the rows, so that no byte of them is left. */
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
        // The file comes last: as long as it has the rows, a killed run can be rerun with the id of a visit.
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
