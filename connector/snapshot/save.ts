import { Stopped } from '../cdk/cli'
import { configFailure } from '../cdk/failure'
import type { Message, Row } from '../cdk/message'
import { closeAbandonedLoads, type Status } from './books'
import { commit } from './commit'
import type { Wish } from './destination'
import { toText } from './json-text'
import { type Load, openLoad } from './load'
import { deletions } from './relations'
import { savingFailure } from './saving-failure'
import type { Snapshot } from './snapshot'
import { allTables } from './table'

export type SaveOptions = {
  /** Milliseconds since 1970. */
  readonly now: () => number
  /** By stream, as the configured catalog says it. */
  readonly wishes?: Readonly<Record<string, Wish>>
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
  readonly write: (message: Message) => Promise<void>
  /** Commits what is left. A stream that has not finished is incomplete. */
  readonly finish: () => Promise<ReadonlyArray<Saved>>
}

/** Held before a commit: enough to spread its cost, little enough to keep memory flat. */
const maxBytes = 4_000_000
const maxRows = 10_000
/** States wait this long for more rows, in milliseconds. */
const maxWait = 5_000

/** Writes what a run says into the snapshot; a committed state covers committed rows only, whenever the process dies. */
export const saveTo = async ({ db }: Snapshot, { now, wishes = {} }: SaveOptions): Promise<Saver> => {
  await closeAbandonedLoads(db)
  const run = Number(await db.scalar('SELECT coalesce(max(run), 0) + 1 FROM _loads'))
  const loads = new Map<string, Load>()
  const held = { bytes: 0, rows: 0, since: now() }

  const flush = async (): Promise<void> => {
    const pending = [...loads.values()].filter(({ dirty }) => dirty)
    if (pending.length > 0) await commit(db, pending, await allTables(db), now())
    for (const load of pending) Object.assign(load, { rows: [], state: undefined, dirty: false })
    Object.assign(held, { bytes: 0, rows: 0, since: now() })
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
    const others = [...loads.values()].filter((other) => other.rows.length > 0 && other.stream !== stream)
    if (stream === deletions ? others.length > 0 : others.some((other) => other.stream === deletions)) await flush()
    for (const row of rows) {
      load.rows.push({ ...row, at })
      load.records += 1
      held.bytes += row.json.length
      held.rows += 1
      if (held.bytes >= maxBytes || held.rows >= maxRows) await flush()
    }
  }

  const end = async (load: Load, status: Status): Promise<void> => {
    if (load.status !== 'running') return
    Object.assign(load, { status, dirty: true })
    await flush()
  }

  const take = async (message: Message): Promise<void> => {
    switch (message._tag) {
      case 'Started': {
        await flush()
        const { name } = message.stream
        if (loads.get(name)?.status !== 'running')
          loads.set(name, await openLoad(db, run, message.stream, wishes[name] ?? {}, now()))
        return
      }
      case 'Records':
        return receive(message.stream, message.rows, message.at)
      case 'Checkpoint': {
        const load = loadOf(message.stream)
        load.state = toText(message.state)
        if (Number.isFinite(message.count)) load.sourceRecords = (load.sourceRecords ?? 0) + message.count
        if (now() - held.since >= maxWait) await flush()
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
        return flush()
      case 'Running':
      case 'Log':
        return
    }
  }

  const guarded = async <A>(body: () => Promise<A>): Promise<A> => {
    try {
      return await body()
    } catch (error) {
      throw error instanceof Stopped ? error : new Stopped(savingFailure(db.path, error))
    }
  }

  return {
    write: (message) => guarded(() => take(message)),
    finish: () =>
      guarded(async () => {
        for (const load of loads.values()) await end(load, 'incomplete')
        return [...loads.values()].map(({ stream, status, records, started }) => ({
          stream,
          status,
          records,
          seconds: (now() - started) / 1000,
        }))
      }),
  }
}
