import * as O from 'fp-ts/Option'
import { CommandError, type ConfiguredStream, configFailure, defined, type StreamInfo } from '../../cdk'
import { type Database, quoteIdentifier, quoteLiteral, type Snapshot } from '../store/database'
import { declareStream, insertLoad, type LoadStatus, readStreamMetadata, type StreamMetadata } from '../store/metadata'
import { attributeOf, type Column, type ColumnType, listStreamTables, type Table } from '../store/tables'
import { createHistoryTable, ensureTable } from './evolve'
import { createSpool, type Spool } from './insert'
import { keepNewestSql, repeatedKeysSql } from './merge'

/** How a configured catalog wants a stream written. Without one, a full refresh replaces the rows and an incremental read merges. */
export type LoadOptions = {
  readonly mode?: 'append' | 'overwrite' | 'append_dedup'
  readonly generation?: number
  readonly minimum?: number
}

/** How a configured stream is to be written. A generation of 0 or less is none. */
export const toLoadOptions = ({
  destinationSyncMode: mode,
  generation = 0,
  minimumGeneration: minimum = 0,
}: ConfiguredStream): LoadOptions => ({
  ...defined({ mode: mode === 'overwrite' || mode === 'overwrite_dedup' ? 'overwrite' : toAppendMode(mode) }),
  ...(generation > 0 ? { generation, minimum } : {}),
})

const toAppendMode = (mode: ConfiguredStream['destinationSyncMode']): 'append' | 'append_dedup' | undefined =>
  mode === 'append' || mode === 'append_dedup' ? mode : undefined

export type LoadTarget = {
  /** The attributes of the primary key to merge by; if empty, every record is a row. */
  readonly key: ReadonlyArray<string>
  readonly cursor: string | undefined
  readonly generation: number
  /** Rows of older generations are removed once the stream is complete; 0: none are. */
  readonly minimumGeneration: number
  /** A full refresh starts from the beginning, so the saved state is deleted. */
  readonly resetsState: boolean
}

/**
 * Chooses where a stream's rows go. A generation only grows, since rows of a smaller one would lose against those of the table. An
 * interrupted full refresh continues in its generation if the file has a state to continue from; every other one begins a new
 * generation, and the rows of the previous one stay until it is complete.
 */
const chooseLoadTarget = (info: StreamInfo, options: LoadOptions, metadata: StreamMetadata | undefined): LoadTarget => {
  const mode = options.mode ?? (info.syncMode === 'full_refresh' ? 'overwrite' : 'append_dedup')
  const replaces = options.minimum === undefined ? mode === 'overwrite' : options.minimum > 0
  const resumes = metadata?.refreshing === true && metadata.hasState
  const current = metadata?.generation ?? 0
  const next = replaces && !resumes ? current + 1 : current
  const generation = options.generation === undefined ? next : Math.max(options.generation, current)
  return {
    key: mode === 'append' ? [] : info.primaryKey,
    cursor: O.toUndefined(info.cursor),
    generation,
    minimumGeneration: options.minimum ?? (replaces ? generation : 0),
    resetsState: replaces && (options.generation === undefined ? !resumes : generation > current),
  }
}

/** One stream in one run: its row in `_loads`, and what was received for it and is not committed yet. */
export type Load = {
  readonly id: number
  readonly stream: string
  /** As text, to see whether a stream that is declared again has changed. */
  schema: string
  table: Table
  target: LoadTarget
  /** The next commit removes the rows of older generations. */
  activatesGeneration: boolean
  readonly cursor: Column | undefined
  /** Milliseconds since 1970. */
  readonly startedAt: number
  endedAt: number | undefined
  status: LoadStatus
  records: number
  /** Undefined if the source does not count its records. */
  sourceRecords: number | undefined
  /** The records that wait for the next commit. */
  spool: Spool
  /** The text of the last state received since the last commit began; it covers the rows received before it. */
  state: string | undefined
  /** Whether anything was received since the last commit began. */
  hasChanges: boolean
}

/** What one stream has received since the commit before. */
export type Change = {
  readonly load: Load
  readonly spool: Spool
  readonly target: Load['target']
  readonly activatesGeneration: boolean
  readonly status: Load['status']
  readonly records: number
  readonly sourceRecords: number | undefined
  readonly state: string | undefined
}

/** Takes from a load what it has received, and gives it an empty spool. */
export const takeChange = (load: Load, spool: Spool): Change => {
  const { target, activatesGeneration, status, records, sourceRecords, state } = load
  const change = { load, spool: load.spool, target, activatesGeneration, status, records, sourceRecords, state }
  Object.assign(load, { spool, state: undefined, hasChanges: false })
  return change
}

/** Prepares a stream's table and its rows in the metadata tables. Rejects with `CommandError` if the stream cannot be written. */
export const openLoad = (
  db: Database,
  run: number,
  info: StreamInfo,
  { options, history }: { readonly options: LoadOptions; readonly history: boolean },
  now: number,
): Promise<Load> =>
  db.transaction(async () => {
    if (info.name.startsWith('_')) return rejectStream(info, 'names that begin with _ are reserved for metadata tables')
    const other = await db.scalar(
      'SELECT stream FROM _streams WHERE lower(stream) = lower($stream) AND stream <> $stream',
      { stream: info.name },
    )
    if (other !== undefined)
      return rejectStream(
        info,
        `the file has the stream ${other}, whose name differs only in case, which names of tables cannot`,
        'Read it into a file of its own with --db.',
      )
    const metadata = await readStreamMetadata(db, info.name)
    if ((options.minimum ?? 0) > 0 && (options.generation ?? 0) < (metadata?.generation ?? 0))
      return rejectStream(
        info,
        `its refresh has the generation ${options.generation}, but the file already has generation ${metadata?.generation}, so another connection has written it`,
        'Give each connection a file of its own with --db.',
      )
    const target = chooseLoadTarget(info, options, metadata)
    const table = await prepareTable(db, info, target, history)
    await declareStream(db, info, { ...target, ...mapToColumns(table, target) })
    const cursor = target.cursor === undefined ? undefined : findColumn(table, target.cursor)
    return {
      id: await insertLoad(db, run, info, target.generation, now),
      stream: info.name,
      schema: JSON.stringify(info.schema),
      table,
      target,
      activatesGeneration: false,
      cursor,
      startedAt: now,
      endedAt: undefined,
      status: 'running',
      records: 0,
      sourceRecords: undefined,
      spool: createSpool(db.path),
      state: undefined,
      hasChanges: false,
    }
  })

/** The column of an attribute, which may have another name. */
const findColumn = ({ columns }: Table, attribute: string): Column | undefined =>
  columns.find((column) => attributeOf(column) === attribute)

/** The columns of the key and the cursor. */
export const mapToColumns = (
  table: Table,
  { key, cursor }: Pick<LoadTarget, 'key' | 'cursor'>,
): Pick<LoadTarget, 'key' | 'cursor'> => {
  const toName = (attribute: string) => findColumn(table, attribute)?.name ?? attribute
  return { key: key.map(toName), cursor: cursor === undefined ? undefined : toName(cursor) }
}

/** The table with its declared columns, and one row for each key if the key or its type has changed. */
const prepareTable = async (db: Database, info: StreamInfo, target: LoadTarget, history: boolean): Promise<Table> => {
  const previous = (await listStreamTables(db)).find(({ name }) => name === info.name)
  const previousKey = previous && (await readKeyTypes(db, previous))
  const current = await ensureTable(db, info.name, info.schema, [...target.key, target.cursor ?? ''])
  if (history) await createHistoryTable(db, current)
  const table = { ...current, history: current.history || history }
  const missing = [...target.key, target.cursor].find(
    (attribute) => attribute !== undefined && findColumn(table, attribute) === undefined,
  )
  if (missing !== undefined) return rejectStream(info, `its key or cursor ${missing} is not an attribute of its schema`)
  const key = target.key.map((attribute) => ({ attribute, type: findColumn(table, attribute)?.type }))
  if (previousKey !== undefined && key.length > 0 && JSON.stringify(previousKey) !== JSON.stringify(key))
    await applyChangedKey(db, info, table, target)
  return table
}

type KeyTypes = ReadonlyArray<{ readonly attribute: string | null; readonly type: ColumnType | undefined }>

/** The key that the table was merged by until now, with its types. */
const readKeyTypes = async (db: Database, table: Table): Promise<KeyTypes> => {
  const key = await db.scalar('SELECT primary_key FROM _streams WHERE stream = $stream', { stream: table.name })
  return (Array.isArray(key) ? key.map(String) : []).map((name) => {
    const column = table.columns.find((other) => other.name === name)
    return { attribute: column === undefined ? name : attributeOf(column), type: column?.type }
  })
}

/** Rows without a value of the new key could never be replaced or deleted: only a load that replaces all rows may leave them. */
const applyChangedKey = async (db: Database, info: StreamInfo, table: Table, target: LoadTarget): Promise<void> => {
  const { key, cursor } = mapToColumns(table, target)
  const without = Number(
    await db.scalar(
      `SELECT count(*) FROM ${quoteIdentifier(table.name)} AS t WHERE ${key.map((name) => `t.${quoteIdentifier(name)} IS NULL`).join(' OR ')}`,
    ),
  )
  if (without > 0 && target.minimumGeneration === 0)
    rejectStream(
      info,
      `its key is now ${target.key.join(', ')}, and ${without} of its rows in the file have no such value`,
      'Read it anew with a full refresh, or into another file with --db.',
    )
  await db.run(repeatedKeysSql(table, key))
  await db.run(keepNewestSql(table, key, cursor))
}

/** Applies a schema that changed while the stream was read: a tap may declare its stream again. */
export const updateLoadSchema = (db: Database, load: Load, info: StreamInfo): Promise<void> =>
  db.transaction(async () => {
    const key = load.target.key.length === 0 ? [] : info.primaryKey
    load.target = { ...load.target, key }
    load.table = await prepareTable(db, info, load.target, load.table.history)
    load.schema = JSON.stringify(info.schema)
    await db.run(
      `UPDATE _streams SET schema = $schema, primary_key = [${mapToColumns(load.table, load.target).key.map(quoteLiteral).join(', ')}]::VARCHAR[] WHERE stream = $stream`,
      { stream: info.name, schema: load.schema },
    )
  })

const rejectStream = ({ name }: StreamInfo, reason: string, remedy = 'Correct the catalog.'): never => {
  throw new CommandError(configFailure(`Stream ${name} cannot be written: ${reason}. ${remedy}`))
}

/** The least and the greatest cursor that the loads of a stream since a time (milliseconds since 1970) have received; undefined if none. */
export type ReceivedRangeReader = (
  stream: string,
  since: number,
) => Promise<{ readonly from: string; readonly to: string } | undefined>

export const readReceivedRange =
  ({ db }: Snapshot): ReceivedRangeReader =>
  async (stream, since) => {
    // A load begins a little before its scan.
    const [row] = await db.query(
      `SELECT min(cursor_from) AS least, max(cursor_to) AS greatest FROM _loads
       WHERE stream = $stream AND started >= make_timestamptz(($since::BIGINT - 60000) * 1000)`,
      { stream, since },
    )
    return row?.least && row.greatest ? { from: String(row.least), to: String(row.greatest) } : undefined
  }
