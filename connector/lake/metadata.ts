import type { LakeMetadata } from '../snapshot/store'
import {
  type Database,
  dropOwnViews,
  firstFormat,
  historyTableName,
  instantSql,
  quoteIdentifier,
  quoteLiteral,
  regionsTableName,
  scalesTableName,
  versionsTableName,
  viewsHashName,
} from '../snapshot/store'

// These tables are never updated: each entry replaces the previous one, and views with the names of a file's tables
// show the newest.

/** The tables that only a lake has. */
export const logTableNames = ['_meta_log', '_streams_log', '_states_log', '_loads_log', '_shares_log'] as const

/** Rows of generations from `shown_from` to `shown_to` are shown. A refresh is shown once it is complete. */
export const everyGeneration = '9223372036854775807'

/**
 * `entry`: orders the entries of a name, stream or load. `_loads_log.added`: the rows that a commit appended.
 * `_review_times`: versions of reviews known only from rows that belong to them.
 */
const logTablesSql = `
  CREATE TABLE _meta_log (entry BIGINT, name VARCHAR, value VARCHAR);
  INSERT INTO _meta_log VALUES (1, 'format', '${firstFormat}');
  CREATE TABLE _streams_log (
    entry BIGINT, stream VARCHAR, schema JSON, primary_key VARCHAR[], cursor VARCHAR, generation BIGINT,
    refreshing BOOLEAN, shown_from BIGINT, shown_to BIGINT, refreshed TIMESTAMPTZ);
  CREATE TABLE _states_log (entry BIGINT, stream VARCHAR, share VARCHAR, state JSON, saved_at TIMESTAMPTZ);
  CREATE TABLE _loads_log (
    entry BIGINT, load BIGINT, run BIGINT, share VARCHAR, stream VARCHAR, sync_mode VARCHAR, started TIMESTAMPTZ,
    ended TIMESTAMPTZ, records BIGINT, source_records BIGINT, added BIGINT, cursor_from VARCHAR, cursor_to VARCHAR,
    generation BIGINT, status VARCHAR);
  CREATE TABLE _shares_log (entry BIGINT, share VARCHAR, status VARCHAR);
  CREATE TABLE _review_times (id BIGINT, time TIMESTAMPTZ);`

const logViewsSql = `
  CREATE VIEW _meta AS
  SELECT name, arg_max(value, entry) AS value FROM _meta_log GROUP BY name;

  CREATE VIEW _streams AS
  SELECT stream, schema, primary_key, cursor, generation, refreshing, NULL::BIGINT AS rows,
    shown_from, shown_to, refreshed
  FROM (
    SELECT * REPLACE (
      max(shown_from) OVER (PARTITION BY stream) AS shown_from,
      max(refreshed) OVER (PARTITION BY stream) AS refreshed)
    FROM _streams_log)
  QUALIFY row_number() OVER (PARTITION BY stream ORDER BY entry DESC) = 1;

  CREATE VIEW _state AS
  SELECT stream, state, saved_at
  FROM (
    SELECT * FROM _states_log WHERE share IS NULL
    QUALIFY row_number() OVER (PARTITION BY stream ORDER BY entry DESC) = 1)
  WHERE state IS NOT NULL;

  CREATE VIEW _loads AS
  SELECT load, run, stream, sync_mode, started, ended, epoch(ended) - epoch(started) AS seconds,
    records, source_records, rows, cursor_from, cursor_to, generation, status, share
  FROM (SELECT *, (sum(added) OVER (PARTITION BY load))::BIGINT AS rows FROM _loads_log)
  QUALIFY row_number() OVER (PARTITION BY load ORDER BY entry DESC) = 1;

  CREATE VIEW _shares AS
  SELECT share, arg_max(status, entry) AS status
  FROM _shares_log
  WHERE share IS NOT NULL AND entry > coalesce((SELECT max(entry) FROM _shares_log WHERE share IS NULL), 0)
  GROUP BY share`

/**
 * Each commit adds a few entries to each log. The catalogue holds them until a compaction, instead of a file for each.
 */
const inlineLogsSql = [...logTableNames, '_review_times'].map(
  (name) => `CALL lake.set_option('data_inlining_row_limit', '200', table_name => '${name}')`,
)

/** Creates the metadata of a new lake. Call it within a transaction. */
export const createLogs = async (db: Database): Promise<void> => {
  await db.run(`${logTablesSql}${logViewsSql}`)
}

/** Sets table options, which DuckLake accepts only outside the transaction that creates the tables. */
export const setLogOptions = async (db: Database): Promise<void> => {
  for (const sql of inlineLogsSql) await db.run(sql)
}

/** The number of the next log entry when nobody counts: the current time, or more if an entry is later. */
export const nextEntrySql = (log: (typeof logTableNames)[number], now: number): string =>
  `(SELECT greatest(coalesce(max(entry), 0) + 1, ${Math.trunc(now)}::BIGINT * 1000) FROM ${log})`

/** The metadata of an open lake, which only grows. */
export const lakeMetadata = (db: Pick<Database, 'run' | 'query'>, dataPath: string): Omit<LakeMetadata, 'freeze'> => ({
  dataPath,
  saveMeta: (name, value) =>
    db.run(`
      INSERT INTO _meta_log
      SELECT ${nextEntrySql('_meta_log', Date.now())}, ${quoteLiteral(name)}, ${quoteLiteral(value)}`),
  saveStates: async (states, now) => {
    const rows = states.map(([stream, state]) => `(${quoteLiteral(stream)}, ${quoteLiteral(state)})`)
    if (rows.length === 0) return
    await db.run(`
      INSERT INTO _states_log
      SELECT ${nextEntrySql('_states_log', now)}, stream, NULL, state,
        ${instantSql(now)}
      FROM (VALUES ${rows.join(', ')}) AS given (stream, state)`)
  },
  moveStates: (fingerprint) =>
    db.run(`
      INSERT INTO _states_log
      SELECT ${nextEntrySql('_states_log', Date.now())}, stream, share,
        json_merge_patch(state, json_object('service', ${quoteLiteral(fingerprint)})), saved_at
      FROM _states_log
      QUALIFY row_number() OVER (PARTITION BY stream, share ORDER BY entry DESC) = 1`),
  empty: async () => {
    await dropOwnViews(db)
    const streams = (await db.query('SELECT stream FROM _streams')).map(({ stream }) => String(stream))
    for (const stream of streams)
      await db.run(`
        DROP VIEW IF EXISTS ${quoteIdentifier(stream)};
        DROP VIEW IF EXISTS ${quoteIdentifier(historyTableName(stream))};
        DROP TABLE IF EXISTS ${quoteIdentifier(versionsTableName(stream))}`)
    for (const log of [...logTableNames.filter((name) => name !== '_meta_log'), '_review_times'])
      await db.run(`DELETE FROM ${log}`)
    await db.run(`
      DELETE FROM _meta_log WHERE name = ${quoteLiteral(viewsHashName)};
      DROP TABLE IF EXISTS ${regionsTableName};
      DROP TABLE IF EXISTS ${scalesTableName}`)
  },
})
