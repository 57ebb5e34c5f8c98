import type { JsonSchema } from '../cdk/schema'
import { type Column, type ColumnType, columnsOf, metaColumns } from './column'
import { type Database, literal, quoted } from './database'
import { evolve } from './evolve'

/** A stream's table as it stands; `columns` without our own. */
export type Table = { readonly name: string; readonly columns: ReadonlyArray<Column> }

/** Every stream's table that a file holds; `attached`: the name of another file than the one that was opened. */
export const allTables = async (db: Database, attached?: string): Promise<ReadonlyArray<Table>> => {
  const own = new Set<string>(metaColumns.map(([column]) => column))
  const tables = new Map<string, Array<Column>>()
  for (const row of await db.query(`
    SELECT table_name, column_name, data_type FROM duckdb_columns()
    WHERE database_name = ${attached === undefined ? 'current_database()' : literal(attached)}
      AND table_name IN (SELECT stream FROM ${attached === undefined ? '' : `${quoted(attached)}.`}_streams) ORDER BY table_name, column_index`)) {
    const columns = tables.get(String(row.table_name)) ?? []
    tables.set(String(row.table_name), columns)
    if (!own.has(String(row.column_name)))
      columns.push({ name: String(row.column_name), type: shortType(String(row.data_type)) })
  }
  return [...tables].map(([name, columns]) => ({ name, columns }))
}

const shortType = (type: string): ColumnType =>
  (type === 'TIMESTAMP WITH TIME ZONE' ? 'TIMESTAMPTZ' : type) as ColumnType

/** Makes the stream's table, or brings it to the schema it has by now. */
export const ensureTable = async (db: Database, name: string, schema: JsonSchema): Promise<Table> => {
  const declared = columnsOf(schema)
  const held = (await allTables(db)).find((table) => table.name === name)
  if (held === undefined) {
    const all = [...declared.map(({ name, type }) => [name, type] as const), ...metaColumns]
    await db.run(
      `CREATE TABLE ${quoted(name)} (${all.map(([column, type]) => `${quoted(column)} ${type}`).join(', ')})`,
    )
    return { name, columns: declared }
  }
  return evolve(db, held, declared)
}
