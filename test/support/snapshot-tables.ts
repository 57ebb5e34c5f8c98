import { readdirSync, readlinkSync } from 'node:fs'
import { runOrThrow } from '../../connector/cdk'
import { type Database, openDatabase } from '../../connector/snapshot/store/database'
import { metadataTablesSql } from '../../connector/snapshot/store/metadata'
import {
  airbyteColumns,
  type Column,
  type ColumnType,
  findReviewReference,
  historyTableName,
  type ReviewReference,
  type Table,
} from '../../connector/snapshot/store/tables'

// Tables without a load: what one function does to them takes milliseconds to see, where a load of one record takes a
// tenth of a second.

export const column = (name: string, type: ColumnType): Column => ({ name, type })
export const createTable = (name: string, columns: ReadonlyArray<Column>): Table => ({ name, columns, history: false })
export const reviewColumns = [column('id', 'BIGINT'), column('modifiedTime', 'TIMESTAMPTZ')]
const childColumns = [column('reviewId', 'BIGINT'), column('reviewModifiedTime', 'TIMESTAMPTZ')]
export const tombstoneColumn = column('_ab_cdc_deleted_at', 'TIMESTAMPTZ')
export const reviewsTable = createTable('reviews', reviewColumns)
export const tombstonesTable = createTable('reviews', [...reviewColumns, tombstoneColumn])
export const deletionsTable = createTable('deleted_reviews', reviewColumns)
export const contentsTable = createTable('review_contents', [...childColumns, column('id', 'BIGINT')])
export const mediaTable = createTable('review_media', childColumns)
/** Refers to no review. */
export const pairsTable = createTable('pairs', [column('a', 'BIGINT'), column('b', 'BIGINT')])

export const referenceOf = (to: Table): ReviewReference => {
  const reference = findReviewReference(to)
  if (reference === undefined) throw new Error(`${to.name} refers to no review`)
  return reference
}

/** The values of a row as SQL, in the order of its columns. `raw`: the number of its fingerprint. */
export type RowSql = {
  readonly values: ReadonlyArray<string | number>
  readonly raw?: number
  readonly generation?: number
}
export const row = (...values: RowSql['values']): RowSql => ({ values })
/** A time this many minutes after 1970, in SQL. */
export const at = (minute: number): string => `make_timestamptz(${minute}::BIGINT * 60000000)`
export const rawSql = (raw: number): string => `lpad('${raw}', 32, '0')::UUID`

/** Rows for `INSERT`, which arrived 1,000 minutes after 1970. */
export const rowsSql = (rows: ReadonlyArray<RowSql>): ReadonlyArray<string> =>
  rows.map(
    ({ values, raw, generation = 0 }, i) =>
      `(${[...values, rawSql(raw ?? i + 1), at(1000), `'{"changes":[]}'`, generation].join(', ')})`,
  )
export const definitionSql = ({ columns }: Table): string =>
  [...columns.map(({ name, type }) => [name, type] as const), ...airbyteColumns]
    .map(([name, type]) => `"${name}" ${type}`)
    .join(', ')
const createSql = (to: Table, rows: ReadonlyArray<RowSql>): string => `
  CREATE TABLE ${to.name} (${definitionSql(to)});
  ${rows.length === 0 ? '' : `INSERT INTO ${to.name} VALUES ${rowsSql(rows).join(', ')};`}
  ${to.history ? createHistorySql(to) : ''}`
const createHistorySql = ({ name }: Table): string => `
  CREATE TABLE ${historyTableName(name)} AS SELECT *, NULL::TIMESTAMPTZ AS _ended FROM ${name} LIMIT 0;`

/** A database in memory with the metadata tables and these, for the time that `body` takes. */
export const useTables = async (
  tables: ReadonlyArray<readonly [Table, ReadonlyArray<RowSql>]>,
  body: (db: Database) => Promise<void>,
): Promise<void> => {
  const db = await runOrThrow(openDatabase(':memory:', { threads: 1 }))
  try {
    await db.run(`${metadataTablesSql}; ${tables.map(([to, rows]) => createSql(to, rows)).join('\n')}`)
    await body(db)
  } finally {
    db.close()
  }
}

/** The rows of a query, each as its values with a space between them; a time in minutes. */
export const listRows = async (
  db: Database,
  from: string,
  ...columns: ReadonlyArray<string>
): Promise<ReadonlyArray<string>> =>
  (await db.query(`SELECT ${columns.join(', ')} FROM ${from} ORDER BY ALL`)).map((found) =>
    Object.values(found)
      .map((value) => (value instanceof Date ? `${value.getTime() / 60_000}` : `${value}`))
      .join(' '),
  )

/** The open files of spools, which have no name in their folder: the path of each that begins so, and its number. */
export const listOpenSpools = (path = '') =>
  readdirSync('/proc/self/fd').flatMap((number) => {
    try {
      const name = readlinkSync(`/proc/self/fd/${number}`)
      return name.startsWith(path) && name.includes('.spool') ? [{ name, number }] : []
    } catch {
      return []
    }
  })
