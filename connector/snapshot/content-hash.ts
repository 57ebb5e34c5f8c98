import { createHash } from 'node:crypto'
import { fingerprintSql } from './store/columns'
import { quoteIdentifier, type Snapshot } from './store/database'
import { listStreamTables, type Table } from './store/tables'

export type TableHash = { readonly table: string; readonly rows: number; readonly hash: string }
export type ContentHash = { readonly hash: string; readonly tables: ReadonlyArray<TableHash> }

/**
 * The hash of the streams' tables and the states, independent of the order of rows: the same messages written into a new file give
 * the same hash each time. The times of the loads (`_loads`) do not count.
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

/** Sums both halves of the rows' hashes: a sum does not depend on the order of rows, and equal rows do not cancel out. The cast to HUGEINT is needed since DuckDB's sum of unsigned integers is rounded and so depends on the order. */
const rowHashSql = ({ name, columns }: Table): string => `
  SELECT count(*) AS rows, sum(md5_number_lower(row)::HUGEINT)::VARCHAR AS low, sum(md5_number_upper(row)::HUGEINT)::VARCHAR AS high
  FROM (SELECT concat_ws('|', ${fingerprintSql(columns)}, epoch_us(_airbyte_extracted_at), _airbyte_meta, _airbyte_generation_id) AS row FROM ${quoteIdentifier(name)})`

const md5 = (text: string): string => createHash('md5').update(text).digest('hex')
