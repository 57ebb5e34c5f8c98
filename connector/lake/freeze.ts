import { type Database, quoteIdentifier, versionsTableName } from '../snapshot/store'
import { columnListSql, type LakeStream, shownRowsSql } from './relations'
import { listLakeStreams } from './streams'

/**
 * Finds once which rows are shown, for this connection, of a lake that is read as of one version. Each query of a stream's view would find them
 * again, and a verb that asks a hundred would spend most of its time on it. Views of this connection hide those of the lake.
 */
export const freezeLake = async (db: Database): Promise<void> => {
  const streams = await listLakeStreams(db)
  const tables = await db.query(
    `SELECT view_name AS name FROM duckdb_views() WHERE database_name = 'lake' AND view_name IN ('_loads', '_streams', '_state', '_meta', '_deletions')`,
  )
  for (const [i, stream] of streams.entries()) await db.run(await frozenSql(db, stream, i))
  for (const { name } of tables)
    await db.run(
      `CREATE OR REPLACE TEMP TABLE ${quoteIdentifier(String(name))} AS FROM lake.main.${quoteIdentifier(String(name))}`,
    )
}

const frozenSql = async (db: Database, stream: LakeStream, i: number): Promise<string> => {
  const { name } = stream.table
  const versions = `lake.main.${quoteIdentifier(versionsTableName(name))}`
  const [counts] = await db.query(`
    CREATE OR REPLACE TEMP TABLE _shown_${i} AS ${shownRowsSql(stream)};
    SELECT (SELECT count(*) FROM temp._shown_${i}) AS shown, (SELECT count(*) FROM ${versions}) AS held`)
  const join = counts?.shown === counts?.held ? '' : ` SEMI JOIN temp._shown_${i} AS shown ON shown.row = v.rowid`
  return `CREATE OR REPLACE TEMP VIEW ${quoteIdentifier(name)} AS SELECT ${columnListSql(stream.table)} FROM ${versions} AS v${join}`
}
