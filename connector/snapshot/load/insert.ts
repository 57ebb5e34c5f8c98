import { type Database, quoteIdentifier, quoteLiteral } from '../store/database'
import {
  airbyteColumns,
  attributeOf,
  type Column,
  findFreeName,
  fingerprintPartSql,
  fingerprintSql,
  type Table,
} from '../store/tables'

/** The records of a spool in the columns of their table. A value that does not fit its column is null and named in `_airbyte_meta`. */
export type TypedRows = {
  /** SQL of the rows: the columns that records fill, those of `airbyteColumns`, and `seq`. */
  readonly sql: string
  /** The name of the column with a record's place in the stream. */
  readonly seq: string
  /** The columns without `seq`, as SQL. */
  readonly names: string
}

/** `spool`: SQL of the records. Rows of a wide table wait in a temporary table, which the next call replaces. */
export const typeRows = async (db: Database, table: Table, generation: number, spool: string): Promise<TypedRows> => {
  const seq = quoteIdentifier(findFreeName(table.columns, '_seq'))
  const columns = table.columns.filter((column) => attributeOf(column) !== null)
  const names = [...columns.map(({ name }) => name), ...airbyteColumns.map(([name]) => name)]
    .map(quoteIdentifier)
    .join(', ')
  const isWide = table.columns.length > wideTableColumns
  if (isWide) for (const sql of wideRowsSql(columns, generation, spool, seq)) await db.run(sql)
  return { sql: isWide ? 'SELECT * FROM temp._wide' : typedRowsSql(columns, generation, spool, seq), seq, names }
}

/** The values of some columns of the records alone, typed in the same way. */
export const typeColumnsSql = (columns: ReadonlyArray<Column>, spool: string): string =>
  columns.length === 0
    ? `SELECT 1 AS _row FROM ${spool}`
    : `SELECT ${columns.map((column) => `${valueSql(column)} AS ${quoteIdentifier(column.name)}`).join(', ')} FROM (${recordsSql(columns, spool)})`

/** What a structure of so many members costs grows with their square; such records are typed in groups of columns. */
export const wideTableColumns = 200
const groupColumns = 250

/** Into `_wide`: types the columns group by group, and puts the groups side by side, for which the temporary tables keep their order. */
const wideRowsSql = (
  columns: ReadonlyArray<Column>,
  generation: number,
  spool: string,
  seq: string,
): ReadonlyArray<string> => {
  const groups = Array.from({ length: Math.ceil(columns.length / groupColumns) }, (_, g) =>
    columns.slice(g * groupColumns, (g + 1) * groupColumns),
  )
  const pointers = columns.map((column) => quoteLiteral(toJsonPointer(attributeOf(column) ?? ''))).join(', ')
  const steps = groups.map((group, g) => {
    const json = (i: number) => `_list[${g * groupColumns + i + 1}]`
    const source = (column: Column, i: number) => `from_json(${json(i)}, '"${sourceType(column)}"')`
    const typed = group.map((column, i) => `${valueSql(column, source(column, i))} AS v${i}`)
    const changes = group.flatMap((column, i) =>
      mayNotFit(column) ? [changeSql(column, source(column, i), `v${i}`)] : [],
    )
    return [
      `CREATE OR REPLACE TEMP TABLE _typed${g} AS SELECT ${typed.join(', ')} FROM _members`,
      `CREATE OR REPLACE TEMP TABLE _told${g} AS
       SELECT concat_ws(',', ${['NULL::VARCHAR', ...changes].join(', ')}) AS changes, concat_ws(chr(31), ${group.map((column, i) => fingerprintPartSql(column, `v${i}`)).join(', ')}) AS part
       FROM _members POSITIONAL JOIN _typed${g}`,
    ]
  })
  const sides = groups.map((_, g) => `_typed${g} POSITIONAL JOIN _told${g}`).join(' POSITIONAL JOIN ')
  const values = groups.flatMap((group, g) =>
    group.map(({ name }, i) => `_typed${g}.v${i} AS ${quoteIdentifier(name)}`),
  )
  const parts = groups.map((_, g) => `nullif(_told${g}.part, '')`).join(', ')
  const changes = groups.map((_, g) => `nullif(_told${g}.changes, '')`).join(', ')
  return [
    'SET preserve_insertion_order = true',
    `CREATE OR REPLACE TEMP TABLE _members AS SELECT json_extract(_json, [${pointers}]) AS _list, _at, _changes, _seq FROM ${spool}`,
    ...steps.flat(),
    `CREATE OR REPLACE TEMP TABLE _wide AS
     SELECT ${values.join(', ')}, md5(concat_ws(chr(31), '', ${parts}))::UUID AS _airbyte_raw_id, make_timestamptz(_members._at * 1000) AS _airbyte_extracted_at,
       '{"changes":[' || concat_ws(',', _members._changes, ${changes}) || ']}' AS _airbyte_meta, ${generation} AS _airbyte_generation_id, _members._seq AS ${seq}
     FROM _members POSITIONAL JOIN ${sides}`,
    ...['_members', ...groups.flatMap((_, g) => [`_typed${g}`, `_told${g}`])].map((name) => `DROP TABLE temp.${name}`),
    'SET preserve_insertion_order = false',
  ]
}

/** Only the innermost selects are free of foreign names. */
const typedRowsSql = (columns: ReadonlyArray<Column>, generation: number, spool: string, seq: string): string => {
  const [at, meta] = [findFreeName(columns, '_at'), findFreeName(columns, '_meta')].map(quoteIdentifier)
  const names = columns.map((column) => quoteIdentifier(column.name))
  const values = columns.map((column) => `${valueSql(column)} AS ${quoteIdentifier(column.name)}`)
  const changes = `'{"changes":[' || concat_ws(',', ${['_changes', ...columns.filter(mayNotFit).map((column) => changeSql(column))].join(', ')}) || ']}' AS ${meta}`
  const airbyteValues = [fingerprintSql(columns), `make_timestamptz(${at} * 1000)`, meta, String(generation)]
  return `
    SELECT ${[...names, ...airbyteColumns.map(([name], i) => `${airbyteValues[i]} AS ${name}`), seq].join(', ')}
    FROM (SELECT ${[...values, `_at AS ${at}`, changes, `_seq AS ${seq}`].join(', ')} FROM (${recordsSql(columns, spool)}))`
}

const recordsSql = (columns: ReadonlyArray<Column>, spool: string): string =>
  `SELECT ${recordSql(columns)} AS _record, _json, _at, _changes, _seq FROM ${spool}`

/** A structure of the attributes whose columns have their names; its members could not differ in case alone either. */
const recordSql = (columns: ReadonlyArray<Column>): string => {
  const named = columns.filter(({ attribute }) => attribute === undefined)
  return named.length === 0
    ? 'NULL'
    : `from_json(_json, ${quoteLiteral(JSON.stringify(Object.fromEntries(named.map((column) => [column.name, sourceType(column)]))))})`
}

/** The type in which an attribute is taken from the JSON text; every other type is cast from text. */
const sourceType = ({ type }: Column): 'JSON' | 'VARCHAR' => (type === 'JSON' ? 'JSON' : 'VARCHAR')

const sourceSql = (column: Column): string =>
  typeof column.attribute === 'string'
    ? `from_json(json_extract(_json, ${quoteLiteral(toJsonPointer(column.attribute))}), '"${sourceType(column)}"')`
    : `_record.${quoteIdentifier(column.name)}`

const toJsonPointer = (attribute: string): string => `/${attribute.replaceAll('~', '~0').replaceAll('/', '~1')}`

/** Whether a value may not fit the column. */
const mayNotFit = ({ type }: Column): boolean => type !== 'VARCHAR' && type !== 'JSON'

/**
 * The value of an attribute in its column's type; null where it does not fit. An integer column takes 5.0 and 1e3 but no fraction,
 * and no number is infinite: DuckDB alone would make 2 of 1.5, 0 of 1e-7 and infinity of 1e400.
 */
const valueSql = (column: Column, source = sourceSql(column)): string => {
  const value = `TRY_CAST(${source} AS ${column.type})`
  if (!mayNotFit(column)) return source
  if (column.type === 'DOUBLE') return `CASE WHEN isfinite(${value}) THEN ${value} END`
  return column.type === 'BIGINT'
    ? `CASE WHEN regexp_matches(${source}, '[.eE]') AND ${value} <> TRY_CAST(${source} AS DOUBLE) THEN NULL ELSE ${value} END`
    : value
}

/** The entry in `_airbyte_meta` for a value that became null; null if the value fits. */
const changeSql = (column: Column, source = sourceSql(column), value = valueSql(column, source)): string => {
  const change = { field: attributeOf(column), change: 'NULLED', reason: 'DESTINATION_TYPECAST_ERROR' }
  return `CASE WHEN ${source} IS NOT NULL AND (${value}) IS NULL THEN ${quoteLiteral(JSON.stringify(change))} END`
}
