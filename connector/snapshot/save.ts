import { Stopped } from '../cdk/cli'
import { configFailure } from '../cdk/failure'
import type { Row } from '../cdk/message'
import { closeAbandonedLoads, type Status } from './books'
import type { Wish } from './destination'
import type { Incoming, Version } from './incoming-line'
import { toText } from './json-text'
import { type Load, openLoad, redeclare } from './load'
import { allowLoading, allowMerging } from './memory'
import { deletions } from './relations'
import { savingFailure } from './saving-failure'
import { insertPending, settle } from './settle'
import type { Snapshot } from './snapshot'
import { allTables } from './table'
import { createViews } from './views'

export type SaveOptions = {
  /** Milliseconds since 1970. */
  readonly now: () => number
  /** By stream, as the configured catalog says it. */
  readonly wishes?: Readonly<Record<string, Wish>>
  /** From now on, keep every version of a row; a file that has begun to goes on. */
  readonly history?: boolean
}

/** What became of one stream. */
export type Saved = {
  readonly stream: string
  readonly status: Status
  readonly records: number
  readonly seconds: number
}

export type Saver = {
  /** Takes one message; settles once there is room for the next. Rejects with `Stopped`. */
  readonly write: (message: Incoming) => Promise<void>
  /** Commits what is left. A stream that has not finished is incomplete. */
  readonly finish: () => Promise<ReadonlyArray<Saved>>
}

/** Handed to DuckDB at once: more costs memory, less costs time. */
const insertBytes = 500_000
/** A transaction ends at the first of these: its cost is spread, and a run that is killed loses little. */
const commitRows = 65_536
const commitBytes = 100_000_000
const commitMillis = 5_000

/** Writes what a run says into the snapshot; a committed state covers committed rows only, whenever the process dies. */
export const saveTo = async ({ db }: Snapshot, { now, wishes = {}, history = false }: SaveOptions): Promise<Saver> => {
  await closeAbandonedLoads(db)
  await allowLoading(db)
  const run = Number(await db.scalar('SELECT coalesce(max(run), 0) + 1 FROM _loads'))
  const loads = new Map<string, Load>()
  let tables = await allTables(db)
  /** What the transaction under way has taken in; `begun`: it has been opened in DuckDB. */
  let open = { rows: 0, bytes: 0, since: now(), begun: false }
  let pendingBytes = 0
  /** The insertion under way, while we go on reading; nothing else may be asked of the connection meanwhile. */
  let inserting: Promise<void> = Promise.resolve()

  const insert = async (): Promise<void> => {
    pendingBytes = 0
    if (!open.begun) await db.run('BEGIN')
    open.begun = true
    for (const load of loads.values()) await insertPending(db, load)
  }

  const insertBehind = async (): Promise<void> => {
    await inserting
    inserting = insert()
    db.behind(inserting)
  }

  const commit = async (): Promise<void> => {
    await inserting
    const dirty = [...loads.values()].filter((load) => load.dirty)
    if (dirty.length > 0) {
      await insert()
      await allowMerging(db)
      await settle(db, dirty, tables, now())
      await db.run('COMMIT')
      await allowLoading(db)
    }
    for (const load of dirty) Object.assign(load, { after: undefined, state: undefined, dirty: false })
    open = { rows: 0, bytes: 0, since: now(), begun: false }
  }

  const loadOf = (stream: string): Load => {
    const load = loads.get(stream)
    if (load === undefined)
      throw new Stopped(configFailure(`Stream ${stream} sends records, but nothing has said what it is.`))
    load.dirty = true
    return load
  }

  const receive = async (stream: string, rows: ReadonlyArray<Row>, at: number): Promise<void> => {
    const load = loadOf(stream)
    const others = [...loads.values()].filter((other) => other.stream !== stream && brings(other))
    if (stream === deletions ? others.length > 0 : others.some((other) => other.stream === deletions)) await commit()
    for (const row of rows) {
      load.dirty = true
      load.pending.add(row, at)
      load.records += 1
      open.rows += 1
      open.bytes += row.json.length
      pendingBytes += row.json.length
      if (pendingBytes >= insertBytes) await insertBehind()
      if (open.rows >= commitRows || open.bytes >= commitBytes) await commit()
    }
  }

  const end = async (load: Load, status: Status): Promise<void> => {
    if (load.status !== 'running') return
    Object.assign(load, { status, dirty: true, ended: now() })
    await commit()
  }

  const turnTo = async ({ stream, version, active }: Version): Promise<void> => {
    const load = loadOf(stream)
    if (version < load.destination.generation) return
    if (version > load.destination.generation) {
      await commit()
      load.destination = { ...load.destination, generation: version }
    }
    if (!active) return
    Object.assign(load, { activated: true, dirty: true })
    await commit()
    load.activated = false
  }

  const take = async (message: Incoming): Promise<void> => {
    switch (message._tag) {
      case 'Started': {
        const { name, schema } = message.stream
        const held = loads.get(name)
        const running = held?.status === 'running' ? held : undefined
        if (running?.schema === JSON.stringify(schema)) return
        await commit()
        if (running === undefined)
          loads.set(name, await openLoad(db, run, message.stream, { wish: wishes[name] ?? {}, history }, now()))
        else await redeclare(db, running, message.stream)
        tables = await allTables(db)
        return
      }
      case 'Records':
        return receive(message.stream, message.rows, message.at)
      case 'Checkpoint': {
        const load = loadOf(message.stream)
        load.state = toText(message.state)
        if (Number.isFinite(message.count)) load.sourceRecords = (load.sourceRecords ?? 0) + message.count
        if (now() - open.since >= commitMillis) await commit()
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
      throw error instanceof Stopped ? error : new Stopped(savingFailure(db.path, error))
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
const brings = (load: Load): boolean => load.after !== undefined || load.pending.count() > 0
