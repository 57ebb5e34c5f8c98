import type { SourceState } from '../../cdk'
import { type Database, instantSql, quoteIdentifier, quoteLiteral, type Snapshot } from './database'
import { type Column, historyTableName, reviewsTableName, type Table } from './tables'
import { type CellValue, cellToTimeOrNull } from './values'

/**
 * Increase the second number when older versions can no longer read what this one writes. A file gets it once something
 * is forgotten, since older versions would bring it back.
 */
export const [firstFormat, snapshotFormat] = [3, 4] as const

/**
 * The metadata tables. `_deletions`: the time of the last deletion of each review that a tombstone deleted. `_streams`:
 * each stream's declaration, current generation and number of rows. `_loads`: one row for each stream and run, with the
 * records received, those that the source says it sent, the table's rows afterwards, and the lowest and highest cursor
 * received.
 */
export const metadataTablesSql = `
  CREATE TABLE _meta (name VARCHAR, value VARCHAR);
  INSERT INTO _meta VALUES ('format', '${firstFormat}');
  CREATE TABLE _streams (
    stream VARCHAR, schema JSON, primary_key VARCHAR[], cursor VARCHAR, generation BIGINT, refreshing BOOLEAN,
    rows BIGINT);
  CREATE TABLE _state (stream VARCHAR, state JSON, saved_at TIMESTAMPTZ);
  CREATE TABLE _loads (
    load BIGINT, run BIGINT, stream VARCHAR, sync_mode VARCHAR, started TIMESTAMPTZ, ended TIMESTAMPTZ, seconds DOUBLE,
    records BIGINT, source_records BIGINT, rows BIGINT, cursor_from VARCHAR, cursor_to VARCHAR, generation BIGINT,
    status VARCHAR);
  CREATE TABLE _deletions (id BIGINT, time TIMESTAMPTZ)`

export type LoadStatus = 'running' | 'complete' | 'incomplete'

/** What the snapshot remembers about a stream between runs. */
export type StreamMetadata = {
  readonly stream: string
  /** The key columns by which its table has been merged so far. */
  readonly key: ReadonlyArray<string>
  readonly generation: number
  /** A full refresh has started and not finished. */
  readonly refreshing: boolean
  readonly hasState: boolean
}

/** What the file remembers about each stream that was ever loaded. */
export const listStreamMetadata = async (db: Database): Promise<ReadonlyArray<StreamMetadata>> =>
  (await db.query('SELECT *, stream IN (SELECT stream FROM _state) AS has_state FROM _streams')).map((row) => ({
    stream: String(row.stream),
    key: Array.isArray(row.primary_key) ? row.primary_key.map(String) : [],
    generation: Number(row.generation),
    refreshing: row.refreshing === true,
    hasState: row.has_state === true,
  }))

/** The number of rows of a table. */
export const countRowsSql = (table: string): string => `(SELECT count(*) FROM ${quoteIdentifier(table)})`

/** A cursor in the form that `_loads` stores: times in UTC with milliseconds, other values as DuckDB prints them. */
export const cursorSql = (column: Column, value: string): string =>
  column.type === 'TIMESTAMPTZ' ? `strftime(${value}::TIMESTAMP, '%Y-%m-%dT%H:%M:%S.%gZ')` : `${value}::VARCHAR`

/** The name in `_meta` of the number of rows in a stream's history table. */
export const historyCountName = (stream: string): string => `history rows of ${stream}`

/**
 * Saves the number of rows and of older versions in each table, so that `verify` notices rows that no load added or
 * removed.
 */
export const updateRowCountsSql = (tables: ReadonlyArray<Table>): ReadonlyArray<string> => {
  const counted = tables.map(({ name }) => `(${quoteLiteral(name)}, ${countRowsSql(name)})`)
  return [
    `
    UPDATE _streams SET rows = counted.rows
    FROM (VALUES ${['(NULL, 0)', ...counted].join(', ')}) AS counted(name, rows)
    WHERE stream = name AND _streams.rows IS DISTINCT FROM counted.rows`,
    ...tables.filter(({ history }) => history).flatMap(updateHistoryCountSql),
  ]
}

const updateHistoryCountSql = ({ name: stream }: Table): ReadonlyArray<string> => {
  const name = quoteLiteral(historyCountName(stream))
  return [
    `INSERT INTO _meta SELECT ${name}, NULL WHERE NOT EXISTS (FROM _meta WHERE name = ${name})`,
    `
    UPDATE _meta SET value = counted.rows
    FROM (SELECT ${countRowsSql(historyTableName(stream))}::VARCHAR AS rows) AS counted
    WHERE name = ${name} AND value IS DISTINCT FROM counted.rows`,
  ]
}

/** A value in `_meta`; undefined if missing. */
export const readMeta = (db: Database, name: string): Promise<CellValue | undefined> =>
  db.scalar('SELECT value FROM _meta WHERE name = $name', { name })

export const saveMeta = async (db: Database, name: string, value: string): Promise<void> => {
  if (db.lake !== undefined) return db.lake.saveMeta(name, value)
  await db.run('DELETE FROM _meta WHERE name = $name', { name })
  await db.run('INSERT INTO _meta VALUES ($name, $value)', { name, value })
}

/**
 * Names in `_meta` of: the time zone, the hash of the views' definitions when last created, and the time at which the
 * shares of a backfill were merged.
 */
export const [timeZoneName, viewsHashName, settledName] = ['reporting_time_zone', 'views', 'shares settled'] as const

/** The time zone for the days and months of the file's views, report and Parquet partitions. */
export const readReportingTimeZone = async (db: Database): Promise<string> =>
  String((await readMeta(db, timeZoneName)) ?? 'UTC')

/**
 * When the last complete load of the reviews began, in ISO 8601. If there is none, when their last row was read; null
 * without either.
 */
export const findReadTime = async (db: Database, hasReviews: boolean): Promise<string | null> => {
  const loaded = await db.scalar(
    `SELECT max(started) FROM _loads WHERE stream = ${quoteLiteral(reviewsTableName)} AND status = 'complete'`,
  )
  const extracted =
    loaded === null && hasReviews
      ? await db.scalar(`SELECT max(_airbyte_extracted_at) FROM ${reviewsTableName}`)
      : loaded
  return cellToTimeOrNull(extracted)
}

/** The end of the comment on each of our views. A user's view has no such comment, so it stays whatever its name. */
export const viewMark = 'Made by feedback-connector.'

/** The regions of locations, for programs that read the file themselves. */
export const regionsTableName = '_regions'

/** The scales of questions whose type does not define one. */
export const scalesTableName = '_scales'

/** `state`: JSON as printed, in which every control character is escaped. */
export type StreamStateText = { readonly stream: string; readonly state: string }

/** Saves the states of one or more streams. */
export const saveStreamStatesSql = (states: ReadonlyArray<StreamStateText>, now: number): string => `
  DELETE FROM _state WHERE stream IN (${states.map(({ stream }) => quoteLiteral(stream)).join(', ')});
  INSERT INTO _state
  SELECT name, text, ${instantSql(now)}
  FROM (
    VALUES ${states.map(({ stream, state }) => `(${quoteLiteral(stream)}, ${quoteLiteral(state)})`).join(', ')})
    AS given(name, text)`

/** Each stream's state as JSON text, sorted by stream name. */
export const listStateTexts = async ({ db }: Snapshot): Promise<ReadonlyArray<StreamStateText>> =>
  (await db.query('SELECT stream, state FROM _state ORDER BY stream')).map(({ stream, state }) => ({
    stream: String(stream),
    state: String(state),
  }))

/** The states that cover the file's rows. The next run continues from them. */
export const readSnapshotState = async (snapshot: Snapshot): Promise<SourceState> =>
  Object.fromEntries((await listStateTexts(snapshot)).map(({ stream, state }) => [stream, JSON.parse(state)]))

/** Drops the views that this package has made. */
export const dropOwnViews = async (db: Pick<Database, 'run' | 'query'>): Promise<void> => {
  const views = await db.query(`
    SELECT view_name AS name FROM duckdb_views()
    WHERE database_name = current_database() AND NOT internal AND ends_with(comment, ${quoteLiteral(viewMark)})`)
  for (const { name } of views) await db.run(`DROP VIEW IF EXISTS ${quoteIdentifier(String(name))}`)
}
