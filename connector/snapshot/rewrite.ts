import { createHash } from 'node:crypto'
import { chmodSync, closeSync, openSync, realpathSync, rmSync, statSync } from 'node:fs'
import { CommandError, type Failure, runOrThrow, systemFailure, transientFailure } from '../cdk'
import {
  describeFile,
  listExportFiles,
  type RewrittenFile,
  readParquetRows,
  removeLetters,
  removeParquetRows,
} from './export-parquet'
import { type Database, openDatabase, quoteIdentifier, quoteLiteral } from './store/database'
import { chooseMemoryLimit, databaseOpenFailure, databaseWriteFailure } from './store/failures'
import { closeSnapshot, openSnapshot, replaceFile, type SnapshotOptions, snapshotRowGroupSize } from './store/file'
import {
  collectForgotten,
  forgottenRowsSql,
  forgottenTableName,
  forgottenTableSql,
  hasForgottenTable,
  type PersonRows,
  requireFillableTables,
  toPersonRows,
} from './store/forgotten'
import { regionsTableName, snapshotFormat, updateRowCountsSql } from './store/metadata'
import { historyTableName, listStreamTables } from './store/tables'

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
    await snapshot.db.checkpoint()
    // No other process uses the file now, so nothing beside it is needed.
    for (const left of ['.compact', '.compact.wal', '.forget', '.forget.wal', '.tmp'])
      rmSync(`${target}${left}`, { recursive: true, force: true })
  } finally {
    await closeSnapshot(snapshot)
  }
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
        await db.run(
          `DETACH DATABASE IF EXISTS new; ATTACH ${quoteLiteral(copy)} AS new (ROW_GROUP_SIZE ${snapshotRowGroupSize})`,
        )
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
  await rewriteSnapshot(path, { ending: 'compact', write: copyTables, isWanted }, options)
  return { before, after: statSync(path).size }
}

/** Copies the database `old` into a new file, and compares both. */
const copyTables = async (db: Database): Promise<void> => {
  await db.run('COPY FROM DATABASE old TO new; CHECKPOINT new')
  const [before, after] = [await describeDatabase(db, 'old'), await describeDatabase(db, 'new')]
  if (before !== after) throw unequalCopyError()
}

const unequalCopyError = (): CommandError =>
  new CommandError(systemFailure('The copy is not equal to the file, so it was thrown away. Please report it.'))

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
  /** Tables that name no person by an id that is known here. */
  readonly not_searched: ReadonlyArray<string>
}

const hashId = (id: string): string => createHash('sha256').update(id).digest('hex')

/** What has ids of its own, or none at all. */
const metadataNames: ReadonlyArray<string> = [
  '_meta',
  '_streams',
  '_state',
  '_loads',
  forgottenTableName,
  regionsTableName,
]

/** The tombstones, in the memory of the process that writes the file anew. */
const tombstones = `memory.main.${forgottenTableName}`

type StoredTable = { readonly schema: string; readonly name: string; readonly sql: string; readonly rows: PersonRows }

const listStoredTables = async (db: Database): Promise<ReadonlyArray<StoredTable>> =>
  (
    await db.query(`
    SELECT schema_name AS schema, table_name AS name, list({'name': column_name, 'type': data_type} ORDER BY column_index) AS columns
    FROM duckdb_columns() SEMI JOIN duckdb_tables() USING (database_name, schema_name, table_name)
    WHERE database_name = 'old' GROUP BY ALL ORDER BY ALL`)
  ).map(({ schema, name, columns }) => ({
    schema: String(schema),
    name: String(name),
    sql: `${quoteIdentifier(String(schema))}.${quoteIdentifier(String(name))}`,
    rows: toPersonRows(
      String(name),
      columns as unknown as ReadonlyArray<{ readonly name: string; readonly type: string }>,
    ),
  }))

/** Fills `new` with the rows of `old` but those of someone forgotten, which are never written, and compares both. */
const copyKeptRows = async (db: Database, tables: ReadonlyArray<StoredTable>): Promise<ForgetReceipt['removed']> => {
  await db.run('COPY FROM DATABASE old TO new (SCHEMA)')
  const removed = new Map<string, { table: string; rows: number; versions: number }>()
  const historyPrefix = historyTableName('')
  for (const { name, sql, rows } of tables) {
    if (name === forgottenTableName) continue
    const condition = metadataNames.includes(name) ? undefined : forgottenRowsSql(rows, tombstones)
    const kept = `old.${sql} AS t${condition === undefined ? '' : ` WHERE NOT ${condition}`}`
    await db.run(`INSERT INTO new.${sql} SELECT * FROM ${kept}`)
    const describe = (from: string) =>
      db.query(`SELECT count(*) AS n, sum(hash(t)::HUGEINT)::VARCHAR AS hash FROM ${from}`)
    const [[before], [after]] = [await describe(kept), await describe(`new.${sql} AS t`)]
    if (before?.n !== after?.n || before?.hash !== after?.hash) throw unequalCopyError()
    const gone = Number(await db.scalar(`SELECT count(*) FROM old.${sql}`)) - Number(after?.n)
    const isHistory = name.startsWith(historyPrefix)
    const table = isHistory ? name.slice(historyPrefix.length) : name
    const sum = removed.get(table) ?? { table, rows: 0, versions: 0 }
    if (gone > 0) removed.set(table, { ...sum, ...(isHistory ? { versions: gone } : { rows: sum.rows + gone }) })
  }
  await db.run(
    `${forgottenTableSql('new.main.')}; INSERT INTO new.main.${forgottenTableName} FROM ${tombstones}; USE new`,
  )
  const streams = await listStreamTables(db)
  const histories = streams.filter(({ history }) => history).map(({ name }) => name)
  const counts = updateRowCountsSql(
    streams.map(({ name }) => name),
    histories,
  )
  await db.run(
    [...counts, `UPDATE _meta SET value = '${snapshotFormat}' WHERE name = 'format'`, 'USE memory'].join('; '),
  )
  return [...removed.values()].sort((a, b) => (a.table < b.table ? -1 : 1))
}

/**
 * Removes the rows of persons, and their older versions, from every table of a snapshot and from Parquet files, and leaves tombstones, by which no
 * later run brings them back. The file is written anew without them, so that no byte of them is left. Run again after a kill, it finishes.
 */
export const forgetPersons = async (
  path: string,
  request: ForgetRequest,
  now: number,
  options?: SnapshotOptions,
): Promise<ForgetReceipt> => {
  const files: RewrittenFile[] = []
  const exportFiles = listExportFiles(request.exports)
  const { removed, unsearched } = await rewriteSnapshot(
    path,
    {
      ending: 'forget',
      write: async (db) => {
        await requireFillableTables(db, path, 'old')
        const tables = await listStoredTables(db)
        const exported = await readParquetRows(
          db,
          exportFiles.filter((file) => file.endsWith('.parquet')),
        )
        const searched = tables.filter(({ name }) => !metadataNames.includes(name))
        const sources = [
          ...searched.map(({ rows, sql }) => [rows, `old.${sql}`] as const),
          ...exported.map(({ rows, sql }) => [rows, sql] as const),
        ]
        await db.run(`DROP TABLE IF EXISTS ${tombstones}; ${forgottenTableSql('memory.main.')}`)
        if (await hasForgottenTable(db, 'old'))
          await db.run(`INSERT INTO ${tombstones} FROM old.main.${forgottenTableName}`)
        await collectForgotten(db, tombstones, request, sources, now)
        // The file is last: as long as it has the rows, a run that is killed can be run again with the id of a visit.
        for (const file of exported) {
          const rewritten = await removeParquetRows(db, file, forgottenRowsSql(file.rows, tombstones))
          if (rewritten !== undefined) files.push(rewritten)
        }
        const visits = new Set(
          (await db.query(`SELECT id FROM ${tombstones} WHERE kind = 'visit_record'`)).map(({ id }) => id),
        )
        for (const file of exportFiles.filter((each) => !each.endsWith('.parquet'))) {
          const rewritten = await removeLetters(file, request.visitRecords, (visit) => visits.has(hashId(visit.trim())))
          if (rewritten !== undefined) files.push(rewritten)
        }
        const unsearched = searched
          .filter(({ name, rows }) => forgottenRowsSql(rows) === undefined && !name.startsWith(historyTableName('')))
          .map(({ name }) => name)
        return { removed: await copyKeptRows(db, tables), unsearched }
      },
      isWanted: async (copy, target, handle) => {
        files.push({ path, before: await describeFile(target, handle), after: await describeFile(copy) })
        return true
      },
    },
    options,
  )
  return {
    time: new Date(now).toISOString(),
    asked: { reviews: request.reviews.map(hashId), visit_records: request.visitRecords.map(hashId) },
    removed,
    files,
    not_searched: unsearched,
  }
}
