import { airbyteColumns, type Column, type ColumnType } from './columns'
import { type Database, quoteIdentifier, quoteLiteral } from './database'

/** A stream's table as it is in the file; `columns` without those of `airbyteColumns`. */
export type Table = {
  readonly name: string
  readonly columns: ReadonlyArray<Column>
  /** Whether old versions of its rows are kept in a history table. */
  readonly history: boolean
}

/** The name of the table that keeps the versions which the stream's own table no longer has. */
export const historyTableName = (stream: string): string => `_history_${stream}`

/** Every stream's table in a file. `attached`: the name of an attached file, in place of the one that was opened. */
export const listStreamTables = async (db: Database, attached?: string): Promise<ReadonlyArray<Table>> => {
  const airbyteNames = new Set<string>(airbyteColumns.map(([column]) => column))
  const databaseSql = attached === undefined ? 'current_database()' : quoteLiteral(attached)
  const tables = new Map<string, Array<Column>>()
  for (const row of await db.query(`
    SELECT table_name, column_name, data_type FROM duckdb_columns()
    WHERE database_name = ${databaseSql}
      AND table_name IN (SELECT stream FROM ${attached === undefined ? '' : `${quoteIdentifier(attached)}.`}_streams) ORDER BY table_name, column_index`)) {
    const columns = tables.get(String(row.table_name)) ?? []
    tables.set(String(row.table_name), columns)
    if (!airbyteNames.has(String(row.column_name)))
      columns.push({ name: String(row.column_name), type: toColumnType(String(row.data_type)) })
  }
  const histories = await db.query(
    `SELECT table_name AS name FROM duckdb_tables() WHERE database_name = ${databaseSql} AND starts_with(table_name, ${quoteLiteral(historyTableName(''))})`,
  )
  const historyNames = new Set(histories.map(({ name }) => String(name)))
  return [...tables].map(([name, columns]) => ({ name, columns, history: historyNames.has(historyTableName(name)) }))
}

const toColumnType = (type: string): ColumnType =>
  (type === 'TIMESTAMP WITH TIME ZONE' ? 'TIMESTAMPTZ' : type) as ColumnType

/** The stream that deletions and children refer to. */
export const reviewsTableName = 'reviews'
export const deletionsTableName = 'deleted_reviews'
const tombstoneColumnNames = ['_ab_cdc_deleted_at', '_sdc_deleted_at']

const hasTypedColumn = ({ columns }: Table, name: string, type: string): boolean =>
  columns.some((column) => column.name === name && column.type === type)

/** The columns of a table that hold the id of a row's review and the modified time of the review's version. */
export type ReviewReference = { readonly table: Table; readonly id: string; readonly time: string }

/** The reference of a table to reviews; undefined for a table that refers to none. */
export const findReviewReference = (table: Table): ReviewReference | undefined => {
  if (table.name === reviewsTableName || table.name === deletionsTableName)
    return hasTypedColumn(table, 'id', 'BIGINT') && hasTypedColumn(table, 'modifiedTime', 'TIMESTAMPTZ')
      ? { table, id: 'id', time: 'modifiedTime' }
      : undefined
  return hasTypedColumn(table, 'reviewId', 'BIGINT') && hasTypedColumn(table, 'reviewModifiedTime', 'TIMESTAMPTZ')
    ? { table, id: 'reviewId', time: 'reviewModifiedTime' }
    : undefined
}

/** The column that is set in tombstones only. */
export const findTombstoneColumn = ({ columns }: Pick<Table, 'columns'>): string | undefined =>
  columns.map(({ name }) => name).find((name) => tombstoneColumnNames.includes(name))
