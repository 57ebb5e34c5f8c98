import { blobValue } from '@duckdb/node-api'
import { type Column, type ColumnType, fingerprintSql, metaColumns } from '../store/columns'
import { type Database, quoteIdentifier } from '../store/database'
import { historyTableName } from '../store/history'
import type { Table } from '../store/tables'

/** What a column must do to take what its schema now declares. */
type ColumnChange =
  | { readonly _tag: 'Add'; readonly column: Column }
  | { readonly _tag: 'Widen'; readonly column: Column; readonly from: ColumnType }
  | { readonly _tag: 'SetAside'; readonly column: Column; readonly from: ColumnType }

/** The types whose every value a type can hold without loss; a double only integers up to 2^53, which is looked at. */
const widerTypes: Readonly<Record<ColumnType, ReadonlyArray<ColumnType>>> = {
  BIGINT: ['DOUBLE', 'VARCHAR', 'JSON'],
  DOUBLE: ['VARCHAR', 'JSON'],
  BOOLEAN: ['VARCHAR', 'JSON'],
  DATE: ['TIMESTAMPTZ', 'VARCHAR'],
  TIMESTAMPTZ: ['VARCHAR'],
  VARCHAR: ['JSON'],
  JSON: ['VARCHAR'],
}

/** The changes that lead from the columns there are to those declared; a column that is no longer declared stays. */
const planColumnChanges = (held: ReadonlyArray<Column>, declared: ReadonlyArray<Column>): ReadonlyArray<ColumnChange> =>
  declared.flatMap((column): ReadonlyArray<ColumnChange> => {
    const from = held.find(({ name }) => name === column.name)?.type
    if (from === undefined) return [{ _tag: 'Add', column }]
    if (from === column.type) return []
    return [{ _tag: widerTypes[from].includes(column.type) ? 'Widen' : 'SetAside', column, from }]
  })

/**
 * Brings a table to its declared columns without losing a value: a new column is added, a type widened where the new one holds
 * every old value, and a column of another type stays beside the new one as `name__type`.
 */
export const evolveTable = async (db: Database, table: Table, declared: ReadonlyArray<Column>): Promise<Table> => {
  const places = [table.name, ...(table.history ? [historyTableName(table.name)] : [])].map(quoteIdentifier)
  const everywhere = async (sql: (place: string) => string) => {
    for (const place of places) await db.run(sql(place))
  }
  let columns = [...table.columns]
  let rewritten = false
  for (const change of planColumnChanges(table.columns, declared)) {
    const { column } = change
    const field = quoteIdentifier(column.name)
    if (change._tag === 'Add') {
      await everywhere((place) => `ALTER TABLE ${place} ADD COLUMN ${field} ${column.type}`)
      columns = [...columns, column]
      continue
    }
    rewritten = true
    if (change._tag === 'Widen' && (await fitsType(db, places, field, change.from, column.type))) {
      await everywhere(
        (place) =>
          `ALTER TABLE ${place} ALTER ${field} TYPE ${column.type} USING ${conversionSql(field, change.from, column.type)}`,
      )
      columns = columns.map((each) => (each.name === column.name ? column : each))
      continue
    }
    const aside = findFreeName(columns, `${column.name}__${change.from.toLowerCase()}`)
    await everywhere((place) => `ALTER TABLE ${place} RENAME ${field} TO ${quoteIdentifier(aside)}`)
    await everywhere((place) => `ALTER TABLE ${place} ADD COLUMN ${field} ${column.type}`)
    columns = [...columns.map((each) => (each.name === column.name ? { ...each, name: aside } : each)), column]
  }
  if (rewritten) await everywhere((place) => `UPDATE ${place} SET _airbyte_raw_id = ${fingerprintSql(columns)}`)
  return { ...table, columns }
}

/** The attributes of these records that have no column. A source that collects them itself, in `unknown_attributes`, sends none. */
export const findUndeclaredColumns = async (
  db: Database,
  { columns }: Table,
  lines: Uint8Array,
): Promise<ReadonlyArray<Column>> => {
  if (columns.some(({ name }) => name === 'unknown_attributes')) return []
  const known = new Set([...columns.map(({ name }) => name), ...metaColumns.map(([name]) => name)].map(foldCase))
  const found = await db.query(
    'SELECT DISTINCT unnest(json_keys(line)) AS name FROM (SELECT unnest(string_split(decode($lines), chr(10))) AS line)',
    { lines: blobValue(lines) },
  )
  return found
    .map(({ name }) => String(name))
    .filter(
      (name, i, all) =>
        !known.has(foldCase(name)) && all.findIndex((other) => foldCase(other) === foldCase(name)) === i,
    )
    .sort()
    .map((name) => ({ name, type: 'JSON' }))
}

/** Columns do not tell cases apart. */
const foldCase = (name: string): string => name.toLowerCase()

const fitsType = async (
  db: Database,
  places: ReadonlyArray<string>,
  field: string,
  from: ColumnType,
  to: ColumnType,
): Promise<boolean> => {
  if (from !== 'BIGINT' || to !== 'DOUBLE') return true
  const all = places.map((place) => `SELECT ${field} AS value FROM ${place}`).join(' UNION ALL ')
  return (await db.scalar(`SELECT count(*) FROM (${all}) WHERE abs(value::HUGEINT) > 9007199254740992`)) === 0
}

const conversionSql = (field: string, from: ColumnType, to: ColumnType): string => {
  if (to === 'JSON') return `to_json(${field})`
  return from === 'TIMESTAMPTZ' ? `strftime(${field}::TIMESTAMP, '%Y-%m-%dT%H:%M:%S.%fZ')` : `${field}::${to}`
}

const findFreeName = (columns: ReadonlyArray<Column>, wanted: string): string =>
  columns.some(({ name }) => name === wanted) ? findFreeName(columns, `${wanted}_`) : wanted
