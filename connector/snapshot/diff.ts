import { createHash } from 'node:crypto'
import { type Database, quoteIdentifier, quoteLiteral, type Snapshot } from './store/database'
import { fingerprintSql, listStreamTables, type Table } from './store/tables'

type TableHash = { readonly table: string; readonly rows: number; readonly hash: string }
type ContentHash = { readonly hash: string; readonly tables: ReadonlyArray<TableHash> }

/**
 * The hash of the streams' tables and the states, independent of the order of rows: the same messages written into a
 * new file always give the same hash. The times of the loads (`_loads`) do not count.
 */
export const hashContent = async ({ db }: Snapshot): Promise<ContentHash> => {
  const tables: Array<TableHash> = []
  for (const table of await listStreamTables(db)) {
    const [row] = await db.query(rowHashSql(table))
    const shape = table.columns.map(({ name, type }) => `${name} ${type}`).join(', ')
    tables.push({ table: table.name, rows: Number(row?.rows), hash: md5(`${shape}\n${row?.low} ${row?.high}`) })
  }
  const states = await db.query('SELECT stream, state FROM _state ORDER BY stream')
  tables.push({
    table: '_state',
    rows: states.length,
    hash: md5(states.map(({ stream, state }) => `${stream} ${state}\n`).join('')),
  })
  return { hash: md5(tables.map(({ table, rows, hash }) => `${table} ${rows} ${hash}\n`).join('')), tables }
}

/**
 * Sums both halves of the rows' hashes. A sum does not depend on the order of rows, and equal rows do not cancel out.
 * The cast to HUGEINT is needed because DuckDB rounds sums of unsigned integers, which would depend on the order.
 */
const rowHashSql = ({ name, columns }: Table): string => `
  SELECT count(*) AS rows,
    sum(md5_number_lower(row)::HUGEINT)::VARCHAR AS low,
    sum(md5_number_upper(row)::HUGEINT)::VARCHAR AS high
  FROM (
    SELECT concat_ws('|', ${fingerprintSql(columns)},
        epoch_us(_airbyte_extracted_at), _airbyte_meta, _airbyte_generation_id) AS row
    FROM ${quoteIdentifier(name)})`

const md5 = (text: string): string => createHash('md5').update(text).digest('hex')

type ColumnDifference = { readonly column: string; readonly a: string | null; readonly b: string | null }
type ValueDifference = ColumnDifference & { readonly key: string }

export type StreamDifference = {
  readonly stream: string
  /** The number of rows in each file; null if the file does not have the table. */
  readonly a: number | null
  readonly b: number | null
  /** Columns whose types differ; null if a file does not have the column. */
  readonly columns: ReadonlyArray<ColumnDifference>
  /** Rows are matched by key, or by all their values if the stream has no key. */
  readonly onlyA: number
  readonly onlyB: number
  readonly changed: number
  /** The differing values in the first rows that differ. */
  readonly values: ReadonlyArray<ValueDifference>
}

export const isIdentical = ({ a, b, columns, onlyA, onlyB, changed }: StreamDifference): boolean =>
  a !== null && b !== null && columns.length + onlyA + onlyB + changed === 0

/**
 * The name under which the other file is attached. DuckDB derives a name from each file's path and refuses to use one
 * twice.
 */
const attachedName = '__compared'

/** How many rows of a stream are compared value by value. */
const maxComparedRows = 5

/** One of the two compared places: its tables, and SQL for their rows. */
export type Side = {
  readonly tables: ReadonlyMap<string, Table>
  readonly rows: (stream: string) => string
}

/**
 * The differences between a snapshot (a) and the one at `path` (b), stream by stream. The columns `_airbyte_…` are
 * ignored. `onStream`: called with a description before each stream.
 */
export const diffSnapshots = async (
  { db }: Snapshot,
  path: string,
  onStream: (text: string) => void = () => undefined,
): Promise<ReadonlyArray<StreamDifference>> => {
  await db.run(`ATTACH ${quoteLiteral(path)} AS ${attachedName} (READ_ONLY)`)
  const toMap = (tables: ReadonlyArray<Table>) => new Map(tables.map((table) => [table.name, table]))
  const differences = await compareSides(
    db,
    { tables: toMap(await listStreamTables(db)), rows: quoteIdentifier },
    {
      tables: toMap(await listStreamTables(db, attachedName)),
      rows: (stream) => `${attachedName}.${quoteIdentifier(stream)}`,
    },
    onStream,
  )
  await db.run(`DETACH ${attachedName}`)
  return differences
}

/**
 * The differences between two sides, stream by stream. `narrow`: prepares the comparison of a stream's differing rows.
 */
export const compareSides = async (
  db: Database,
  a: Side,
  b: Side,
  onStream: (text: string) => void,
  narrow: (stream: string) => Promise<(rows: string) => string> = async () => (rows) => rows,
): Promise<ReadonlyArray<StreamDifference>> => {
  const differences: Array<StreamDifference> = []
  const streams = [...new Set([...a.tables.keys(), ...b.tables.keys()])].sort()
  for (const [i, stream] of streams.entries()) {
    onStream(`Stream ${i + 1} of ${streams.length}: ${stream}`)
    const [tableA, tableB] = [a.tables.get(stream), b.tables.get(stream)]
    const count = async ({ tables, rows }: Side) =>
      tables.has(stream) ? Number(await db.scalar(`SELECT count(*) FROM ${rows(stream)}`)) : null
    const counts = { stream, a: await count(a), b: await count(b) }
    if (tableA === undefined || tableB === undefined) {
      differences.push({ ...counts, columns: [], onlyA: counts.a ?? 0, onlyB: counts.b ?? 0, changed: 0, values: [] })
      continue
    }
    const narrowed = await narrow(stream)
    const relations = { a: narrowed(a.rows(stream)), b: narrowed(b.rows(stream)) }
    differences.push({ ...counts, ...(await compareTables(db, tableA, tableB, relations)) })
  }
  return differences
}

/** SQL for the rows of both sides. */
type Relations = { readonly a: string; readonly b: string }

const compareTables = async (
  db: Database,
  a: Table,
  b: Table,
  relations: Relations,
): Promise<Pick<StreamDifference, 'columns' | 'onlyA' | 'onlyB' | 'changed' | 'values'>> => {
  const columns = columnDifferences(a, b)
  const common = a.columns.filter(({ name }) => !columns.some(({ column }) => column === name))
  const names = common.map(({ name }) => name)
  const key = await readSharedKey(db, a.name, names)
  const keys = key.map((_, i) => `k${i}`)
  const keyColumns = key.map((name, i) => `t.${quoteIdentifier(name)} AS k${i}, `).join('')
  const rowsSql = (rows: string) =>
    `(SELECT ${keyColumns}${fingerprintSql(common)} AS fingerprint, true AS present FROM ${rows} AS t)`
  const matchSql = (keys.length === 0 ? ['fingerprint'] : keys)
    .map((name) => `a.${name} IS NOT DISTINCT FROM b.${name}`)
    .join(' AND ')
  const joinSql = `${rowsSql(relations.a)} AS a FULL JOIN ${rowsSql(relations.b)} AS b ON ${matchSql}`
  const [counts] = await db.query(`
    SELECT count(*) FILTER (b.present IS NULL) AS only_a, count(*) FILTER (a.present IS NULL) AS only_b,
      count(*) FILTER (a.fingerprint <> b.fingerprint) AS changed
    FROM ${joinSql}`)
  const changed = Number(counts?.changed)
  if (changed > 0)
    await db.run(`
      CREATE OR REPLACE TEMP TABLE _changed AS
      SELECT ${keys.map((name) => `a.${name}`).join(', ')} FROM ${joinSql}
      WHERE a.fingerprint <> b.fingerprint ORDER BY ALL LIMIT ${maxComparedRows}`)
  return {
    columns,
    onlyA: Number(counts?.only_a),
    onlyB: Number(counts?.only_b),
    changed,
    values: changed === 0 ? [] : await readValueDifferences(db, relations, key, names),
  }
}

const columnDifferences = (a: Table, b: Table): ReadonlyArray<ColumnDifference> => {
  const typeIn = ({ columns }: Table, name: string) => columns.find((column) => column.name === name)?.type ?? null
  return [...new Set([...a.columns, ...b.columns].map(({ name }) => name))]
    .map((column) => ({ column, a: typeIn(a, column), b: typeIn(b, column) }))
    .filter((column) => column.a !== column.b)
}

/** The stream's primary key, if both files have all its columns; otherwise an empty list. */
const readSharedKey = async (
  db: Database,
  stream: string,
  common: ReadonlyArray<string>,
): Promise<ReadonlyArray<string>> => {
  const key = await db.scalar('SELECT primary_key FROM _streams WHERE stream = $stream', { stream })
  const names = Array.isArray(key) ? key.map(String) : []
  return names.every((name) => common.includes(name)) ? names : []
}

/** The values that differ in the rows whose keys are in `_changed`. */
const readValueDifferences = async (
  db: Database,
  relations: Relations,
  key: ReadonlyArray<string>,
  columns: ReadonlyArray<string>,
): Promise<ReadonlyArray<ValueDifference>> => {
  const keyText = key
    .map((name, i) => `${quoteLiteral(`${name} `)} || coalesce(c.k${i}::VARCHAR, 'null')`)
    .join(` || ' ' || `)
  const onKeySql = (side: string) =>
    `ON ${key.map((name, i) => `c.k${i} IS NOT DISTINCT FROM ${side}.${quoteIdentifier(name)}`).join(' AND ')}`
  const queries = columns.map((name) => {
    const column = quoteIdentifier(name)
    return `
      SELECT ${keyText} AS key, ${quoteLiteral(name)} AS "column",
        a.${column}::VARCHAR AS a, b.${column}::VARCHAR AS b, c.rowid AS row
      FROM _changed AS c JOIN ${relations.a} AS a ${onKeySql('a')} JOIN ${relations.b} AS b ${onKeySql('b')}
      WHERE a.${column} IS DISTINCT FROM b.${column}`
  })
  return (await db.query(`SELECT * FROM (${queries.join(' UNION ALL ')}) ORDER BY row, "column"`)).map((row) => ({
    key: String(row.key),
    column: String(row.column),
    a: row.a === null ? null : String(row.a),
    b: row.b === null ? null : String(row.b),
  }))
}
