import { blobValue } from '@duckdb/node-api'
import type { JsonSchema } from '../../cdk'
import { type Database, quoteIdentifier } from '../store/database'
import {
  airbyteColumns,
  type Column,
  type ColumnType,
  columnsFromSchema,
  fingerprintSql,
  historyTableName,
  listStreamTables,
  type Table,
} from '../store/tables'

/** Creates the stream's table, or changes it to fit the schema. */
export const ensureTable = async (db: Database, name: string, schema: JsonSchema): Promise<Table> => {
  const columns = columnsFromSchema(schema)
  const table = (await listStreamTables(db)).find((other) => other.name === name)
  if (table !== undefined) return evolveTable(db, table, columns)
  const definitions = [...columns.map((column) => [column.name, column.type] as const), ...airbyteColumns]
  await db.run(
    `CREATE TABLE ${quoteIdentifier(name)} (${definitions.map(([column, type]) => `${quoteIdentifier(column)} ${type}`).join(', ')})`,
  )
  return { name, columns, history: false }
}

/** How a column changes to the type that its schema now declares. */
type ColumnChange =
  | { readonly _tag: 'Add'; readonly column: Column }
  | { readonly _tag: 'Widen'; readonly column: Column; readonly from: ColumnType }
  | { readonly _tag: 'Replace'; readonly column: Column; readonly from: ColumnType }

/** The types that hold every value of a type without loss. A double holds integers up to 2^53 only, so `fitsType` checks the values. */
const widerTypes: Readonly<Record<ColumnType, ReadonlyArray<ColumnType>>> = {
  BIGINT: ['DOUBLE', 'VARCHAR', 'JSON'],
  DOUBLE: ['VARCHAR', 'JSON'],
  BOOLEAN: ['VARCHAR', 'JSON'],
  DATE: ['TIMESTAMPTZ', 'VARCHAR'],
  TIMESTAMPTZ: ['VARCHAR'],
  VARCHAR: ['JSON'],
  JSON: ['VARCHAR'],
}

/** The changes that turn the table's columns into the declared ones; a column that is no longer declared stays. */
const planColumnChanges = (
  columns: ReadonlyArray<Column>,
  declared: ReadonlyArray<Column>,
): ReadonlyArray<ColumnChange> =>
  declared.flatMap((column): ReadonlyArray<ColumnChange> => {
    const from = columns.find(({ name }) => name === column.name)?.type
    if (from === undefined) return [{ _tag: 'Add', column }]
    if (from === column.type) return []
    return [{ _tag: widerTypes[from].includes(column.type) ? 'Widen' : 'Replace', column, from }]
  })

/**
 * Gives a table its declared columns without losing a value: adds a new column, widens a type if the new type holds every old
 * value, and otherwise keeps the old column beside the new one as `name__type`.
 */
export const evolveTable = async (db: Database, table: Table, declared: ReadonlyArray<Column>): Promise<Table> => {
  const names = [table.name, ...(table.history ? [historyTableName(table.name)] : [])].map(quoteIdentifier)
  const runOnEach = async (sql: (name: string) => string) => {
    for (const name of names) await db.run(sql(name))
  }
  let columns = [...table.columns]
  let valuesChange = false
  for (const change of planColumnChanges(table.columns, declared)) {
    const { column } = change
    const field = quoteIdentifier(column.name)
    if (change._tag === 'Add') {
      await runOnEach((name) => `ALTER TABLE ${name} ADD COLUMN ${field} ${column.type}`)
      columns = [...columns, column]
      continue
    }
    valuesChange = true
    if (change._tag === 'Widen' && (await fitsType(db, names, field, change.from, column.type))) {
      await runOnEach(
        (name) =>
          `ALTER TABLE ${name} ALTER ${field} TYPE ${column.type} USING ${conversionSql(field, change.from, column.type)}`,
      )
      columns = columns.map((other) => (other.name === column.name ? column : other))
      continue
    }
    const oldName = findFreeName(columns, `${column.name}__${change.from.toLowerCase()}`)
    await runOnEach((name) => `ALTER TABLE ${name} RENAME ${field} TO ${quoteIdentifier(oldName)}`)
    await runOnEach((name) => `ALTER TABLE ${name} ADD COLUMN ${field} ${column.type}`)
    columns = [...columns.map((other) => (other.name === column.name ? { ...other, name: oldName } : other)), column]
  }
  if (valuesChange) await runOnEach((name) => `UPDATE ${name} SET _airbyte_raw_id = ${fingerprintSql(columns)}`)
  return { ...table, columns }
}

/** The attributes of these records that have no column, as JSON columns. None for a source that collects them in `unknown_attributes`. */
export const findUndeclaredColumns = async (
  db: Database,
  { columns }: Table,
  lines: Uint8Array,
): Promise<ReadonlyArray<Column>> => {
  if (columns.some(({ name }) => name === 'unknown_attributes')) return []
  const known = new Set([...columns.map(({ name }) => name), ...airbyteColumns.map(([name]) => name)].map(foldCase))
  const attributes = await db.query(
    'SELECT DISTINCT unnest(json_keys(line)) AS name FROM (SELECT unnest(string_split(decode($lines), chr(10))) AS line)',
    { lines: blobValue(lines) },
  )
  return attributes
    .map(({ name }) => String(name))
    .filter(
      (name, i, all) =>
        !known.has(foldCase(name)) && all.findIndex((other) => foldCase(other) === foldCase(name)) === i,
    )
    .sort()
    .map((name) => ({ name, type: 'JSON' }))
}

/** DuckDB's column names do not differ in case alone. */
const foldCase = (name: string): string => name.toLowerCase()

const fitsType = async (
  db: Database,
  tables: ReadonlyArray<string>,
  field: string,
  from: ColumnType,
  to: ColumnType,
): Promise<boolean> => {
  if (from !== 'BIGINT' || to !== 'DOUBLE') return true
  const all = tables.map((table) => `SELECT ${field} AS value FROM ${table}`).join(' UNION ALL ')
  return (await db.scalar(`SELECT count(*) FROM (${all}) WHERE abs(value::HUGEINT) > 9007199254740992`)) === 0
}

const conversionSql = (field: string, from: ColumnType, to: ColumnType): string => {
  if (to === 'JSON') return `to_json(${field})`
  return from === 'TIMESTAMPTZ' ? `strftime(${field}::TIMESTAMP, '%Y-%m-%dT%H:%M:%S.%fZ')` : `${field}::${to}`
}

const findFreeName = (columns: ReadonlyArray<Column>, candidate: string): string =>
  columns.some(({ name }) => name === candidate) ? findFreeName(columns, `${candidate}_`) : candidate
