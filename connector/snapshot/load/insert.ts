import { isUtf8 } from 'node:buffer'
import { randomUUID } from 'node:crypto'
import { closeSync, openSync, readSync, unlinkSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { StringDecoder } from 'node:string_decoder'
import type { Row } from '../../cdk'
import { tombstoneColumnNames } from '../../cdk'
import { type Database, quoteIdentifier, quoteLiteral } from '../store/database'
import { isLakePath } from '../store/lake-access'
import {
  airbyteColumns,
  attributeOf,
  type Column,
  findFreeName,
  fingerprintPartSql,
  fingerprintSql,
  type Table,
} from '../store/tables'

/**
 * Where the records of one stream wait for the next commit: a file that nobody else can open, since it has no name, one record a
 * line. DuckDB reads it with all threads, and records that wait take no memory.
 */
export type Spool = {
  /** `at`: when the record was read, in milliseconds since 1970. */
  readonly add: (row: Row, at: number) => void
  readonly count: () => number
  /** SQL that is true for records which are never written, since they are of someone who was forgotten; undefined: all are written. */
  readonly forgotten: string | undefined
  /** The table `(_seq, _at, _changes, _json)` in SQL of the records that are written, or of those that are not. Nothing may be added after it. */
  readonly toSql: (which?: 'kept' | 'forgotten') => string
  /** Whether any text in it is the name of an attribute that marks tombstones. */
  readonly mentionsTombstones: () => boolean
  /** The records as text, in their order. */
  readonly records: () => Iterable<SpooledRecord>
  readonly close: () => void
}

/** `changes`: the entries of its `_airbyte_meta`, with a comma between them. */
type SpooledRecord = { readonly at: number; readonly changes: string; readonly json: string }

/** Stands between the fields of a line: no JSON text holds it. */
const separator = '\u0001'
const bufferBytes = 131_072
/** DuckDB reads the file in parts of this size, one for each thread at a time, and types a part at once: larger ones take memory only. */
const partBytes = 256_000

/** `path`: the file of the snapshot; the spool is on the same disk. `forgotten`: SQL over `_json`. */
export const createSpool = (path: string, forgotten?: string): Spool => {
  let buffer: Buffer = Buffer.allocUnsafe(16_384)
  let used = 0
  let count = 0
  let longest = 0
  let mentionsTombstones = false
  let file: number | undefined
  const writeOut = (): number => {
    file ??= openUnnamedFile(path)
    const text = cleanText(buffer.subarray(0, used))
    mentionsTombstones ||= tombstoneColumnNames.some((name) => text.includes(name))
    for (let from = 0; from < text.length; ) from += writeSync(file, text, from)
    used = 0
    return file
  }
  return {
    add: ({ json, changes = [] }, at) => {
      const changeText = changes.map((change) => JSON.stringify(change)).join(',')
      const head = `${count}${separator}${at}${separator}${changeText}${separator}`
      const encoding = changeText === '' ? 'latin1' : 'utf8'
      const length = Buffer.byteLength(head, encoding) + json.length + 2
      if (used + length > buffer.length) {
        if (used >= bufferBytes / 2) writeOut()
        if (used + length > buffer.length) buffer = enlarge(buffer, used, used + length)
      }
      used += buffer.write(head, used, encoding)
      buffer.set(json, used)
      used += json.length
      // An empty text is no JSON; as an empty field it would count as null.
      if (json.length === 0) buffer[used++] = 0x20
      buffer[used++] = 0x0a
      count += 1
      if (length > longest) longest = length
    },
    count: () => count,
    forgotten,
    toSql: (which = 'kept') => {
      const largest = Math.max(partBytes, longest + 1024)
      return `(SELECT * FROM read_csv('/dev/fd/${writeOut()}', columns = {'_seq': 'BIGINT', '_at': 'BIGINT', '_changes': 'VARCHAR', '_json': 'VARCHAR'},
        auto_detect = false, header = false, delim = '${separator}', quote = '', escape = '', new_line = '\\n', max_line_size = ${largest}, buffer_size = ${largest})${forgotten === undefined ? '' : ` WHERE ${which === 'kept' ? 'NOT ' : ''}${forgotten}`})`
    },
    mentionsTombstones: () => {
      writeOut()
      return mentionsTombstones
    },
    records: () => readRecords(writeOut()),
    close: () => {
      if (file !== undefined) closeSync(file)
      file = undefined
    },
  }
}

const enlarge = (buffer: Buffer, used: number, needed: number): Buffer => {
  const larger = Buffer.allocUnsafe(Math.max(needed, Math.min(buffer.length * 2, bufferBytes)))
  buffer.copy(larger, 0, 0, used)
  return larger
}

/** A file without a name is gone with its process, however that ends. */
const openUnnamedFile = (path: string): number => {
  const name = `${path === ':memory:' || isLakePath(path) ? join(tmpdir(), 'feedback') : path}.${randomUUID()}.spool`
  const file = openSync(name, 'wx+', 0o600)
  unlinkSync(name)
  return file
}

const surrogatePattern =
  /\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})|\\./g

/**
 * JSON allows half of a surrogate pair as an escape and DuckDB does not: a lone half becomes U+FFFD, as do bytes that are not UTF-8.
 * A carriage return can only stand between two tokens, as a space can; in a line DuckDB takes it for the end.
 */
const cleanText = (text: Buffer): Buffer => {
  const isClean = isUtf8(text) && !text.includes('\\ud') && !text.includes('\\uD') && !text.includes(0x0d)
  if (isClean) return text
  return Buffer.from(
    text
      .toString()
      .replaceAll('\r', ' ')
      .replace(surrogatePattern, (found, lone: string | undefined) => (lone === undefined ? found : '\\ufffd')),
  )
}

function* readRecords(file: number): Iterable<SpooledRecord> {
  const decoder = new StringDecoder()
  const buffer = Buffer.allocUnsafe(bufferBytes)
  let rest = ''
  for (let position = 0; ; ) {
    const length = readSync(file, buffer, 0, buffer.length, position)
    if (length === 0) return
    position += length
    const lines = (rest + decoder.write(buffer.subarray(0, length))).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) {
      const [, at, changes = '', ...json] = line.split(separator)
      yield { at: Number(at), changes, json: json.join(separator) }
    }
  }
}

/** The records of a spool in so many spools; `parts`: in which each record is, from 0. */
export const splitSpool = (spool: Spool, path: string, parts: Uint8Array, count: number): ReadonlyArray<Spool> => {
  const spools = Array.from({ length: count }, () => createSpool(path, spool.forgotten))
  let number = 0
  for (const { at, changes, json } of spool.records()) {
    spools[parts[number] ?? 0]?.add({ json: Buffer.from(json), changes: JSON.parse(`[${changes}]`) }, at)
    number += 1
  }
  return spools
}

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
  if (table.columns.length <= wideTableColumns)
    return { sql: typedRowsSql(columns, generation, spool, seq), seq, names }
  for (const sql of wideRowsSql(columns, generation, spool, seq)) await db.run(sql)
  return { sql: 'SELECT * FROM temp._wide', seq, names }
}

/** The values of some columns of the records alone, typed in the same way. */
export const typeColumnsSql = (columns: ReadonlyArray<Column>, spool: string): string =>
  columns.length === 0
    ? `SELECT 1 AS _row FROM ${spool}`
    : `SELECT ${columns.map((column) => `${valueSql(column)} AS ${quoteIdentifier(column.name)}`).join(', ')} FROM (${recordsSql(columns, spool)})`

/** One column of the records as `value`, with the place of each in its spool as `seq`. */
export const typeValuesSql = (column: Column, spool: string): string =>
  `SELECT _seq AS seq, ${valueSql(column)} AS value FROM (${recordsSql([column], spool)})`

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

/** A structure of the attributes by the names of their columns, which do not differ in case alone, as its members could not. */
const recordSql = (columns: ReadonlyArray<Column>): string =>
  columns.length === 0
    ? 'NULL'
    : `from_json(_json, ${quoteLiteral(JSON.stringify(Object.fromEntries(columns.map((column) => [column.name, sourceType(column)]))))})`

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
