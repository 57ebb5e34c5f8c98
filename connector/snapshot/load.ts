import { CommandError } from '../cdk/cli'
import { configFailure } from '../cdk/failure'
import type { StreamInfo } from '../cdk/message'
import { createRowBatch, type RowBatch } from './arrivals'
import { declareStream, insertLoad, type LoadStatus, readStreamMetadata } from './books'
import { type Column, columnsFromSchema } from './column'
import type { Database } from './database'
import { chooseLoadTarget, type LoadOptions, type LoadTarget } from './destination'
import { createHistoryTable } from './history'
import { ensureTable, type Table } from './table'

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
