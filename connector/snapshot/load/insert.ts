import { BIGINT, BLOB, blobValue, LIST, listValue, VARCHAR } from '@duckdb/node-api'
import { type Column, fingerprintSql, metaColumns } from '../store/columns'
import { type Database, quoteIdentifier, quoteLiteral } from '../store/database'
import type { Table } from '../store/tables'
import type { RowBatch } from './batch'

/** Appends records as typed rows, in their order. A value that does not fit its column becomes null and is named in `_airbyte_meta`. */
export const insertRows = async (
  db: Database,
  table: Table,
  generation: number,
  { lines, at, changes }: ReturnType<RowBatch['take']>,
): Promise<void> => {
  const first = at[0] ?? 0
  await db.runPrepared(
    insertSql(table, generation),
    {
      lines: blobValue(lines),
      first: BigInt(first),
      at: listValue(at.every((time) => time === first) ? [] : at.map(BigInt)),
      changes: listValue(changes.every((change) => change === null) ? [] : changes),
    },
    { lines: BLOB, first: BIGINT, at: LIST(BIGINT), changes: LIST(VARCHAR) },
  )
}

/** Lists that are shorter than the lines are filled with nulls. `_typed` is the record as the columns want it, `_text` the same attributes as they came. */
const insertSql = ({ name, columns }: Table, generation: number): string => {
  const checked = columns.filter(({ type }) => type !== 'VARCHAR' && type !== 'JSON')
  const own = [fingerprintSql(columns), 'make_timestamptz(_at * 1000)', '_meta', String(generation)]
  const names = columns.map((column) => quoteIdentifier(column.name))
  const values = columns.map((column) => `${valueSql(column)} AS ${quoteIdentifier(column.name)}`)
  const meta = `'{"changes":[' || concat_ws(',', ${['_changes', ...checked.map(changeSql)].join(', ')}) || ']}' AS _meta`
  return `
    INSERT INTO ${quoteIdentifier(name)} (${[...names, ...metaColumns.map(([column]) => column)].join(', ')})
    SELECT ${[...names, ...own].join(', ')}
    FROM (
      SELECT ${[...values, '_at', meta].join(', ')}
      FROM (
        SELECT ${fromJsonSql(columns, ({ type }) => type)} AS _typed, ${fromJsonSql(checked, () => 'VARCHAR')} AS _text, _at, _changes
        FROM (
          SELECT _json, coalesce(_listed, $first::BIGINT) AS _at, _changes
          FROM (SELECT unnest(string_split(decode($lines::BLOB), chr(10))) AS _json, unnest($at::BIGINT[]) AS _listed, unnest($changes::VARCHAR[]) AS _changes))))`
}

const fromJsonSql = (columns: ReadonlyArray<Column>, type: (column: Column) => string): string =>
  columns.length === 0
    ? 'NULL'
    : `from_json(_json, ${quoteLiteral(JSON.stringify(Object.fromEntries(columns.map((column) => [column.name, type(column)]))))})`

const typedSql = ({ name }: Column): string => `_typed.${quoteIdentifier(name)}`
const textSql = ({ name }: Column): string => `_text.${quoteIdentifier(name)}`

/** DuckDB rounds 1.5 to an integer; an integer column takes 5.0, but no fraction. */
const valueSql = (column: Column): string =>
  column.type === 'BIGINT'
    ? `CASE WHEN contains(${textSql(column)}, '.') AND ${typedSql(column)} <> TRY_CAST(${textSql(column)} AS DOUBLE) THEN NULL ELSE ${typedSql(column)} END`
    : typedSql(column)

const changeSql = (column: Column): string => {
  const change = { field: column.name, change: 'NULLED', reason: 'DESTINATION_TYPECAST_ERROR' }
  return `CASE WHEN ${textSql(column)} IS NOT NULL AND (${valueSql(column)}) IS NULL THEN ${quoteLiteral(JSON.stringify(change))} END`
}
