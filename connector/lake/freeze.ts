import { type Database, quoteIdentifier, quoteLiteral, versionsTableName } from '../snapshot/store'
import { columnListSql, type LakeStream, shownRowsSql } from './relations'
import { listLakeStreams } from './streams'

/** What the views of streams read, each after what it reads itself. A lake without reviews lacks some. */
const frozenViews = ['_meta', '_loads', '_streams', '_state', '_deletions', '_gone', '_shown_reviews', '_review_heads']

/**
 * Determines once, for this connection, which rows a fixed version of a lake shows. Otherwise each query of a stream's
 * view would do so again, and a command with a hundred queries would spend most of its time on it. Uses temporary views
 * that hide those of the lake.
 */
export const freezeLake = async (db: Database): Promise<void> => {
  const views = await db.query(`
    SELECT view_name AS name FROM duckdb_views()
    WHERE database_name = 'lake' AND view_name IN (${frozenViews.map(quoteLiteral).join(', ')})`)
  for (const name of frozenViews.filter((wanted) => views.some((view) => view.name === wanted)))
    await db.run(`CREATE OR REPLACE TEMP TABLE ${name} AS FROM lake.main.${name}`)
  for (const [i, stream] of (await listLakeStreams(db)).entries()) await freezeStream(db, stream, i)
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
