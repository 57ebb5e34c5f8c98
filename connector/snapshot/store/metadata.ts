import {
  CommandError,
  configFailure,
  isSameService,
  type ServiceIdentity,
  type SourceState,
  type StreamInfo,
  serviceOfState,
} from '../../cdk'
import { type Database, instantSql, quoteIdentifier, quoteLiteral, type Snapshot } from './database'
import { adviseOnPlace } from './failures'
import { type Column, type ColumnType, historyTableName } from './tables'
import type { CellValue } from './values'

/**
 * Increase the second when older versions could no longer read what this one writes. A file gets it as something is
 * forgotten: older ones would bring it back.
 */
export const [firstFormat, snapshotFormat] = [3, 4] as const

/**
 * The metadata tables. `_deletions`: the time of the last deletion of each review that was deleted by a tombstone.
 * `_streams`: each stream's declaration, current generation and number of rows. `_loads`: one row for each stream and
 * run, with the records received, those that the source says it sent, the rows of the table afterwards, and the least
 * and the greatest cursor received.
 */
export const metadataTablesSql = `
  CREATE TABLE _meta (name VARCHAR, value VARCHAR);
  INSERT INTO _meta VALUES ('format', '${firstFormat}');
  CREATE TABLE _streams (
    stream VARCHAR, schema JSON, primary_key VARCHAR[], cursor VARCHAR, generation BIGINT, refreshing BOOLEAN, rows BIGINT);
  CREATE TABLE _state (stream VARCHAR, state JSON, saved_at TIMESTAMPTZ);
  CREATE TABLE _loads (
    load BIGINT, run BIGINT, stream VARCHAR, sync_mode VARCHAR, started TIMESTAMPTZ, ended TIMESTAMPTZ, seconds DOUBLE,
    records BIGINT, source_records BIGINT, rows BIGINT, cursor_from VARCHAR, cursor_to VARCHAR, generation BIGINT,
    status VARCHAR);
  CREATE TABLE _deletions (id BIGINT, time TIMESTAMPTZ)`

export type LoadStatus = 'running' | 'complete' | 'incomplete'

/** What the snapshot remembers of a stream between runs. */
export type StreamMetadata = {
  readonly stream: string
  /** The columns of the key that its table was merged by until now. */
  readonly key: ReadonlyArray<string>
  readonly generation: number
  /** A full refresh has begun and not finished. */
  readonly refreshing: boolean
  readonly hasState: boolean
}

/** What the file remembers of each stream that was ever loaded. */
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

/** Writes the streams' rows in `_streams`. */
export const declareStreams = async (
  db: Database,
  streams: ReadonlyArray<{
    readonly info: StreamInfo
    readonly target: {
      /** The columns of the key; empty if every record is a row. */
      readonly key: ReadonlyArray<string>
      readonly cursor: string | undefined
      readonly generation: number
      readonly minimumGeneration: number
      /** Deletes the saved state too. */
      readonly resetsState: boolean
    }
  }>,
): Promise<void> => {
  const rows = streams.map(({ info, target }) => {
    const key = `[${target.key.map(quoteLiteral).join(', ')}]::VARCHAR[]`
    return (
      `(${quoteLiteral(info.name)}, ${quoteLiteral(JSON.stringify(info.schema))}::JSON, ` +
      `${key}, ${target.cursor === undefined ? 'NULL' : quoteLiteral(target.cursor)}, ` +
      `${target.generation}, ${target.minimumGeneration > 0}, ${countRowsSql(info.name)})`
    )
  })
  const columns = 'stream, schema, primary_key, cursor, generation, refreshing, rows'
  const isOneOf = (names: ReadonlyArray<string>) => `stream IN (${names.map(quoteLiteral).join(', ')})`
  await db.run(`
    DELETE FROM _streams WHERE ${isOneOf(streams.map(({ info }) => info.name))};
    INSERT INTO _streams (${columns}) VALUES ${rows.join(', ')}`)
  const resets = streams.filter(({ target }) => target.resetsState).map(({ info }) => info.name)
  if (resets.length > 0) await db.run(`DELETE FROM _state WHERE ${isOneOf(resets)}`)
}

/** A cursor as `_loads` keeps it: times in UTC with milliseconds, other values as DuckDB prints them. */
export const cursorSql = (column: Column, value: string): string =>
  column.type === 'TIMESTAMPTZ' ? `strftime(${value}::TIMESTAMP, '%Y-%m-%dT%H:%M:%S.%gZ')` : `${value}::VARCHAR`

/** SQL of the least and the greatest cursor in a table `t` of records, as text; `type`: the type to compare them as. */
export type CursorRange = {
  readonly table: string
  readonly least: string
  readonly greatest: string
  readonly type: ColumnType
}

/** What a commit changes of a load's row in `_loads`; `range`: of the cursors in its batch. */
type LoadUpdate = {
  readonly id: number | bigint
  readonly stream: string
  readonly status: LoadStatus
  readonly records: number
  readonly sourceRecords: number | undefined
  readonly range: CursorRange | undefined
}

/** Updates the loads' rows in `_loads`, those whose cursors have one type in one statement. */
export const updateLoadsSql = (loads: ReadonlyArray<LoadUpdate>, now: number): string => {
  const millis = `${Math.trunc(now)}::BIGINT`
  const updates = [...new Set(loads.map(({ range }) => range?.type))].map((type) => {
    const widen = (saved: string, operator: '<' | '>', value: string) =>
      `${saved} = CASE WHEN ${saved} IS NULL OR ${value}::${type} ` +
      `${operator} ${saved}::${type} THEN ${value} ELSE ${saved} END`
    const cursors = [widen('cursor_from', '<', 'given.least'), widen('cursor_to', '>', 'given.greatest')]
    const assignments = [
      ...['records', 'source_records', 'status', 'rows'].map((name) => `${name} = given.${name}`),
      `ended = CASE WHEN given.status <> 'running' THEN make_timestamptz(${millis} * 1000) END`,
      `seconds = CASE WHEN given.status <> 'running' THEN ${millis} / 1000 - epoch(started) END`,
      ...(type === undefined ? [] : cursors),
    ]
    const given = loads
      .filter(({ range }) => range?.type === type)
      .map(({ id, stream, status, records, sourceRecords, range }) => {
        const ends = range ? `, ${range.least} AS least, ${range.greatest} AS greatest FROM ${range.table} AS t` : ''
        return `SELECT ${id} AS load, ${records} AS records, ${sourceRecords ?? 'NULL'}::BIGINT AS source_records, ${quoteLiteral(status)} AS status, ${countRowsSql(stream)} AS rows${ends}`
      })
    return `UPDATE _loads SET ${assignments.join(', ')} FROM (${given.join(' UNION ALL ')}) AS given WHERE _loads.load = given.load`
  })
  return updates.join(';\n')
}

/** The name in `_meta` of the number of rows in a stream's history table. */
export const historyCountName = (stream: string): string => `history rows of ${stream}`

/**
 * Saves each table's number of rows, and of older versions, so that `verify` sees what no load has added or removed.
 */
export const updateRowCountsSql = (
  streams: ReadonlyArray<string>,
  histories: ReadonlyArray<string>,
): ReadonlyArray<string> => {
  const counted = ['(NULL, 0)', ...streams.map((stream) => `(${quoteLiteral(stream)}, ${countRowsSql(stream)})`)].join(
    ', ',
  )
  const older = histories
    .filter((name) => streams.includes(name))
    .map((stream) => {
      const name = quoteLiteral(historyCountName(stream))
      return `INSERT INTO _meta SELECT ${name}, NULL WHERE NOT EXISTS (FROM _meta WHERE name = ${name}); UPDATE _meta SET value = counted.rows FROM (SELECT ${countRowsSql(historyTableName(stream))}::VARCHAR AS rows) AS counted WHERE name = ${name} AND value IS DISTINCT FROM counted.rows`
    })
  return [
    `UPDATE _streams SET rows = counted.rows FROM (VALUES ${counted}) AS counted(name, rows) WHERE stream = name AND _streams.rows IS DISTINCT FROM counted.rows`,
    ...older,
  ]
}

/** A value in `_meta`; undefined where there is none. */
export const readMeta = (db: Database, name: string): Promise<CellValue | undefined> =>
  db.scalar('SELECT value FROM _meta WHERE name = $name', { name })

export const saveMeta = async (db: Database, name: string, value: string): Promise<void> => {
  if (db.lake !== undefined) return db.lake.saveMeta(name, value)
  await db.run('DELETE FROM _meta WHERE name = $name', { name })
  await db.run('INSERT INTO _meta VALUES ($name, $value)', { name, value })
}

/**
 * Names in `_meta`: of the hash of the views' definitions as they were created last, and of the time at which the
 * shares of a backfill were settled.
 */
export const [timeZoneName, viewsHashName, settledName] = ['reporting_time_zone', 'views', 'shares settled'] as const

/** The time zone whose days and months the views, the report and Parquet partitions of this file use. */
export const readReportingTimeZone = async (db: Database): Promise<string> =>
  String((await readMeta(db, timeZoneName)) ?? 'UTC')

/**
 * What the comment of each view of ours ends with. A view of the user has no such comment, so that it stays, whatever
 * its name.
 */
export const viewMark = 'Made by feedback-connector.'

/** The regions of locations, for programs that read the file themselves. */
export const regionsTableName = '_regions'

/** A killed run leaves its loads at status `running`; the next run marks them incomplete. */
export const closeAbandonedLoadsSql = `UPDATE _loads SET status = 'incomplete' WHERE status = 'running'`

/** `state`: JSON as it is printed, in which no control character stands unescaped. */
export type StreamStateText = { readonly stream: string; readonly state: string }

/** Of one or more streams. */
export const saveStreamStatesSql = (states: ReadonlyArray<StreamStateText>, now: number): string => `
  DELETE FROM _state WHERE stream IN (${states.map(({ stream }) => quoteLiteral(stream)).join(', ')});
  INSERT INTO _state SELECT name, text, ${instantSql(now)} 
  FROM (VALUES ${states.map(({ stream, state }) => `(${quoteLiteral(stream)}, ${quoteLiteral(state)})`).join(', ')}) AS given(name, text)`

/** Each stream's state as JSON text, in the order of the streams' names. */
export const listStateTexts = async ({ db }: Snapshot): Promise<ReadonlyArray<StreamStateText>> =>
  (await db.query('SELECT stream, state FROM _state ORDER BY stream')).map(({ stream, state }) => ({
    stream: String(stream),
    state: String(state),
  }))

/** The states that cover the file's rows; the next run continues from them. */
export const readSnapshotState = async (snapshot: Snapshot): Promise<SourceState> =>
  Object.fromEntries((await listStateTexts(snapshot)).map(({ stream, state }) => [stream, JSON.parse(state)]))

/** Replaces the states of these streams; those of other streams stay. `now`: milliseconds since 1970. */
export const importState = ({ db }: Snapshot, state: SourceState, now: number): Promise<void> =>
  db.transaction(async () => {
    for (const [stream, value] of Object.entries(state)) {
      const service = serviceOfState(value)
      if (service !== undefined) await checkStateService(db, stream, service)
      const text = JSON.stringify(value)
      if (db.lake === undefined) await db.run(saveStreamStatesSql([{ stream, state: text }], now))
      else await db.lake.saveStates([[stream, text]], now)
    }
  })

/**
 * What happens to a file that holds the data of another service: it is refused, emptied, or taken for the same one at
 * a new address.
 */
export type OtherService = 'refuse' | 'empty' | 'moved'

/** The fingerprint of the service whose data the file holds; undefined if nothing says so. */
const readService = async (db: Database): Promise<string | undefined> => {
  const saved = await readMeta(db, 'service')
  if (saved !== undefined) return String(saved)
  const states = Object.values(await readSnapshotState({ db }))
  return states.map(serviceOfState).find((fingerprint) => fingerprint !== undefined)
}

const otherServiceError = (db: Database, data: string, advice: string): CommandError =>
  new CommandError(configFailure(`${db.path} holds the data of ${data}. ${adviseOnPlace(db, advice)}`))

/** Rejects with `CommandError` if the file holds the data of another service. `advice`: what to do then. */
export const requireService = async ({ db }: Snapshot, service: ServiceIdentity, advice: string): Promise<void> => {
  const saved = await readService(db)
  if (saved === undefined || isSameService(saved, service.fingerprint)) return
  const address = await readMeta(db, 'address')
  const owner =
    address === service.address ? `${address} as another application reads it` : (address ?? 'another service')
  throw otherServiceError(db, `${owner}, and the config reads ${service.address}`, advice)
}

const otherServiceAdvice =
  'Nothing was changed. Give another file with --db. To empty this one and start anew, add --start-anew; ' +
  'if only the address or the application id of the same service has changed, add --service-moved.'

/**
 * Makes sure, before anything is read, that the file holds the data of this service or none, and remembers whose;
 * writes only what is new.
 */
export const claimSnapshot = async ({ db }: Snapshot, service: ServiceIdentity, other: OtherService): Promise<void> => {
  const [owner, address] = [await readMeta(db, 'service'), await readMeta(db, 'address')]
  if (owner === service.fingerprint && address === service.address) return
  await db.transaction(async () => {
    if (other === 'refuse') await requireService({ db }, service, otherServiceAdvice)
    const saved = await readService(db)
    if (saved !== undefined && !isSameService(saved, service.fingerprint)) {
      if (other === 'empty') await (db.lake?.empty() ?? emptySnapshot(db))
      else if (db.lake !== undefined) await db.lake.moveStates(service.fingerprint)
      else
        await db.run('UPDATE _state SET state = json_merge_patch(state, json_object($key, $fingerprint))', {
          key: 'service',
          fingerprint: service.fingerprint,
        })
    }
    await saveService(db, service)
  })
}

const saveService = async (db: Database, { address, fingerprint }: ServiceIdentity): Promise<void> => {
  await saveMeta(db, 'service', fingerprint)
  await saveMeta(db, 'address', address)
}

/** Refuses a state of another service: what writes messages or imports states knows the source by its states alone. */
export const checkStateService = async (db: Database, stream: string, fingerprint: string): Promise<void> => {
  const saved = await readService(db)
  if (saved === undefined || isSameService(saved, fingerprint)) return
  throw otherServiceError(db, `another service than the state of ${stream}`, 'Give another file with --db.')
}

/** Removes every stream with its rows, versions, states and views. */
const emptySnapshot = async (db: Database): Promise<void> => {
  await dropOwnViews(db)
  for (const { stream } of await db.query('SELECT stream FROM _streams'))
    for (const name of [String(stream), historyTableName(String(stream))])
      await db.run(`DROP TABLE IF EXISTS ${quoteIdentifier(name)}`)
  await db.run(
    `DELETE FROM _deletions; DELETE FROM _streams; DELETE FROM _state; DELETE FROM _loads;
     DELETE FROM _meta WHERE name = ${quoteLiteral(viewsHashName)}; DROP TABLE IF EXISTS ${regionsTableName}`,
  )
}

/** Drops the views that this package has made. */
export const dropOwnViews = async (db: Pick<Database, 'run' | 'query'>): Promise<void> => {
  const views = await db.query(`
    SELECT view_name AS name FROM duckdb_views()
    WHERE database_name = current_database() AND NOT internal AND ends_with(comment, ${quoteLiteral(viewMark)})`)
  for (const { name } of views) await db.run(`DROP VIEW IF EXISTS ${quoteIdentifier(String(name))}`)
}
