import { type Database, quoteIdentifier, versionsTableName } from '../snapshot/store'
import { columnListSql, type LakeStream, shownRowsSql } from './relations'
import { listLakeStreams } from './streams'

/**
 * Finds once which rows are shown, for this connection, of a lake that is read as of one version. Each query of a
 * stream's view would find them again, and a verb that asks a hundred would spend most of its time on it. Views of
 * this connection hide those of the lake.
 */
export const freezeLake = async (db: Database): Promise<void> => {
  const streams = await listLakeStreams(db)
  for (const [i, stream] of streams.entries()) await freezeStream(db, stream, i)
  // The streams' declarations are read by the views of the rows, so they are copied last.
  for (const name of ['_loads', '_streams', '_state', '_meta', '_deletions'])
    await db.run(`CREATE OR REPLACE TEMP TABLE ${name} AS FROM lake.main.${name}`)
}

const freezeStream = async (db: Database, stream: LakeStream, i: number): Promise<void> => {
  const { name } = stream.table
  const versions = `lake.main.${quoteIdentifier(versionsTableName(name))}`
  const [counts] = await db.query(`
    CREATE OR REPLACE TEMP TABLE _shown_${i} AS ${shownRowsSql(stream)};
    SELECT (SELECT count(*) FROM temp._shown_${i}) AS shown, (SELECT count(*) FROM ${versions}) AS held`)
  const join = counts?.shown === counts?.held ? '' : `SEMI JOIN temp._shown_${i} AS shown ON shown.row = v.rowid`
  await db.run(`
    CREATE OR REPLACE TEMP VIEW ${quoteIdentifier(name)} AS
    SELECT ${columnListSql(stream.table)} FROM ${versions} AS v ${join}`)
}
