import type { JsonSchema } from '../../cdk'
import { evolveTable } from '../load/evolve'
import { type Column, type ColumnType, columnsFromSchema, metaColumns } from './columns'
import { type Database, quoteIdentifier, quoteLiteral } from './database'
import { historyTableName } from './history'

/** A stream's table as it stands; `columns` without our own. */
export type Table = {
  readonly name: string
  readonly columns: ReadonlyArray<Column>
  /** Whether versions it no longer has are kept in a table of their own. */
  readonly history: boolean
}

/** Every stream's table that a file holds; `attached`: the name of another file than the one that was opened. */
export const listStreamTables = async (db: Database, attached?: string): Promise<ReadonlyArray<Table>> => {
  const own = new Set<string>(metaColumns.map(([column]) => column))
  const place = attached === undefined ? 'current_database()' : quoteLiteral(attached)
  const tables = new Map<string, Array<Column>>()
  for (const row of await db.query(`
    SELECT table_name, column_name, data_type FROM duckdb_columns()
    WHERE database_name = ${place}
      AND table_name IN (SELECT stream FROM ${attached === undefined ? '' : `${quoteIdentifier(attached)}.`}_streams) ORDER BY table_name, column_index`)) {
    const columns = tables.get(String(row.table_name)) ?? []
    tables.set(String(row.table_name), columns)
    if (!own.has(String(row.column_name)))
      columns.push({ name: String(row.column_name), type: toColumnType(String(row.data_type)) })
  }
  const histories = await db.query(
    `SELECT table_name AS name FROM duckdb_tables() WHERE database_name = ${place} AND starts_with(table_name, ${quoteLiteral(historyTableName(''))})`,
  )
  const kept = new Set(histories.map(({ name }) => String(name)))
  return [...tables].map(([name, columns]) => ({ name, columns, history: kept.has(historyTableName(name)) }))
}

const toColumnType = (type: string): ColumnType =>
  (type === 'TIMESTAMP WITH TIME ZONE' ? 'TIMESTAMPTZ' : type) as ColumnType

/** Makes the stream's table, or brings it to the schema it has by now. */
export const ensureTable = async (db: Database, name: string, schema: JsonSchema): Promise<Table> => {
  const declared = columnsFromSchema(schema)
  const held = (await listStreamTables(db)).find((table) => table.name === name)
  if (held === undefined) {
    const all = [...declared.map(({ name, type }) => [name, type] as const), ...metaColumns]
    await db.run(
      `CREATE TABLE ${quoteIdentifier(name)} (${all.map(([column, type]) => `${quoteIdentifier(column)} ${type}`).join(', ')})`,
    )
    return { name, columns: declared, history: false }
  }
  return evolveTable(db, held, declared)
}

/** The stream whose rows the deletions and the children refer to. */
export const reviewsStream = 'reviews'
export const deletionsStream = 'deleted_reviews'
const tombstoneColumnNames = ['_ab_cdc_deleted_at', '_sdc_deleted_at']

const hasTypedColumn = ({ columns }: Table, name: string, type: string): boolean =>
  columns.some((column) => column.name === name && column.type === type)

/** How a table names the review and the version of it that a row belongs to; undefined for a table about something else. */
export type ReviewReference = { readonly table: Table; readonly id: string; readonly time: string }

export const findReviewReference = (table: Table): ReviewReference | undefined => {
  if (table.name === reviewsStream || table.name === deletionsStream)
    return hasTypedColumn(table, 'id', 'BIGINT') && hasTypedColumn(table, 'modifiedTime', 'TIMESTAMPTZ')
      ? { table, id: 'id', time: 'modifiedTime' }
      : undefined
  return hasTypedColumn(table, 'reviewId', 'BIGINT') && hasTypedColumn(table, 'reviewModifiedTime', 'TIMESTAMPTZ')
    ? { table, id: 'reviewId', time: 'reviewModifiedTime' }
    : undefined
}

/** The column that is set in a tombstone only. */
export const findTombstoneColumn = ({ columns }: Pick<Table, 'columns'>): string | undefined =>
  columns.map(({ name }) => name).find((name) => tombstoneColumnNames.includes(name))
