import { BIGINT, BLOB, blobValue, LIST, listValue, VARCHAR } from '@duckdb/node-api'
import type { Arrivals } from './arrivals'
import { type Column, fingerprint, metaColumns } from './column'
import { type Database, literal, quoted } from './database'
import type { Table } from './table'

/** Appends records as typed rows, in their order. A value that does not fit its column becomes null and is named in `_airbyte_meta`. */
export const insertRows = async (
  db: Database,
  table: Table,
  generation: number,
  { lines, at, changes }: ReturnType<Arrivals['take']>,
): Promise<void> => {
  const first = at[0] ?? 0
  await db.runOften(
    insertion(table, generation),
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
const insertion = ({ name, columns }: Table, generation: number): string => {
  const checked = columns.filter(({ type }) => type !== 'VARCHAR' && type !== 'JSON')
  const own = [fingerprint(columns), 'make_timestamptz(_at * 1000)', '_meta', String(generation)]
  const names = columns.map((column) => quoted(column.name))
  const values = columns.map((column) => `${value(column)} AS ${quoted(column.name)}`)
  const meta = `'{"changes":[' || concat_ws(',', ${['_changes', ...checked.map(nulled)].join(', ')}) || ']}' AS _meta`
  return `
    INSERT INTO ${quoted(name)} (${[...names, ...metaColumns.map(([column]) => column)].join(', ')})
    SELECT ${[...names, ...own].join(', ')}
    FROM (
      SELECT ${[...values, '_at', meta].join(', ')}
      FROM (
        SELECT ${reading(columns, ({ type }) => type)} AS _typed, ${reading(checked, () => 'VARCHAR')} AS _text, _at, _changes
        FROM (
          SELECT _json, coalesce(_listed, $first::BIGINT) AS _at, _changes
          FROM (SELECT unnest(string_split(decode($lines::BLOB), chr(10))) AS _json, unnest($at::BIGINT[]) AS _listed, unnest($changes::VARCHAR[]) AS _changes))))`
}

const reading = (columns: ReadonlyArray<Column>, type: (column: Column) => string): string =>
  columns.length === 0
    ? 'NULL'
    : `from_json(_json, ${literal(JSON.stringify(Object.fromEntries(columns.map((column) => [column.name, type(column)]))))})`

const typed = ({ name }: Column): string => `_typed.${quoted(name)}`
const text = ({ name }: Column): string => `_text.${quoted(name)}`

/** DuckDB rounds 1.5 to an integer; an integer column takes 5.0, but no fraction. */
const value = (column: Column): string =>
  column.type === 'BIGINT'
    ? `CASE WHEN contains(${text(column)}, '.') AND ${typed(column)} <> TRY_CAST(${text(column)} AS DOUBLE) THEN NULL ELSE ${typed(column)} END`
    : typed(column)

const nulled = (column: Column): string => {
  const change = { field: column.name, change: 'NULLED', reason: 'DESTINATION_TYPECAST_ERROR' }
  return `CASE WHEN ${text(column)} IS NOT NULL AND (${value(column)}) IS NULL THEN ${literal(JSON.stringify(change))} END`
}
