import { CommandError, configFailure, type StreamInfo } from '../../cdk'
import { type Database, quoteIdentifier, quoteLiteral } from '../store/database'
import { addFurtherIds, forgottenRecordsSql, removeForgottenSql } from '../store/forgotten'
import {
  countRowsSql,
  declareStream,
  type LoadStatus,
  listStreamMetadata,
  type StreamMetadata,
  updateRowCountsSql,
} from '../store/metadata'
import { attributeOf, type Column, type ColumnType, listStreamTables, type Table } from '../store/tables'
import { chooseLoadTarget, declareShareLoad, type LoadOptions, type LoadTarget } from './earlier-runs'
import { createHistoryTable, ensureTable } from './evolve'
import { createSpool, type Spool } from './insert'
import { repeatedKeysSql } from './lookups'
import { keepNewestSql } from './merge'

/** One stream in one run: its row in `_loads`, and what was received for it and is not committed yet. */
export type Load = {
  readonly id: number
  readonly stream: string
  /** Of which share of a backfill; undefined for a run that reads everything. */
  readonly share: string | undefined
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

/** Takes from a load what it has received, and gives it an empty spool. `path`: the file of the snapshot. */
export const takeChange = (load: Load, path: string): Change => {
  const { target, activatesGeneration, status, records, sourceRecords, state } = load
  const change = { load, spool: load.spool, target, activatesGeneration, status, records, sourceRecords, state }
  Object.assign(load, { spool: createSpool(path, load.spool.forgotten), state: undefined, hasChanges: false })
  return change
}

/**
 * Adds the tombstones that records of someone forgotten give, such as the id of a review that names their visit, before any of them is
 * written. Rows that came before the record which shows whose they are go.
 */
export const forgetArrivals = async (
  db: Database,
  changes: ReadonlyArray<Change>,
  tables: ReadonlyArray<Table>,
  now: number,
): Promise<void> => {
  for (const { load, spool } of changes) {
    if (spool.count() === 0) continue
    const added = await db.withMemory(`looking for what was forgotten among the records of ${load.stream}`, () =>
      addFurtherIds(db, load.stream, spool.toSql('forgotten'), now),
    )
    if (added === 0) continue
    const names = tables.map(({ name }) => name)
    const histories = tables.filter(({ history }) => history).map(({ name }) => name)
    await db.withMemory('removing what was forgotten', () =>
      db.transaction(() =>
        db.run([...tables.flatMap(removeForgottenSql), ...updateRowCountsSql(names, histories)].join(';\n')),
      ),
    )
  }
}

/** `forgets`: whether the file has tombstones of what was forgotten; `share`: of a lake, which this process reads. */
type OpenOptions = {
  readonly loadOptions: Readonly<Record<string, LoadOptions>>
  readonly history: boolean
  readonly forgets: boolean
  readonly share?: string | undefined
}

/** Prepares the streams' tables and their rows in the metadata tables. Rejects with `CommandError` if a stream cannot be written. */
export const openLoads = (
  db: Database,
  run: number,
  infos: ReadonlyArray<StreamInfo>,
  options: OpenOptions,
  now: number,
): Promise<ReadonlyArray<Load>> =>
  db.transaction(async () => {
    const tables = await listStreamTables(db)
    const known = await listStreamMetadata(db)
    const last = Number(await db.scalar('SELECT coalesce(max(load), 0) FROM _loads'))
    const loads: Load[] = []
    for (const info of infos) {
      const names = [...known, ...loads].map(({ stream }) => stream)
      const other = names.find((name) => name !== info.name && name.toLowerCase() === info.name.toLowerCase())
      if (other !== undefined)
        return rejectStream(
          info,
          `the file has the stream ${other}, whose name differs only in case, which names of tables cannot`,
          'Read it into a file of its own with --db.',
        )
      const metadata = known.find(({ stream }) => stream === info.name)
      loads.push(
        await openLoad(db, { load: last + loads.length + 1, run }, info, { ...options, tables, metadata }, now),
      )
    }
    return loads
  })

const openLoad = async (
  db: Database,
  ids: { readonly load: number; readonly run: number },
  info: StreamInfo,
  {
    loadOptions,
    history,
    forgets,
    share,
    tables,
    metadata,
  }: OpenOptions & { readonly tables: ReadonlyArray<Table>; readonly metadata: StreamMetadata | undefined },
  now: number,
): Promise<Load> => {
  const options = loadOptions[info.name] ?? {}
  if (info.name.startsWith('_')) return rejectStream(info, 'names that begin with _ are reserved for metadata tables')
  if ((options.minimum ?? 0) > 0 && (options.generation ?? 0) < (metadata?.generation ?? 0))
    return rejectStream(
      info,
      `its refresh has the generation ${options.generation}, but the file already has generation ${metadata?.generation}, so another connection has written it`,
      'Give each connection a file of its own with --db.',
    )
  const target = chooseLoadTarget(info, options, metadata)
  const previous = tables.find(({ name }) => name === info.name)
  const table = await prepareTable(db, info, target, { previous, key: metadata?.key ?? [], history })
  await declareStream(db, info, { ...target, ...mapToColumns(table, target) }, share === undefined)
  const cursor = target.cursor === undefined ? undefined : findColumn(table, target.cursor)
  await insertLoad(db, { ...ids, generation: target.generation, counts: share === undefined }, info, now)
  if (share !== undefined) await declareShareLoad(db, { share, stream: info.name, load: ids.load })
  return {
    id: ids.load,
    stream: info.name,
    share,
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
    spool: createSpool(db.path, forgets ? forgottenRecordsSql(info.name) : undefined),
    state: undefined,
    hasChanges: false,
  }
}

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

/** The table with its declared columns, and one row for each key if the key or its type has changed; `key`: the columns of the key until now. */
const prepareTable = async (
  db: Database,
  info: StreamInfo,
  target: LoadTarget,
  { previous, key, history }: { previous: Table | undefined; key: ReadonlyArray<string>; history: boolean },
): Promise<Table> => {
  const current = await ensureTable(db, info.name, previous, info.schema, [...target.key, target.cursor ?? ''])
  if (history) await createHistoryTable(db, current)
  const table = { ...current, history: current.history || history }
  const missing = [...target.key, target.cursor].find(
    (attribute) => attribute !== undefined && findColumn(table, attribute) === undefined,
  )
  if (missing !== undefined) return rejectStream(info, `its key or cursor ${missing} is not an attribute of its schema`)
  const previousKey = previous && readKeyTypes(previous, key)
  const newKey = target.key.map((attribute) => ({ attribute, type: findColumn(table, attribute)?.type }))
  if (previousKey !== undefined && newKey.length > 0 && JSON.stringify(previousKey) !== JSON.stringify(newKey))
    await applyChangedKey(db, info, table, target)
  return table
}

type KeyTypes = ReadonlyArray<{ readonly attribute: string | null; readonly type: ColumnType | undefined }>

/** The key that the table was merged by until now, with its types. */
const readKeyTypes = (table: Table, key: ReadonlyArray<string>): KeyTypes =>
  key.map((name) => {
    const column = table.columns.find((other) => other.name === name)
    return { attribute: column === undefined ? name : attributeOf(column), type: column?.type }
  })

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
    const tables = await listStreamTables(db)
    const known = await listStreamMetadata(db)
    load.table = await prepareTable(db, info, load.target, {
      previous: tables.find(({ name }) => name === info.name),
      key: known.find(({ stream }) => stream === info.name)?.key ?? [],
      history: load.table.history,
    })
    load.schema = JSON.stringify(info.schema)
    await db.run(
      `UPDATE _streams SET schema = $schema, primary_key = [${mapToColumns(load.table, load.target).key.map(quoteLiteral).join(', ')}]::VARCHAR[] WHERE stream = $stream`,
      { stream: info.name, schema: load.schema },
    )
  })

const rejectStream = ({ name }: StreamInfo, reason: string, remedy = 'Correct the catalog.'): never => {
  throw new CommandError(configFailure(`Stream ${name} cannot be written: ${reason}. ${remedy}`))
}

/** What a commit does, in words. */
export const describeChanges = (changes: ReadonlyArray<Change>): string => {
  const added = changes.filter(({ spool }) => spool.count() > 0)
  const rows = added.reduce((sum, { spool }) => sum + spool.count(), 0)
  const streams = (added.length > 0 ? added : changes).map(({ load }) => load.stream)
  const names = `${streams[0]}${streams.length > 1 ? ` and ${streams.length - 1} more` : ''}`
  if (rows > 0) return `committing ${rows.toLocaleString('en')} records of ${names}`
  return `committing the end of ${names}`
}

/** The result of one stream's load. */
export type LoadSummary = {
  readonly stream: string
  readonly status: LoadStatus
  readonly records: number
  readonly seconds: number
}

export const summarizeLoad = ({ stream, status, records, startedAt, endedAt }: Load, now: number): LoadSummary => ({
  stream,
  status,
  records,
  seconds: ((endedAt ?? now) - startedAt) / 1000,
})

/** Adds a row to `_loads`. */
const insertLoad = (
  db: Database,
  load: { readonly load: number; readonly run: number; readonly generation: number; readonly counts: boolean },
  info: StreamInfo,
  now: number,
): Promise<void> =>
  db.run(
    `INSERT INTO _loads (load, run, stream, sync_mode, started, records, rows, generation, status)
     SELECT ${load.load}, ${load.run}, $stream, $mode, make_timestamptz($now::BIGINT * 1000), 0, ${countRowsSql(info.name, load.counts)}, $generation::BIGINT, 'running'`,
    { stream: info.name, mode: info.syncMode, now, generation: load.generation },
  )
