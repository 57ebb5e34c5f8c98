import { CommandError, configFailure, type JsonSchema, type StreamInfo, tombstoneColumnNames } from '../../cdk'
import { type Database, quoteIdentifier } from '../store/database'
import { adviseOnPlace } from '../store/failures'
import {
  airbyteColumns,
  attributeOf,
  type Column,
  type ColumnType,
  chooseColumns,
  columnsFromSchema,
  endedColumnName,
  findFreeName,
  fingerprintSql,
  historyTableName,
  outdatedColumnName,
  type Table,
} from '../store/tables'
import type { LoadTarget } from './earlier-runs'
import type { Spool } from './insert'
import { repeatedKeysSql } from './lookups'
import { keepNewestSql } from './merge'

/**
 * Creates the stream's table, or changes the one that it has to fit the schema. `carried`: the attributes whose values a new type takes over: key
 * and cursor.
 */
export const ensureTable = async (
  db: Database,
  name: string,
  table: Table | undefined,
  schema: JsonSchema,
  carried: ReadonlyArray<string> = [],
): Promise<Table> => {
  const columns = columnsFromSchema(schema, table?.columns)
  if (table !== undefined) return evolveTable(db, table, columns, carried)
  await dropView(db, name)
  const definitions = [...columns.map((column) => [column.name, column.type] as const), ...airbyteColumns]
  await db.run(
    `CREATE TABLE ${quoteIdentifier(name)} (${definitions.map(([column, type]) => `${quoteIdentifier(column)} ${type}`).join(', ')})`,
  )
  return { name, columns, history: false }
}

/** A view of ours gives way to a stream of its name; it gets another one at the end of the run. */
const dropView = async (db: Database, name: string): Promise<void> => {
  const view = await db.scalar(
    'SELECT view_name FROM duckdb_views() WHERE database_name = current_database() AND NOT internal AND lower(view_name) = lower($name)',
    { name },
  )
  if (view !== undefined) await db.run(`DROP VIEW ${quoteIdentifier(String(view))}`)
}

/** Creates the stream's history table; from then on every version of its rows is kept. */
export const createHistoryTable = async (db: Database, { name }: Table): Promise<void> => {
  await db.run(
    `CREATE TABLE IF NOT EXISTS ${quoteIdentifier(historyTableName(name))} AS FROM ${quoteIdentifier(name)} LIMIT 0`,
  )
  await db.run(
    `ALTER TABLE ${quoteIdentifier(historyTableName(name))} ADD COLUMN IF NOT EXISTS ${endedColumnName} TIMESTAMPTZ`,
  )
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
): ReadonlyArray<ColumnChange> => {
  const byName = new Map(columns.map(({ name, type }) => [name, type]))
  return declared.flatMap((column): ReadonlyArray<ColumnChange> => {
    const from = byName.get(column.name)
    if (from === undefined) return [{ _tag: 'Add', column }]
    if (from === column.type) return []
    return [{ _tag: widerTypes[from].includes(column.type) ? 'Widen' : 'Replace', column, from }]
  })
}

/**
 * Gives a table its declared columns without losing a value: adds a new column, widens a type if the new type holds every old
 * value, and otherwise keeps the old column beside the new one as `name__type`.
 */
export const evolveTable = async (
  db: Database,
  table: Table,
  declared: ReadonlyArray<Column>,
  carried: ReadonlyArray<string> = [],
): Promise<Table> => {
  const names = [table.name, ...(table.history ? [historyTableName(table.name)] : [])].map(quoteIdentifier)
  const runOnEach = async (sql: (name: string) => string) => {
    for (const name of names) await db.run(sql(name))
  }
  let columns = [...table.columns]
  let valuesChange = false
  const carriedValues: Array<(name: string) => string> = []
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
      await runOnEach((name) => widenSql(db, name, field, column.type, conversionSql(field, change.from, column.type)))
      columns = columns.map((other) => (other.name === column.name ? column : other))
      continue
    }
    const oldName = findFreeName([...columns, ...declared], outdatedColumnName({ ...column, type: change.from }))
    await runOnEach((name) => `ALTER TABLE ${name} RENAME ${field} TO ${quoteIdentifier(oldName)}`)
    await runOnEach((name) => `ALTER TABLE ${name} ADD COLUMN ${field} ${column.type}`)
    if (carried.includes(attributeOf(column) ?? ''))
      carriedValues.push(
        (name) =>
          `UPDATE ${name} SET ${field} = ${carriedValueSql(quoteIdentifier(oldName), change.from, column.type)}`,
      )
    columns = [
      ...columns.map((other) => (other.name === column.name ? { ...other, name: oldName, attribute: null } : other)),
      column,
    ]
  }
  // DuckDB cannot commit a transaction that alters a table after it has updated its rows.
  for (const sql of carriedValues) await runOnEach(sql)
  if (valuesChange) await runOnEach((name) => `UPDATE ${name} SET _airbyte_raw_id = ${fingerprintSql(columns)}`)
  return { ...table, columns }
}

/**
 * By batch, columns for the attributes of its records that have none: JSON columns, and a column that marks tombstones. A source that
 * collects what is undeclared in `unknown_attributes` needs only the latter.
 */
export const findUndeclaredColumns = async (
  db: Database,
  batches: ReadonlyArray<{ readonly table: Table; readonly spool: Spool }>,
): Promise<ReadonlyArray<ReadonlyArray<Column>>> => {
  const selects = batches.flatMap(({ table: { columns }, spool }, i) => {
    if (spool.count() === 0) return []
    const known = new Set(columns.map(attributeOf))
    const mayHaveUndeclared =
      !known.has('unknown_attributes') ||
      (spool.mentionsTombstones() && tombstoneColumnNames.some((name) => !known.has(name)))
    return mayHaveUndeclared
      ? [`SELECT DISTINCT ${i} AS batch, unnest(json_keys(_json)) AS name FROM ${spool.toSql()}`]
      : []
  })
  const attributes = selects.length === 0 ? [] : await db.query(selects.join(' UNION ALL '))
  return batches.map(({ table: { columns } }, i) => {
    const known = new Set(columns.map(attributeOf))
    const undeclared = attributes
      .filter(({ batch }) => batch === i)
      .map(({ name }) => String(name))
      .filter((name) => !known.has(name) && (!known.has('unknown_attributes') || tombstoneColumnNames.includes(name)))
      .sort()
      .map((name): Column => ({ name, type: tombstoneColumnNames.includes(name) ? 'TIMESTAMPTZ' : 'JSON' }))
    return chooseColumns(undeclared, columns)
  })
}

/** A lake changes a type in few cases only: there a new column takes the place of the old one. */
const widenSql = ({ lake }: Database, name: string, field: string, type: ColumnType, value: string): string =>
  lake === undefined
    ? `ALTER TABLE ${name} ALTER ${field} TYPE ${type} USING ${value}`
    : `ALTER TABLE ${name} ADD COLUMN _widened ${type}; UPDATE ${name} SET _widened = ${value};
       ALTER TABLE ${name} DROP COLUMN ${field}; ALTER TABLE ${name} RENAME _widened TO ${field}`

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
  if (to === 'VARCHAR') return textSql(field, from)
  return `${field}::${to}`
}

/** The value as the text that its source would send instead. */
const textSql = (field: string, from: ColumnType): string => {
  if (from === 'JSON') return `${field}->>'$'`
  if (from === 'DOUBLE')
    return `CASE WHEN ${field} = trunc(${field}) AND abs(${field}) < 1e15 THEN ${field}::BIGINT::VARCHAR ELSE ${field}::VARCHAR END`
  return from === 'TIMESTAMPTZ' ? `strftime(${field}::TIMESTAMP, '%Y-%m-%dT%H:%M:%S.%fZ')` : `${field}::VARCHAR`
}

/** The value in another type; null where it has none there. DuckDB alone would round 1.5 to an integer. */
const carriedValueSql = (field: string, from: ColumnType, to: ColumnType): string => {
  const text = `(${textSql(field, from)})`
  if (to === 'JSON') return `to_json(${text})`
  return to === 'BIGINT'
    ? `CASE WHEN regexp_full_match(${text}, '[+-]?[0-9]+([.]0*)?') THEN TRY_CAST(${text} AS BIGINT) END`
    : `TRY_CAST(${text} AS ${to})`
}

export const rejectStream = ({ name }: StreamInfo, reason: string, remedy = 'Correct the catalog.'): never => {
  throw new CommandError(configFailure(`Stream ${name} cannot be written: ${reason}. ${remedy}`))
}

/** The column of an attribute, which may have another name. */
export const findColumn = ({ columns }: Table, attribute: string): Column | undefined =>
  columns.find((column) => attributeOf(column) === attribute)

/** The columns of the key and the cursor. */
export const mapToColumns = (
  table: Table,
  { key, cursor }: Pick<LoadTarget, 'key' | 'cursor'>,
): Pick<LoadTarget, 'key' | 'cursor'> => {
  const toName = (attribute: string) => findColumn(table, attribute)?.name ?? attribute
  return { key: key.map(toName), cursor: cursor === undefined ? undefined : toName(cursor) }
}

/** The table with its declared columns, and one row for each key if the key or its type has changed; `key`: the columns of the key until now. */
export const prepareTable = async (
  db: Database,
  info: StreamInfo,
  target: LoadTarget,
  { previous, key, history }: { previous: Table | undefined; key: ReadonlyArray<string>; history: boolean },
): Promise<Table> => {
  const current = await ensureTable(db, info.name, previous, info.schema, [...target.key, target.cursor ?? ''])
  if (history) await createHistoryTable(db, current)
  const table = { ...current, history: current.history || history }
  const missing = [...target.key, target.cursor].find(
    (attribute) => attribute !== undefined && findColumn(table, attribute) === undefined,
  )
  if (missing !== undefined) return rejectStream(info, `its key or cursor ${missing} is not an attribute of its schema`)
  const previousKey = previous && readKeyTypes(previous, key)
  const newKey = target.key.map((attribute) => ({ attribute, type: findColumn(table, attribute)?.type }))
  if (previousKey !== undefined && newKey.length > 0 && JSON.stringify(previousKey) !== JSON.stringify(newKey))
    await applyChangedKey(db, info, table, target)
  return table
}

type KeyTypes = ReadonlyArray<{ readonly attribute: string | null; readonly type: ColumnType | undefined }>

/** The key that the table was merged by until now, with its types. */
const readKeyTypes = (table: Table, key: ReadonlyArray<string>): KeyTypes =>
  key.map((name) => {
    const column = table.columns.find((other) => other.name === name)
    return { attribute: column === undefined ? name : attributeOf(column), type: column?.type }
  })

/** Rows without a value of the new key could never be replaced or deleted: only a load that replaces all rows may leave them. */
const applyChangedKey = async (db: Database, info: StreamInfo, table: Table, target: LoadTarget): Promise<void> => {
  const { key, cursor } = mapToColumns(table, target)
  const without = Number(
    await db.scalar(
      `SELECT count(*) FROM ${quoteIdentifier(table.name)} AS t WHERE ${key.map((name) => `t.${quoteIdentifier(name)} IS NULL`).join(' OR ')}`,
    ),
  )
  if (without > 0 && target.minimumGeneration === 0)
    rejectStream(
      info,
      `its key is now ${target.key.join(', ')}, and ${without} of its rows in ${adviseOnPlace(db, 'the file')} have no such value`,
      adviseOnPlace(db, 'Read it anew with a full refresh, or into another file with --db.'),
    )
  await db.run(repeatedKeysSql(table, key))
  await db.run(keepNewestSql(table, key, cursor))
}
