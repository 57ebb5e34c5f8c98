import * as E from 'fp-ts/Either'
import * as O from 'fp-ts/Option'
import {
  CommandError,
  type ConfiguredStream,
  configFailure,
  defined,
  parseJson,
  type StreamInfo,
  systemFailure,
} from '../../cdk'
import { type Database, quoteIdentifier } from '../store/database'
import { declareStream, insertLoad, type LoadStatus, readStreamMetadata, type StreamMetadata } from '../store/metadata'
import { type Column, columnsFromSchema, type Table } from '../store/tables'
import { createHistoryTable } from '../store/views'
import { ensureTable, evolveTable, findUndeclaredColumns } from './evolve'
import { createRowBatch, insertRows, type RowBatch } from './insert'

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
  /** The primary key to merge by; if empty, every record is a row. */
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
  /** Records that are not inserted yet. */
  readonly batch: RowBatch
  /** The table's last rowid before the open transaction inserted rows; undefined if it has inserted none. */
  lastRowId: number | undefined
  /** The text of the last state received since the last commit; it covers the rows received before it. */
  state: string | undefined
  /** Whether anything was received since the last commit. */
  hasChanges: boolean
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
    const duplicates = findDuplicateNames(columnsFromSchema(info.schema).map(({ name }) => name))
    if (duplicates !== undefined)
      return rejectStream(info, `its attributes ${duplicates.join(' and ')} differ only in case, which columns cannot`)
    const metadata = await readStreamMetadata(db, info.name)
    if ((options.minimum ?? 0) > 0 && (options.generation ?? 0) < (metadata?.generation ?? 0))
      return rejectStream(
        info,
        `its refresh has the generation ${options.generation}, but the file already has generation ${metadata?.generation}, so another connection has written it`,
        'Give each connection a file of its own with --db.',
      )
    const target = chooseLoadTarget(info, options, metadata)
    const currentTable = await ensureTable(db, info.name, info.schema)
    if (history) await createHistoryTable(db, currentTable)
    const table = { ...currentTable, history: currentTable.history || history }
    const findColumn = (name: string) => table.columns.find((column) => column.name === name)
    const missing = [...target.key, target.cursor].find((name) => name !== undefined && findColumn(name) === undefined)
    if (missing !== undefined)
      return rejectStream(info, `its key or cursor ${missing} is not an attribute of its schema`)
    await declareStream(db, info, target)
    const cursor = target.cursor === undefined ? undefined : findColumn(target.cursor)
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
      batch: createRowBatch(),
      lastRowId: undefined,
      state: undefined,
      hasChanges: false,
    }
  })

/** Applies a schema that changed while the stream was read: a tap may declare its stream again. */
export const updateLoadSchema = (db: Database, load: Load, info: StreamInfo): Promise<void> =>
  db.transaction(async () => {
    load.table = { ...(await ensureTable(db, info.name, info.schema)), history: load.table.history }
    load.schema = JSON.stringify(info.schema)
    await db.run('UPDATE _streams SET schema = $schema WHERE stream = $stream', {
      stream: info.name,
      schema: load.schema,
    })
  })

/** Inserts a load's records into its table, within the open transaction. */
export const insertBatch = async (db: Database, load: Load): Promise<void> => {
  if (load.batch.count() === 0) return
  load.lastRowId ??= Number(await db.scalar(`SELECT coalesce(max(rowid), -1) FROM ${quoteIdentifier(load.stream)}`))
  const rows = load.batch.take()
  const { records } = load
  try {
    const undeclared = await findUndeclaredColumns(db, load.table, rows.lines)
    if (undeclared.length > 0) load.table = await evolveTable(db, load.table, undeclared)
    await insertRows(db, load.table, load.target.generation, rows)
  } catch (error) {
    throw findInvalidRecord({ stream: load.stream, records }, rows.lines.toString()) ?? error
  }
}

/** The failure for the first record that is not JSON, by its number in the load; undefined if all of them are JSON. */
const findInvalidRecord = (
  { stream, records }: Pick<Load, 'stream' | 'records'>,
  lines: string,
): CommandError | undefined => {
  const all = lines.split('\n')
  for (const [i, line] of all.entries()) {
    const parsed = parseJson(line)
    if (E.isLeft(parsed))
      return new CommandError(
        systemFailure(`Record ${records - all.length + i + 1} of the stream ${stream} ${parsed.left}.`),
      )
  }
  return undefined
}

/** Names that are the same for a database. */
const findDuplicateNames = (names: ReadonlyArray<string>): ReadonlyArray<string> | undefined => {
  const findSame = (name: string) => names.filter((other) => other.toLowerCase() === name.toLowerCase())
  return names.map(findSame).find((group) => group.length > 1)
}

const rejectStream = ({ name }: StreamInfo, reason: string, remedy = 'Correct the catalog.'): never => {
  throw new CommandError(configFailure(`Stream ${name} cannot be written: ${reason}. ${remedy}`))
}
