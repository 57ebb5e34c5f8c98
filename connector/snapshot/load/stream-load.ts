import * as E from 'fp-ts/Either'
import { CommandError, type Derivation, parseJson, type StreamInfo, systemFailure } from '../../cdk'
import { type Database, instantSql, quoteIdentifier, quoteLiteral } from '../store/database'
import { addFurtherIds, forgottenRecordsSql, removeForgottenSql } from '../store/forgotten'
import {
  type CursorRange,
  countRowsSql,
  cursorSql,
  declareStreams,
  type LoadStatus,
  listStreamMetadata,
  type StreamMetadata,
  updateRowCountsSql,
} from '../store/metadata'
import { type Column, listStreamTables, reviewsTableName, type Table } from '../store/tables'
import { findColumn, mapToColumns, prepareTable, requireStream } from './evolve'
import { createSpool, type SharedSpool, type Spool } from './spool'
import { chooseLoadTarget, type LoadOptions, type LoadTarget } from './target'

/** One stream in one run: its row in `_loads`, and what was received for it and is not committed yet. */
export type Load = {
  readonly id: number | bigint
  readonly stream: string
  /** How its rows are made of reviews, where they are received once for several streams. */
  readonly derivation: Derivation | undefined
  /** As text, to see whether a stream that is declared again has changed. */
  readonly schema: string
  table: Table
  target: LoadTarget
  /** The next commit removes the rows of older generations. */
  activatesGeneration: boolean
  readonly cursor: Column | undefined
  /** Milliseconds since 1970. */
  readonly startedAt: number
  endedAt: number | undefined
  status: LoadStatus
  /** How many records of its own it has received. */
  records: number
  /** How many of its rows commits have made of reviews. */
  made: number
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

/** What a commit writes: what each stream has received, and the reviews that several streams make their rows of. */
export type Received = { readonly changes: ReadonlyArray<Change>; readonly shared: ReadonlyArray<SharedSpool> }

/**
 * What the records received since the last commit may come to until the next one begins; `millis`: how old they may
 * be at the end of a page.
 */
export type CommitLimits = {
  readonly rows: number
  readonly bytes: number
  /** Of reviews from which several streams make their rows. */
  readonly sharedBytes: number
  readonly millis: number
  /** Commits before a page that would be too much, so that what belongs to a review comes with it. */
  readonly wholePages: boolean
}

/** Larger commits cost less for each row; smaller ones lose less when a run is killed. */
export const fileLimits: CommitLimits = {
  rows: 250_000,
  bytes: 64_000_000,
  sharedBytes: 32_000_000,
  millis: 5_000,
  wholePages: false,
}

export const countRecords = (spools: ReadonlyArray<Spool>): number =>
  spools.reduce((sum, spool) => sum + spool.count(), 0)

/** Takes from a load what it has received, and gives it an empty spool. `path`: the file of the snapshot. */
export const takeChange = (load: Load, path: string): Change => {
  const { target, activatesGeneration, status, records, sourceRecords, state } = load
  const change = { load, spool: load.spool, target, activatesGeneration, status, records, sourceRecords, state }
  Object.assign(load, { spool: createSpool(path, load.spool.forgotten), state: undefined, hasChanges: false })
  return change
}

/** The records of each stream that were received; reviews that several streams share are those of reviews. */
const listArrivals = ({
  changes,
  shared,
}: Received): ReadonlyArray<{ readonly stream: string; readonly spool: Spool }> =>
  [
    ...shared.map(({ spool }) => ({ stream: reviewsTableName, spool })),
    ...changes.map(({ load: { stream }, spool }) => ({ stream, spool })),
  ].filter(({ spool }) => spool.count() > 0)

/**
 * Adds the tombstones that records of someone forgotten give, such as the id of a review that names their visit,
 * before any of them is written. Rows that came before the record which shows whose they are go. `remove`: removes
 * them, in a transaction.
 */
export const forgetArrivals = async (
  db: Database,
  received: Received,
  remove: () => Promise<void>,
  now: number,
): Promise<void> => {
  for (const { stream, spool } of listArrivals(received)) {
    const added = await db.withMemory(`looking for what was forgotten among the records of ${stream}`, () =>
      addFurtherIds(db, stream, spool.toSql('forgotten'), now),
    )
    if (added > 0) await db.withMemory('removing what was forgotten', () => db.transaction(remove))
  }
}

/** The same for a file, whose tables are counted. */
export const removeForgotten = (db: Database, tables: ReadonlyArray<Table>): Promise<void> => {
  const names = tables.map(({ name }) => name)
  const histories = tables.filter(({ history }) => history).map(({ name }) => name)
  return db.run([...tables.flatMap(removeForgottenSql), ...updateRowCountsSql(names, histories)].join(';\n'))
}

/** `forgets`: whether the file has tombstones of what was forgotten. */
export type OpenOptions = {
  readonly loadOptions: Readonly<Record<string, LoadOptions>>
  readonly history: boolean
  readonly forgets: boolean
}

/**
 * Prepares the streams' tables and their rows in the metadata tables. Rejects with `CommandError` if a stream cannot
 * be written.
 */
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
    const streams: { readonly info: StreamInfo; readonly load: Load }[] = []
    for (const info of infos) {
      const names = [...known.map(({ stream }) => stream), ...streams.map(({ load }) => load.stream)]
      const metadata = known.find(({ stream }) => stream === info.name)
      requireStream(db, info, names, options.loadOptions[info.name] ?? {}, metadata?.generation ?? 0)
      const load = await openLoad(db, last + streams.length + 1, info, { ...options, tables, metadata }, now)
      streams.push({ info, load })
    }
    await declareLoads(db, run, streams, now)
    return streams.map(({ load }) => load)
  })

/** Writes the rows of the loads in the metadata tables. */
const declareLoads = async (
  db: Database,
  run: number,
  streams: ReadonlyArray<{ readonly info: StreamInfo; readonly load: Load }>,
  now: number,
): Promise<void> => {
  const declared = streams.map(({ info, load }) => ({
    info,
    target: { ...load.target, ...mapToColumns(load.table, load.target) },
  }))
  await declareStreams(db, declared)
  const rows = streams.map(({ info: { name, syncMode }, load: { id, target } }) => {
    const texts = [quoteLiteral(name), quoteLiteral(syncMode)]
    return `(${[id, run, ...texts, instantSql(now), 0, countRowsSql(name), target.generation, "'running'"].join(', ')})`
  })
  await db.run(`
    INSERT INTO _loads (load, run, stream, sync_mode, started, records, rows, generation, status)
    VALUES ${rows.join(', ')}`)
}

const openLoad = async (
  db: Database,
  id: number,
  info: StreamInfo,
  {
    loadOptions,
    history,
    forgets,
    tables,
    metadata,
  }: OpenOptions & { readonly tables: ReadonlyArray<Table>; readonly metadata: StreamMetadata | undefined },
  now: number,
): Promise<Load> => {
  const options = loadOptions[info.name] ?? {}
  const target = chooseLoadTarget(info, options, metadata)
  const previous = tables.find(({ name }) => name === info.name)
  const table = await prepareTable(db, info, target, { previous, key: metadata?.key ?? [], history })
  return createLoad(db, id, info, { table, target, forgets }, now)
}

/** A load that has received nothing. `forgets`: whether records may be of someone who was forgotten. */
export const createLoad = (
  { path }: Database,
  id: Load['id'],
  info: StreamInfo,
  { table, target, forgets }: { readonly table: Table; readonly target: LoadTarget; readonly forgets: boolean },
  now: number,
): Load => ({
  id,
  stream: info.name,
  derivation: info.derivation,
  schema: JSON.stringify(info.schema),
  table,
  target,
  activatesGeneration: false,
  cursor: target.cursor === undefined ? undefined : findColumn(table, target.cursor),
  startedAt: now,
  endedAt: undefined,
  status: 'running',
  records: 0,
  made: 0,
  sourceRecords: undefined,
  spool: createSpool(path, forgets ? forgottenRecordsSql(info.name) : undefined),
  state: undefined,
  hasChanges: false,
})

/**
 * Why a commit failed. The records are JSON in all but a few files, so that they are looked through only once DuckDB
 * has refused them.
 */
export const explainCommitFailure = ({ changes }: Received, error: unknown): unknown => {
  if (error instanceof CommandError) return error
  for (const { load, spool, records } of changes) {
    let number = records - spool.count()
    for (const { json } of spool.records()) {
      number += 1
      const parsed = parseJson(json)
      if (E.isLeft(parsed))
        return new CommandError(systemFailure(`Record ${number} of the stream ${load.stream} ${parsed.left}.`))
    }
  }
  return error
}

/** What a commit does, in words. */
export const describeCommit = ({ changes, shared }: Received): string => {
  const added = changes.filter(({ spool }) => spool.count() > 0)
  const rows = countRecords([...added, ...shared].map(({ spool }) => spool))
  const names = [...shared.flatMap(({ streams }) => streams), ...added.map(({ load }) => load.stream)]
  const streams = names.length > 0 ? names : changes.map(({ load }) => load.stream)
  const subject = `${streams[0]}${streams.length > 1 ? ` and ${streams.length - 1} more` : ''}`
  if (rows > 0) return `committing ${rows.toLocaleString('en')} records of ${subject}`
  return `committing the end of ${subject}`
}

/** The result of one stream's load. */
export type LoadSummary = {
  readonly stream: string
  readonly status: LoadStatus
  readonly records: number
  readonly seconds: number
}

export const summarizeLoad = (
  { stream, status, records, made, startedAt, endedAt }: Load,
  now: number,
): LoadSummary => ({
  stream,
  status,
  records: records + made,
  seconds: ((endedAt ?? now) - startedAt) / 1000,
})

/** The least and the greatest cursor of a change whose records are in `batch`, typed as in `table`. */
export const findCursorRange = ({ load, target }: Change, table: Table, batch: string): CursorRange | undefined => {
  const name = mapToColumns(table, target).cursor
  if (load.cursor === undefined || name === undefined) return undefined
  const cursor = { ...load.cursor, name }
  const [least = '', greatest = ''] = ['min', 'max'].map((aggregate) =>
    cursorSql(cursor, `${aggregate}(t.${quoteIdentifier(cursor.name)})`),
  )
  return { table: batch, least, greatest, type: cursor.type }
}
