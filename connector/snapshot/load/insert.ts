import { isUtf8 } from 'node:buffer'
import { BIGINT, BLOB, blobValue, LIST, listValue, VARCHAR } from '@duckdb/node-api'
import type { Row } from '../../cdk'
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

const surrogatePattern =
  /\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})|\\./g

/** JSON allows half of a surrogate pair as an escape and DuckDB does not: a lone half becomes U+FFFD, as do bytes that are not UTF-8. */
const replaceLoneSurrogates = (json: Buffer): Buffer =>
  isUtf8(json) && !json.includes('\\ud') && !json.includes('\\uD')
    ? json
    : Buffer.from(
        json
          .toString()
          .replace(surrogatePattern, (found, lone: string | undefined) => (lone === undefined ? found : '\\ufffd')),
      )

const newlineByte = 0x0a

/**
 * Collects records for one insert, copied into one buffer, a line each: DuckDB takes one text faster than a list, and the buffers
 * of the pages that the records came in can be freed.
 */
export type RowBatch = {
  /** `at`: when the record was read, in milliseconds since 1970. */
  readonly add: (row: Row, at: number) => void
  readonly count: () => number
  /** Empties the batch and returns what was in it. */
  readonly take: () => RowLines
}

export type RowLines = {
  /** One record a line; UTF-8 without lone surrogates. Valid until the next `take`. */
  readonly lines: Buffer
  readonly at: ReadonlyArray<number>
  /** Each record's changes as JSON without the brackets; null for a record without changes. */
  readonly changes: ReadonlyArray<string | null>
}

export const createRowBatch = (): RowBatch => {
  let bytes = Buffer.allocUnsafe(65_536)
  let otherBytes = Buffer.allocUnsafe(0)
  let used = 0
  let at: Array<number> = []
  let changes: Array<string | null> = []
  return {
    add: (row, time) => {
      const needed = used + row.json.length + 1
      if (needed > bytes.length) {
        const larger = Buffer.allocUnsafe(Math.max(needed, bytes.length * 2))
        bytes.copy(larger, 0, 0, used)
        bytes = larger
      }
      if (used > 0) bytes[used++] = newlineByte
      bytes.set(row.json, used)
      used += row.json.length
      at.push(time)
      changes.push(row.changes?.map((change) => JSON.stringify(change)).join(',') || null)
    },
    count: () => at.length,
    take: () => {
      const rows = { lines: replaceLoneSurrogates(bytes.subarray(0, used)), at, changes }
      ;[bytes, otherBytes] = [otherBytes, bytes]
      used = 0
      at = []
      changes = []
      return rows
    },
  }
}

/** Inserts records as typed rows, in their order. A value that does not fit its column becomes null and is named in `_airbyte_meta`. */
export const insertRows = async (
  db: Database,
  table: Table,
  generation: number,
  { lines, at, changes }: RowLines,
): Promise<void> => {
  const first = at[0] ?? 0
  const values = {
    lines: blobValue(lines),
    first: BigInt(first),
    at: listValue(at.every((time) => time === first) ? [] : at.map(BigInt)),
    changes: listValue(changes.every((change) => change === null) ? [] : changes),
  }
  const types = { lines: BLOB, first: BIGINT, at: LIST(BIGINT), changes: LIST(VARCHAR) }
  if (table.columns.length <= wideTableColumns) return db.runPrepared(insertSql(table, generation), values, types)
  const columns = table.columns.filter((column) => attributeOf(column) !== null)
  await db.run(wideMembersSql(columns), values, types)
  for (const sql of wideInsertSql(table.name, columns, generation)) await db.run(sql)
}

/** What a structure of so many members costs grows with their square; such records are typed in groups of columns. */
export const wideTableColumns = 200
const groupColumns = 250

/** Into `_members`: the JSON of each record's attributes as one list, in the order of the columns. */
const wideMembersSql = (columns: ReadonlyArray<Column>): string => `
  CREATE OR REPLACE TEMP TABLE _members AS
  SELECT json_extract(_json, [${columns.map((column) => quoteLiteral(toJsonPointer(attributeOf(column) ?? ''))).join(', ')}]) AS _list, _at, _changes
  FROM (${linesSql})`

/** Types the columns group by group, and puts the groups side by side. */
const wideInsertSql = (table: string, columns: ReadonlyArray<Column>, generation: number): ReadonlyArray<string> => {
  const groups = Array.from({ length: Math.ceil(columns.length / groupColumns) }, (_, g) =>
    columns.slice(g * groupColumns, (g + 1) * groupColumns),
  )
  const steps = groups.map((group, g) => {
    const json = (i: number) => `_list[${g * groupColumns + i + 1}]`
    const typed = group.map((column, i) => {
      const [value, text] = [column.type, 'VARCHAR'].map((type) => `from_json(${json(i)}, '"${type}"')`)
      return `${toValueSql(column.type, `${value}`, `${text}`)} AS v${i}`
    })
    const changes = group.flatMap((column, i) =>
      hasText(column) ? [toChangeSql(column, `from_json(${json(i)}, '"VARCHAR"')`, `v${i}`)] : [],
    )
    return [
      `CREATE OR REPLACE TEMP TABLE _typed${g} AS SELECT ${typed.join(', ')} FROM _members`,
      `CREATE OR REPLACE TEMP TABLE _told${g} AS
       SELECT concat_ws(',', ${['NULL::VARCHAR', ...changes].join(', ')}) AS changes, concat_ws(chr(31), ${group.map((column, i) => fingerprintPartSql(column, `v${i}`)).join(', ')}) AS part
       FROM _members POSITIONAL JOIN _typed${g}`,
    ]
  })
  const sides = groups.map((_, g) => `_typed${g} POSITIONAL JOIN _told${g}`).join(' POSITIONAL JOIN ')
  const values = groups.flatMap((group, g) => group.map((_, i) => `_typed${g}.v${i}`))
  const parts = groups.map((_, g) => `nullif(_told${g}.part, '')`).join(', ')
  const changes = groups.map((_, g) => `nullif(_told${g}.changes, '')`).join(', ')
  const names = [...columns.map(({ name }) => quoteIdentifier(name)), ...airbyteColumns.map(([column]) => column)]
  return [
    ...steps.flat(),
    `INSERT INTO ${quoteIdentifier(table)} (${names.join(', ')})
     SELECT ${values.join(', ')}, md5(concat_ws(chr(31), '', ${parts}))::UUID, make_timestamptz(_members._at * 1000),
       '{"changes":[' || concat_ws(',', _members._changes, ${changes}) || ']}', ${generation}
     FROM _members POSITIONAL JOIN ${sides}`,
    ...['_members', ...groups.flatMap((_, g) => [`_typed${g}`, `_told${g}`])].map((name) => `DROP TABLE temp.${name}`),
  ]
}

/**
 * `unnest` fills lists that are shorter than the lines with nulls. `_typed` is the record in the columns' types, `_text` the same
 * attributes as text. Only the innermost selects are free of foreign names.
 */
const insertSql = ({ name, columns }: Table, generation: number): string => {
  const filledColumns = columns.filter((column) => attributeOf(column) !== null)
  const nonTextColumns = filledColumns.filter(hasText)
  const [at, meta] = [findFreeName(columns, '_at'), findFreeName(columns, '_meta')].map(quoteIdentifier)
  const airbyteValues = [fingerprintSql(filledColumns), `make_timestamptz(${at} * 1000)`, meta, String(generation)]
  const names = filledColumns.map((column) => quoteIdentifier(column.name))
  const values = filledColumns.map((column) => `${valueSql(column)} AS ${quoteIdentifier(column.name)}`)
  const changes = `'{"changes":[' || concat_ws(',', ${['_changes', ...nonTextColumns.map(changeSql)].join(', ')}) || ']}' AS ${meta}`
  return `
    INSERT INTO ${quoteIdentifier(name)} (${[...names, ...airbyteColumns.map(([column]) => column)].join(', ')})
    SELECT ${[...names, ...airbyteValues].join(', ')}
    FROM (
      SELECT ${[...values, `_at AS ${at}`, changes].join(', ')}
      FROM (
        SELECT ${fromJsonSql(filledColumns, ({ type }) => type)} AS _typed, ${fromJsonSql(nonTextColumns, () => 'VARCHAR')} AS _text, _json, _at, _changes
        FROM (${linesSql})))`
}

/** The records with the time and the changes of each. */
const linesSql = `
          SELECT _json, coalesce(_listed, $first::BIGINT) AS _at, _changes
          FROM (SELECT unnest(string_split(decode($lines::BLOB), chr(10))) AS _json, unnest($at::BIGINT[]) AS _listed, unnest($changes::VARCHAR[]) AS _changes)`

/** A structure of the attributes whose columns have their names; its members could not differ in case alone either. */
const fromJsonSql = (columns: ReadonlyArray<Column>, type: (column: Column) => string): string => {
  const named = columns.filter(({ attribute }) => attribute === undefined)
  return named.length === 0
    ? 'NULL'
    : `from_json(_json, ${quoteLiteral(JSON.stringify(Object.fromEntries(named.map((column) => [column.name, type(column)]))))})`
}

const memberSql = ({ name, attribute }: Column, structure: '_typed' | '_text', type: string): string =>
  typeof attribute === 'string'
    ? `from_json(json_extract(_json, ${quoteLiteral(toJsonPointer(attribute))}), '"${type}"')`
    : `${structure}.${quoteIdentifier(name)}`

const typedSql = (column: Column): string => memberSql(column, '_typed', column.type)
const textSql = (column: Column): string => memberSql(column, '_text', 'VARCHAR')

const toJsonPointer = (attribute: string): string => `/${attribute.replaceAll('~', '~0').replaceAll('/', '~1')}`

/** Whether a value may not fit the column; the text then tells it from a null. */
const hasText = ({ type }: Column): boolean => type !== 'VARCHAR' && type !== 'JSON'

/**
 * An integer column takes 5.0 and 1e3 but no fraction, and no number is infinite: DuckDB alone would make 2 of 1.5, 0 of 1e-7 and
 * infinity of 1e400.
 */
const toValueSql = (type: Column['type'], typed: string, text: string): string => {
  if (type === 'DOUBLE') return `CASE WHEN isfinite(${typed}) THEN ${typed} END`
  return type === 'BIGINT'
    ? `CASE WHEN regexp_matches(${text}, '[.eE]') AND ${typed} <> TRY_CAST(${text} AS DOUBLE) THEN NULL ELSE ${typed} END`
    : typed
}

const valueSql = (column: Column): string => toValueSql(column.type, typedSql(column), textSql(column))

/** The entry in `_airbyte_meta` for a value that became null; null if the value fits. */
const toChangeSql = (column: Column, text: string, value: string): string => {
  const change = { field: attributeOf(column), change: 'NULLED', reason: 'DESTINATION_TYPECAST_ERROR' }
  return `CASE WHEN ${text} IS NOT NULL AND (${value}) IS NULL THEN ${quoteLiteral(JSON.stringify(change))} END`
}

const changeSql = (column: Column): string => toChangeSql(column, textSql(column), valueSql(column))
