import { quoteIdentifier, quoteLiteral } from '../store/database'
import { airbyteColumns, attributeOf, type Column, findFreeName, fingerprintSql, type Table } from '../store/tables'

/**
 * Records in the columns of their table. A value that does not fit its column becomes null and is named in
 * `_airbyte_meta`.
 */
export type TypedRows = {
  /** SQL for the rows: the columns that records fill, those of `airbyteColumns`, and `seq`. */
  readonly sql: string
  /** The name of the column with a record's place in the stream. */
  readonly seq: string
  /** The columns without `seq`, as SQL. */
  readonly names: string
}

/**
 * Objects to be typed: SQL for rows with `_record` (a structure of their attributes by column name), `_json` (their
 * text, only needed for a column whose name differs from its attribute's), `_at`, `_changes` and `_seq`. `values`: SQL
 * for columns that no attribute fills. `isChecked`: the structure has the types of the columns, since our source has
 * checked each value.
 */
export type RecordSource = {
  readonly sql: string
  readonly isChecked: boolean
  readonly values?: ReadonlyMap<string, string>
}

/** The records of a spool, given as SQL. */
const recordsOf = (columns: ReadonlyArray<Column>, spool: string, isChecked = false): RecordSource => ({
  sql: `SELECT ${recordSql(columns, isChecked)} AS _record, _json, _at, _changes, _seq FROM ${spool}`,
  isChecked,
})

export const typeRows = (table: Table, generation: number, spool: string, isChecked = false): TypedRows =>
  typeRecords(table, generation, recordsOf(table.columns, spool, isChecked))

export const typeRecords = (table: Table, generation: number, source: RecordSource): TypedRows => {
  const { columns } = table
  const names = [...columns.map(({ name }) => name), ...airbyteColumns.map(([name]) => name)]
  const seq = quoteIdentifier(findFreeName(table.columns, '_seq'))
  return {
    sql: typedRowsSql(columns, generation, source, seq),
    seq,
    names: names.map(quoteIdentifier).join(', '),
  }
}

/** The values of some columns of the records alone, typed in the same way. */
export const typeColumnsSql = (columns: ReadonlyArray<Column>, spool: string): string =>
  columns.length === 0
    ? `SELECT 1 AS _row FROM ${spool}`
    : `SELECT ${columns.map((column) => `${valueSql(column)} AS ${quoteIdentifier(column.name)}`).join(', ')}
       FROM (${recordsOf(columns, spool).sql})`

/** One column of the records as `value`, with the place of each in its spool as `seq`. */
export const typeValuesSql = (column: Column, spool: string): string =>
  `SELECT _seq AS seq, ${valueSql(column)} AS value FROM (${recordsOf([column], spool).sql})`

/** Only the innermost selects are free of foreign names. */
const typedRowsSql = (
  columns: ReadonlyArray<Column>,
  generation: number,
  { sql, isChecked, values: given = new Map() }: RecordSource,
  seq: string,
): string => {
  const [at, meta] = [findFreeName(columns, '_at'), findFreeName(columns, '_meta')].map(quoteIdentifier)
  const names = columns.map((column) => quoteIdentifier(column.name))
  const toValue = isChecked ? sourceSql : (column: Column) => valueSql(column)
  const values = columns.map(
    (column) => `${given.get(column.name) ?? toValue(column)} AS ${quoteIdentifier(column.name)}`,
  )
  const doubtful = isChecked ? [] : columns.filter(mayNotFit)
  const changes = ['_changes', ...doubtful.map((column) => changeSql(column))].join(', ')
  const airbyteValues = [fingerprintSql(columns), `make_timestamptz(${at} * 1000)`, meta, String(generation)]
  return `
    SELECT ${[...names, ...airbyteColumns.map(([name], i) => `${airbyteValues[i]} AS ${name}`), seq].join(', ')}
    FROM (
      SELECT ${[...values, `_at AS ${at}`, `_seq AS ${seq}`].join(', ')},
        '{"changes":[' || concat_ws(',', ${changes}) || ']}' AS ${meta}
      FROM (${sql}))`
}

/**
 * A structure of the attributes by the names of their columns. Its members' names cannot differ in case alone, and
 * neither do those of columns.
 */
const recordSql = (columns: ReadonlyArray<Column>, isChecked: boolean): string =>
  columns.length === 0 ? 'NULL' : `from_json(_json, ${quoteLiteral(JSON.stringify(shapeOf(columns, isChecked)))})`

/**
 * The attributes of columns in the form in which DuckDB reads them from JSON text. If they may not fit, every type but
 * JSON is cast from text.
 */
export const shapeOf = (columns: ReadonlyArray<Column>, isChecked: boolean): Readonly<Record<string, string>> =>
  Object.fromEntries(columns.map((column) => [column.name, isChecked ? column.type : sourceType(column)]))

const sourceType = ({ type }: Column): 'JSON' | 'VARCHAR' => (type === 'JSON' ? 'JSON' : 'VARCHAR')

const sourceSql = (column: Column): string =>
  typeof column.attribute === 'string'
    ? `from_json(json_extract(_json, ${quoteLiteral(toJsonPointer(column.attribute))}), '"${sourceType(column)}"')`
    : `_record.${quoteIdentifier(column.name)}`

const toJsonPointer = (attribute: string): string => `/${attribute.replaceAll('~', '~0').replaceAll('/', '~1')}`

/** A value may not fit the column. */
const mayNotFit = ({ type }: Column): boolean => type !== 'VARCHAR' && type !== 'JSON'

/**
 * The value of an attribute in its column's type; null if it does not fit. An integer column accepts 5.0 and 1e3 but no
 * fraction, and no number is infinite. DuckDB alone would turn 1.5 into 2, 1e-7 into 0 and 1e400 into infinity.
 */
export const valueSql = (column: Column, source = sourceSql(column)): string => {
  const value = `TRY_CAST(${source} AS ${column.type})`
  if (column.type === 'DOUBLE') return `CASE WHEN isfinite(${value}) THEN ${value} END`
  return column.type === 'BIGINT'
    ? `CASE WHEN regexp_matches(${source}, '[.eE]') AND ${value} <> TRY_CAST(${source} AS DOUBLE)
         THEN NULL ELSE ${value} END`
    : value
}

/** The entry in `_airbyte_meta` for a value that became null; null if the value fits. */
const changeSql = (column: Column, source = sourceSql(column), value = valueSql(column, source)): string => {
  const change = { field: attributeOf(column), change: 'NULLED', reason: 'DESTINATION_TYPECAST_ERROR' }
  return `CASE WHEN ${source} IS NOT NULL AND (${value}) IS NULL THEN ${quoteLiteral(JSON.stringify(change))} END`
}
