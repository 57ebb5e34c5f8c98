import { runOrThrow } from '../cdk'
import { closeSnapshot, type Database, defineVersions, listStreamTables, loadColumnName } from '../snapshot/store'
import { openLake, type PlaceOptions } from './open'
import { isNeededSql, type LakeStream, shownRowsSql, versionsOf } from './relations'
import { removeFiles } from './rewrite'
import { listLakeStreams } from './streams'

/** Which versions of rows a compaction keeps: the newest, all, or those valid within the last days. */
export type KeptVersions = 'newest' | 'all' | { readonly days: number }

/** What a compaction did. */
type LakeCompaction = {
  /** Number of removed row versions. */
  readonly removed_versions: number
  /** The lake's Parquet files, and their size in bytes, before and after. */
  readonly before: LakeSize
  readonly after: LakeSize
}
type LakeSize = { readonly files: number; readonly bytes: number }

/**
 * Rewrites a lake with the kept versions of rows in fewer files, and expires all earlier versions of the lake. Nothing
 * else may write to it meanwhile, and readers of an older version fail.
 */
export const compactLake = async (path: string, kept: KeptVersions, options: PlaceOptions): Promise<LakeCompaction> => {
  const snapshot = await runOrThrow(openLake(path, 'change', options))
  const { db } = snapshot
  try {
    await db.giveAllMemory()
    const before = await measureLake(db)
    const removed = await db.transaction(() => removeVersions(db, kept))
    await removeFiles(db, { expires: true, merges: true })
    return { removed_versions: removed, before, after: await measureLake(db) }
  } finally {
    await closeSnapshot(snapshot)
  }
}

const measureLake = async (db: Database): Promise<LakeSize> => {
  const [row] = await db.query(
    `SELECT sum(file_count)::BIGINT AS files, sum(file_size_bytes)::BIGINT AS bytes FROM ducklake_table_info('lake')`,
  )
  return { files: Number(row?.files), bytes: Number(row?.bytes) }
}

/** Removes versions of rows, and all but the newest log entries. Resolves to the number of removed versions. */
const removeVersions = async (db: Database, kept: KeptVersions): Promise<number> => {
  const streams = await listLakeStreams(db)
  let removed = 0
  // What a stream shows may depend on the versions of another, so all are found before any is removed.
  const old = kept === 'all' ? [] : streams
  for (const [i, stream] of old.entries()) await db.run(keptRowsSql(stream, i, await recentRowsSql(db, stream, kept)))
  for (const [i, { table }] of old.entries()) {
    const versions = versionsOf(table.name)
    const isOld = `FROM ${versions} AS v WHERE v.rowid NOT IN (SELECT row FROM temp._kept_${i})`
    const count = Number(await db.scalar(`SELECT count(*) ${isOld}`))
    if (count > 0) await db.run(`DELETE ${isOld}`)
    removed += count
    await db.run(`DROP TABLE temp._kept_${i}`)
  }
  await condenseLogs(db, streams)
  return removed
}

const keptRowsSql = (stream: LakeStream, i: number, recent: string | undefined): string => `
  CREATE OR REPLACE TEMP TABLE _kept_${i} AS
  ${shownRowsSql(stream)}
  UNION SELECT v.rowid FROM ${versionsOf(stream.table.name)} AS v WHERE ${isNeededSql(stream)}
  ${recent === undefined ? '' : `UNION ${recent}`}`

/** The rows, each version once, that were valid within the last days. */
const recentRowsSql = async (
  db: Database,
  { table, key }: LakeStream,
  kept: KeptVersions,
): Promise<string | undefined> => {
  if (typeof kept === 'string' || key.length === 0) return undefined
  const own = (await listStreamTables(db)).filter(({ name }) => name === table.name)
  const [versions] = await defineVersions(db, own)
  return (
    versions &&
    `
    SELECT min(v.rowid) FROM ${versionsOf(table.name)} AS v
    SEMI JOIN (
      SELECT _airbyte_raw_id FROM (${versions.toSql((name) => name)})
      WHERE valid_to > now() - INTERVAL ${kept.days} DAY) AS recent
      ON recent._airbyte_raw_id = v._airbyte_raw_id
    GROUP BY v._airbyte_raw_id`
  )
}

/**
 * Leaves one entry for each name, stream, state and load, which sums up all earlier ones. Load counts are set to the
 * rows that are left.
 */
const condenseLogs = async (db: Database, streams: ReadonlyArray<LakeStream>): Promise<void> => {
  const condensed: Readonly<Record<string, string>> = {
    _meta_log: 'SELECT max(entry), name, arg_max(value, entry) FROM _meta_log GROUP BY name',
    _streams_log: `
      SELECT * REPLACE (
        max(shown_from) OVER (PARTITION BY stream) AS shown_from,
        max(refreshed) OVER (PARTITION BY stream) AS refreshed)
      FROM _streams_log QUALIFY row_number() OVER (PARTITION BY stream ORDER BY entry DESC) = 1`,
    _states_log: `
      SELECT * FROM _states_log QUALIFY row_number() OVER (PARTITION BY stream, share ORDER BY entry DESC) = 1`,
    _review_times: 'SELECT DISTINCT id, time FROM _review_times',
    _loads_log: `
      SELECT * REPLACE (0 AS added) FROM _loads_log
      QUALIFY row_number() OVER (PARTITION BY load ORDER BY entry DESC) = 1`,
  }
  for (const [name, sql] of Object.entries(condensed))
    await db.run(`
      CREATE OR REPLACE TEMP TABLE _condensed AS ${sql};
      DELETE FROM ${name};
      INSERT INTO ${name} FROM temp._condensed;
      DROP TABLE temp._condensed`)
  for (const { table } of streams)
    await db.run(`
      INSERT INTO _loads_log (entry, load, generation, added)
      SELECT 0, ${loadColumnName}, _airbyte_generation_id, count(*)
      FROM ${versionsOf(table.name)} GROUP BY ALL`)
}
