import { createHash } from 'node:crypto'
import { fingerprintSql } from './store/columns'
import type { Snapshot } from './store/database'
import { quoteIdentifier } from './store/database'
import { listStreamTables, type Table } from './store/tables'

export type TableHash = { readonly table: string; readonly rows: number; readonly hash: string }
export type ContentHash = { readonly hash: string; readonly tables: ReadonlyArray<TableHash> }

/**
 * What the streams' tables and the states hold, whatever the order of rows: the same messages into a new file give the same
 * hash, whenever and however often. When they were loaded (`_loads`) does not count.
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

/** The sums of both halves of each row's hash: like the rows themselves, they have no order, and doubles do not cancel out. Of unsigned integers DuckDB makes a rounded sum, which depends on the order. */
const rowHashSql = ({ name, columns }: Table): string => `
  SELECT count(*) AS rows, sum(md5_number_lower(row)::HUGEINT)::VARCHAR AS low, sum(md5_number_upper(row)::HUGEINT)::VARCHAR AS high
  FROM (SELECT concat_ws('|', ${fingerprintSql(columns)}, epoch_us(_airbyte_extracted_at), _airbyte_meta, _airbyte_generation_id) AS row FROM ${quoteIdentifier(name)})`

const md5 = (text: string): string => createHash('md5').update(text).digest('hex')
