import {
  CommandError,
  configFailure,
  type Failure,
  printJsonText,
  type Row,
  systemFailure,
  transientFailure,
} from '../../cdk'
import { closeAbandonedLoads, type LoadStatus } from '../store/metadata'
import type { Snapshot } from '../store/open'
import { deletionsStream, listStreamTables } from '../store/tables'
import { createViews } from '../store/views'
import { commitLoads, insertBatch, limitLoadMemory, raiseMergeMemory } from './commit'
import type { LoadMessage, TableVersion } from './decode-airbyte'
import { type Load, type LoadOptions, openLoad, updateLoadSchema } from './stream-load'

/** Why DuckDB did not take a batch. Its own words may quote a record after `Input:`; these are left out. */
export const databaseWriteFailure = (path: string, error: unknown): Failure => {
  const detail = (error instanceof Error ? error.message : String(error)).replace(/Input:[\s\S]*/, '')
  if (/No space left|disk quota|File too large/i.test(detail))
    return transientFailure(
      `${path} cannot grow: the disk is full, or no file may be as large. Make room and run again; what was committed is kept.`,
      detail,
    )
  return systemFailure(`${path} cannot be written: ${detail.split('\n')[0]}`, detail)
}

export type SnapshotWriterOptions = {
  /** Milliseconds since 1970. */
  readonly now: () => number
  /** By stream, as the configured catalog says it. */
  readonly loadOptions?: Readonly<Record<string, LoadOptions>>
  /** From now on, keep every version of a row; a file that has begun to goes on. */
  readonly history?: boolean
}

/** What became of one stream. */
export type LoadSummary = {
  readonly stream: string
  readonly status: LoadStatus
  readonly records: number
  readonly seconds: number
}

export type SnapshotWriter = {
  /** Takes one message; settles once there is room for the next. Rejects with `Stopped`. */
  readonly write: (message: LoadMessage) => Promise<void>
  /** Commits what is left. A stream that has not finished is incomplete. */
  readonly finish: () => Promise<ReadonlyArray<LoadSummary>>
}

/** Handed to DuckDB at once: more costs memory, less costs time. */
const maxInsertBytes = 500_000
/** A transaction ends at the first of these: its cost is spread, and a run that is killed loses little. */
const maxCommitRows = 65_536
const maxCommitBytes = 100_000_000
const maxCommitMillis = 5_000

/** Writes what a run says into the snapshot; a committed state covers committed rows only, whenever the process dies. */
export const createSnapshotWriter = async (
  { db }: Snapshot,
  { now, loadOptions = {}, history = false }: SnapshotWriterOptions,
): Promise<SnapshotWriter> => {
  await closeAbandonedLoads(db)
  await limitLoadMemory(db)
  const run = Number(await db.scalar('SELECT coalesce(max(run), 0) + 1 FROM _loads'))
  const loads = new Map<string, Load>()
  let tables = await listStreamTables(db)
  /** What the transaction under way has taken in; `begun`: it has been opened in DuckDB. */
  let open = { rows: 0, bytes: 0, since: now(), begun: false }
  let pendingBytes = 0
  /** The insertion under way, while we go on reading; nothing else may be asked of the connection meanwhile. */
  let inserting: Promise<void> = Promise.resolve()

  const insert = async (): Promise<void> => {
    pendingBytes = 0
    if (!open.begun) await db.run('BEGIN')
    open.begun = true
    for (const load of loads.values()) await insertBatch(db, load)
  }

  const insertBehind = async (): Promise<void> => {
    await inserting
    inserting = insert()
    db.trackWork(inserting)
  }

  const commit = async (): Promise<void> => {
    await inserting
    const dirty = [...loads.values()].filter((load) => load.dirty)
    if (dirty.length > 0) {
      await insert()
      await raiseMergeMemory(db)
      await commitLoads(db, dirty, tables, now())
      await db.run('COMMIT')
      await limitLoadMemory(db)
    }
    for (const load of dirty) Object.assign(load, { after: undefined, state: undefined, dirty: false })
    open = { rows: 0, bytes: 0, since: now(), begun: false }
  }

  const loadOf = (stream: string): Load => {
    const load = loads.get(stream)
    if (load === undefined)
      throw new CommandError(configFailure(`Stream ${stream} sends records, but nothing has said what it is.`))
    load.dirty = true
    return load
  }

  const receive = async (stream: string, rows: ReadonlyArray<Row>, at: number): Promise<void> => {
    const load = loadOf(stream)
    const others = [...loads.values()].filter((other) => other.stream !== stream && hasUncommittedRows(other))
    if (stream === deletionsStream ? others.length > 0 : others.some((other) => other.stream === deletionsStream))
      await commit()
    for (const row of rows) {
      load.dirty = true
      load.batch.add(row, at)
      load.records += 1
      open.rows += 1
      open.bytes += row.json.length
      pendingBytes += row.json.length
      if (pendingBytes >= maxInsertBytes) await insertBehind()
      if (open.rows >= maxCommitRows || open.bytes >= maxCommitBytes) await commit()
    }
  }

  const end = async (load: Load, status: LoadStatus): Promise<void> => {
    if (load.status !== 'running') return
    Object.assign(load, { status, dirty: true, ended: now() })
    await commit()
  }

  const turnTo = async ({ stream, version, active }: TableVersion): Promise<void> => {
    const load = loadOf(stream)
    if (version < load.target.generation) return
    if (version > load.target.generation) {
      await commit()
      load.target = { ...load.target, generation: version }
    }
    if (!active) return
    Object.assign(load, { activated: true, dirty: true })
    await commit()
    load.activated = false
  }

  const take = async (message: LoadMessage): Promise<void> => {
    switch (message._tag) {
      case 'Started': {
        const { name, schema } = message.stream
        const held = loads.get(name)
        const running = held?.status === 'running' ? held : undefined
        if (running?.schema === JSON.stringify(schema)) return
        await commit()
        if (running === undefined)
          loads.set(name, await openLoad(db, run, message.stream, { wish: loadOptions[name] ?? {}, history }, now()))
        else await updateLoadSchema(db, running, message.stream)
        tables = await listStreamTables(db)
        return
      }
      case 'Records':
        return receive(message.stream, message.rows, message.at)
      case 'Checkpoint': {
        const load = loadOf(message.stream)
        load.state = printJsonText(message.state)
        if (Number.isFinite(message.count)) load.sourceRecords = (load.sourceRecords ?? 0) + message.count
        if (now() - open.since >= maxCommitMillis) await commit()
        return
      }
      case 'Finished':
        return end(loadOf(message.stream), 'complete')
      case 'Failed': {
        const failed = message.stream === undefined ? [...loads.values()] : [loads.get(message.stream)]
        for (const load of failed) if (load !== undefined) await end(load, 'incomplete')
        return
      }
      case 'Waiting':
        return commit()
      case 'Version':
        return turnTo(message)
      case 'Running':
      case 'Log':
        return
    }
  }

  const guarded = async <A>(body: () => Promise<A>): Promise<A> => {
    try {
      return await body()
    } catch (error) {
      await inserting.catch(() => undefined)
      if (open.begun) await db.run('ROLLBACK').catch(() => undefined)
      throw error instanceof CommandError ? error : new CommandError(databaseWriteFailure(db.path, error))
    }
  }

  return {
    write: (message) => guarded(() => take(message)),
    finish: () =>
      guarded(async () => {
        for (const load of loads.values()) await end(load, 'incomplete')
        await db.transaction(() => createViews(db))
        return [...loads.values()].map(({ stream, status, records, started, ended }) => ({
          stream,
          status,
          records,
          seconds: ((ended ?? now()) - started) / 1000,
        }))
      }),
  }
}

/** Whether the transaction under way has rows of it. */
const hasUncommittedRows = (load: Load): boolean => load.after !== undefined || load.batch.count() > 0
