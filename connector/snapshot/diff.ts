import { fingerprintSql } from './store/columns'
import type { Snapshot } from './store/database'
import { type Database, quoteIdentifier, quoteLiteral } from './store/database'
import { listStreamTables, type Table } from './store/tables'

export type ColumnDifference = { readonly column: string; readonly a: string | null; readonly b: string | null }
export type ValueDifference = ColumnDifference & { readonly key: string }

export type StreamDifference = {
  readonly stream: string
  /** Rows there; null where there is no such table. */
  readonly a: number | null
  readonly b: number | null
  /** By type; null where there is no such column. */
  readonly columns: ReadonlyArray<ColumnDifference>
  /** Rows by key; without a key, by all their values. */
  readonly onlyA: number
  readonly onlyB: number
  readonly changed: number
  /** The first rows that differ, value by value. */
  readonly values: ReadonlyArray<ValueDifference>
}

export const isIdentical = ({ a, b, columns, onlyA, onlyB, changed }: StreamDifference): boolean =>
  a !== null && b !== null && columns.length + onlyA + onlyB + changed === 0

/** What the other file is called while it is attached: no file's own name, which DuckDB would refuse to give twice. */
const attachedName = '__compared'

/** How many rows of a stream are shown value by value. */
const maxShownRows = 5

/** What differs between a snapshot (a) and the one at `path` (b), stream by stream. Our own columns (`_airbyte_…`) do not count. */
export const diffSnapshots = async ({ db }: Snapshot, path: string): Promise<ReadonlyArray<StreamDifference>> => {
  await db.run(`ATTACH ${quoteLiteral(path)} AS ${attachedName} (READ_ONLY)`)
  const a = new Map((await listStreamTables(db)).map((table) => [table.name, table]))
  const b = new Map((await listStreamTables(db, attachedName)).map((table) => [table.name, table]))
  const differences: Array<StreamDifference> = []
  for (const stream of [...new Set([...a.keys(), ...b.keys()])].sort()) {
    const [inA, inB] = [a.get(stream), b.get(stream)]
    const counted = {
      stream,
      a: inA === undefined ? null : Number(await db.scalar(`SELECT count(*) FROM ${quoteIdentifier(stream)}`)),
      b:
        inB === undefined
          ? null
          : Number(await db.scalar(`SELECT count(*) FROM ${attachedName}.${quoteIdentifier(stream)}`)),
    }
    differences.push(
      inA === undefined || inB === undefined
        ? { ...counted, columns: [], onlyA: counted.a ?? 0, onlyB: counted.b ?? 0, changed: 0, values: [] }
        : { ...counted, ...(await compareTables(db, inA, inB)) },
    )
  }
  await db.run(`DETACH ${attachedName}`)
  return differences
}

const compareTables = async (
  db: Database,
  a: Table,
  b: Table,
): Promise<Pick<StreamDifference, 'columns' | 'onlyA' | 'onlyB' | 'changed' | 'values'>> => {
  const columns = columnDifferences(a, b)
  const common = a.columns.filter(({ name }) => !columns.some(({ column }) => column === name))
  const key = await readSharedKey(
    db,
    a.name,
    common.map(({ name }) => name),
  )
  const side = (place: string) =>
    `(SELECT ${[...key.map(quoteIdentifier), `${fingerprintSql(common)} AS _print`].join(', ')}, true AS _there FROM ${place})`
  const same = (key.length === 0 ? ['_print'] : key).map(sameValueSql).join(' AND ')
  const both = `${side(quoteIdentifier(a.name))} AS a FULL JOIN ${side(`${attachedName}.${quoteIdentifier(a.name)}`)} AS b ON ${same}`
  const [found] = await db.query(`
    SELECT count(*) FILTER (b._there IS NULL) AS only_a, count(*) FILTER (a._there IS NULL) AS only_b,
      count(*) FILTER (a._print <> b._print) AS changed
    FROM ${both}`)
  const changed = Number(found?.changed)
  if (changed > 0)
    await db.run(`
      CREATE OR REPLACE TEMP TABLE _changed AS
      SELECT ${key.map((name) => `a.${quoteIdentifier(name)}`).join(', ')} FROM ${both}
      WHERE a._print <> b._print ORDER BY ALL LIMIT ${maxShownRows}`)
  return {
    columns,
    onlyA: Number(found?.only_a),
    onlyB: Number(found?.only_b),
    changed,
    values:
      changed === 0
        ? []
        : await readValueDifferences(
            db,
            a.name,
            key,
            common.map(({ name }) => name),
          ),
  }
}

const sameValueSql = (name: string): string =>
  `a.${quoteIdentifier(name)} IS NOT DISTINCT FROM b.${quoteIdentifier(name)}`

const columnDifferences = (a: Table, b: Table): ReadonlyArray<ColumnDifference> => {
  const typeIn = ({ columns }: Table, name: string) => columns.find((column) => column.name === name)?.type ?? null
  return [...new Set([...a.columns, ...b.columns].map(({ name }) => name))]
    .map((column) => ({ column, a: typeIn(a, column), b: typeIn(b, column) }))
    .filter((column) => column.a !== column.b)
}

/** The stream's key, if both sides have all of it. */
const readSharedKey = async (
  db: Database,
  stream: string,
  common: ReadonlyArray<string>,
): Promise<ReadonlyArray<string>> => {
  const key = await db.scalar('SELECT primary_key FROM _streams WHERE stream = $stream', { stream })
  const names = Array.isArray(key) ? key.map(String) : []
  return names.every((name) => common.includes(name)) ? names : []
}

/** The values that differ in the rows of `_changed`. */
const readValueDifferences = async (
  db: Database,
  stream: string,
  key: ReadonlyArray<string>,
  columns: ReadonlyArray<string>,
): Promise<ReadonlyArray<ValueDifference>> => {
  const text = key
    .map((name) => `${quoteLiteral(`${name} `)} || coalesce(c.${quoteIdentifier(name)}::VARCHAR, 'null')`)
    .join(` || ' ' || `)
  const inside = (side: string) =>
    `ON ${key.map((name) => `c.${quoteIdentifier(name)} IS NOT DISTINCT FROM ${side}.${quoteIdentifier(name)}`).join(' AND ')}`
  const differing = columns.map(
    (name) => `
      SELECT ${text} AS key, ${quoteLiteral(name)} AS "column", a.${quoteIdentifier(name)}::VARCHAR AS a, b.${quoteIdentifier(name)}::VARCHAR AS b, c.rowid AS place
      FROM _changed AS c JOIN ${quoteIdentifier(stream)} AS a ${inside('a')} JOIN ${attachedName}.${quoteIdentifier(stream)} AS b ${inside('b')}
      WHERE a.${quoteIdentifier(name)} IS DISTINCT FROM b.${quoteIdentifier(name)}`,
  )
  return (await db.query(`SELECT * FROM (${differing.join(' UNION ALL ')}) ORDER BY place, "column"`)).map((row) => ({
    key: String(row.key),
    column: String(row.column),
    a: row.a === null ? null : String(row.a),
    b: row.b === null ? null : String(row.b),
  }))
}
