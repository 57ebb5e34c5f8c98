import * as O from 'fp-ts/Option'
import { CommandError, configFailure, type StreamInfo } from '../../cdk'
import { type Column, columnsFromSchema } from '../store/columns'
import type { Database } from '../store/database'
import { createHistoryTable } from '../store/history'
import { declareStream, insertLoad, type LoadStatus, readStreamMetadata } from '../store/metadata'
import { ensureTable, type Table } from '../store/tables'
import { createRowBatch, type RowBatch } from './batch'

/** What a configured catalog asks of the destination; without one, a full refresh replaces and an incremental read merges. */
export type LoadOptions = {
  readonly mode?: 'append' | 'overwrite' | 'append_dedup'
  readonly generation?: number
  readonly minimum?: number
}

/** What the snapshot remembers of a stream between runs. */
export type StreamMetadata = {
  readonly generation: number
  /** A full refresh has begun and not finished. */
  readonly refreshing: boolean
  readonly hasState: boolean
}

export type LoadTarget = {
  /** By primary key; without one, every record is a row. */
  readonly key: ReadonlyArray<string>
  readonly cursor: string | undefined
  readonly generation: number
  /** Once the stream has finished, rows of older generations go. */
  readonly minimumGeneration: number
  /** A full refresh that starts anew, so that the state of before no longer counts. */
  readonly resetsState: boolean
}

/**
 * A generation only grows: rows of a smaller one would lose against those the table has. A full refresh that was cut off goes on in its generation if the file holds a state to go on from; every other one begins a
 * new generation, and the rows of the one before stay until it has finished.
 */
export const chooseLoadTarget = (
  info: StreamInfo,
  wish: LoadOptions,
  standing: StreamMetadata | undefined,
): LoadTarget => {
  const mode = wish.mode ?? (info.syncMode === 'full_refresh' ? 'overwrite' : 'append_dedup')
  const replaces = wish.minimum === undefined ? mode === 'overwrite' : wish.minimum > 0
  const resumes = standing?.refreshing === true && standing.hasState
  const held = standing?.generation ?? 0
  const next = replaces && !resumes ? held + 1 : held
  const generation = wish.generation === undefined ? next : Math.max(wish.generation, held)
  return {
    key: mode === 'append' ? [] : info.primaryKey,
    cursor: O.toUndefined(info.cursor),
    generation,
    minimumGeneration: wish.minimum ?? (replaces ? generation : 0),
    resetsState: replaces && (wish.generation === undefined ? !resumes : generation > held),
  }
}

/** One stream in one run: its row in `_loads`, and what has come for it and is not committed yet. */
export type Load = {
  readonly id: number
  readonly stream: string
  /** As text, to tell whether a stream that starts again has changed. */
  schema: string
  table: Table
  target: LoadTarget
  /** Rows of older versions go with the next commit. */
  activated: boolean
  readonly cursor: Column | undefined
  readonly started: number
  /** When its last message came; milliseconds. */
  readonly ended?: number
  status: LoadStatus
  records: number
  /** Undefined where the source does not count. */
  sourceRecords: number | undefined
  /** Not handed to DuckDB yet. */
  readonly batch: RowBatch
  /** The last row of before this transaction, if the transaction has brought rows; those it brought come after it. */
  after: number | undefined
  /** The text of a state that covers the rows before it; undefined if none has come since the last commit. */
  state: string | undefined
  /** Whether its books have changed since the last commit. */
  dirty: boolean
}

/** Readies table and books for a stream that starts. */
export const openLoad = (
  db: Database,
  run: number,
  info: StreamInfo,
  { wish, history }: { readonly wish: LoadOptions; readonly history: boolean },
  now: number,
): Promise<Load> =>
  db.transaction(async () => {
    if (info.name.startsWith('_')) return rejectStream(info, 'names that begin with _ are for tables of our own')
    const twins = findDuplicateNames(columnsFromSchema(info.schema).map(({ name }) => name))
    if (twins !== undefined)
      return rejectStream(info, `its attributes ${twins.join(' and ')} differ only in case, which columns cannot`)
    const standing = await readStreamMetadata(db, info.name)
    if ((wish.minimum ?? 0) > 0 && (wish.generation ?? 0) < (standing?.generation ?? 0))
      return rejectStream(
        info,
        `its refresh has the generation ${wish.generation} and the file is at ${standing?.generation} by now, so another connection has written it`,
        'Give each connection a file of its own with --db.',
      )
    const target = chooseLoadTarget(info, wish, standing)
    const ensured = await ensureTable(db, info.name, info.schema)
    if (history) await createHistoryTable(db, ensured)
    const table = { ...ensured, history: ensured.history || history }
    const columnOf = (name: string) => table.columns.find((column) => column.name === name)
    const missing = [...target.key, target.cursor].find((name) => name !== undefined && columnOf(name) === undefined)
    if (missing !== undefined) return rejectStream(info, `its key or cursor ${missing} is no attribute of its schema`)
    await declareStream(db, info, target)
    const cursor = target.cursor === undefined ? undefined : columnOf(target.cursor)
    return {
      id: await insertLoad(db, run, info, target.generation, now),
      stream: info.name,
      schema: JSON.stringify(info.schema),
      table,
      target: target,
      activated: false,
      cursor,
      started: now,
      status: 'running',
      records: 0,
      sourceRecords: undefined,
      batch: createRowBatch(),
      after: undefined,
      state: undefined,
      dirty: false,
    }
  })

/** Takes on a schema that changed while the stream was under way: a tap says it again when it learns more. */
export const updateLoadSchema = (db: Database, load: Load, info: StreamInfo): Promise<void> =>
  db.transaction(async () => {
    load.table = { ...(await ensureTable(db, info.name, info.schema)), history: load.table.history }
    load.schema = JSON.stringify(info.schema)
    await db.run('UPDATE _streams SET schema = $schema WHERE stream = $stream', {
      stream: info.name,
      schema: load.schema,
    })
  })

/** Two names that a database takes for one. */
const findDuplicateNames = (names: ReadonlyArray<string>): ReadonlyArray<string> | undefined => {
  const same = (name: string) => names.filter((other) => other.toLowerCase() === name.toLowerCase())
  return names.map(same).find((group) => group.length > 1)
}

const rejectStream = ({ name }: StreamInfo, why: string, remedy = 'Correct the catalog.'): never => {
  throw new CommandError(configFailure(`Stream ${name} cannot be written: ${why}. ${remedy}`))
}
