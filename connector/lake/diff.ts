import { compareSides, type Side, type StreamDifference } from '../snapshot'
import { type Database, quoteIdentifier, readTable, type Snapshot, type Table } from '../snapshot/store'

/** The rows that a lake showed of a stream at a version. */
const at = (stream: string, version: number): string => `(FROM ${quoteIdentifier(stream)} AT (VERSION => ${version}))`

/** The differences between two versions of a lake, judging by the rows that each shows. */
export const diffVersions = async (
  { db }: Snapshot,
  [a, b]: readonly [number, number],
  onStream: (text: string) => void = () => undefined,
): Promise<ReadonlyArray<StreamDifference>> => {
  const side = async (version: number): Promise<Side> => ({
    tables: await listTablesAt(db, version),
    rows: (stream) => at(stream, version),
  })
  return compareSides(db, await side(a), await side(b), onStream, async (stream) => {
    // Rows with the same fingerprint are equal, and most of a lake is.
    const fingerprints = (version: number) => `SELECT _airbyte_raw_id AS raw FROM ${at(stream, version)}`
    await db.run(`
      CREATE OR REPLACE TEMP TABLE _touched AS
      (${fingerprints(a)} EXCEPT ${fingerprints(b)}) UNION ALL (${fingerprints(b)} EXCEPT ${fingerprints(a)})`)
    return (rows) => `(FROM ${rows} WHERE _airbyte_raw_id IN (SELECT raw FROM _touched))`
  })
}

/** The tables of the streams that a lake had at a version. */
const listTablesAt = async (db: Database, version: number): Promise<ReadonlyMap<string, Table>> => {
  const tables = new Map<string, Table>()
  const streams = await db.query(`SELECT stream FROM ${at('_streams', version)} ORDER BY stream`).catch((error) => {
    // The first version of a lake has no tables.
    if (/Table with name _streams does not exist/.test(String(error))) return []
    throw error
  })
  for (const { stream } of streams) {
    const columns = await db.query(`DESCRIBE FROM ${at(String(stream), version)}`)
    tables.set(String(stream), readTable(String(stream), columns))
  }
  return tables
}
