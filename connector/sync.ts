import * as O from 'fp-ts/Option'
import type { Io } from './cdk/cli'
import type { SyncMode } from './cdk/message'
import type { Stream } from './cdk/stream'
import { runOrStop } from './load'
import { type Consumer, type Ending, runRead } from './run'
import { type Saved, saveTo } from './snapshot/save'
import { closeSnapshot, openSnapshot } from './snapshot/snapshot'
import { readState } from './snapshot/state'
import type { Source } from './streams/source'
import type { Wired } from './wire'

export type Sync = {
  readonly path: string
  readonly streams: ReadonlyArray<Stream<Source>>
  readonly syncMode: SyncMode
  /** From now on, keep every version of a row. */
  readonly history?: boolean
}

/** Reads what is new into a DuckDB file, from where the file stands; warnings and failures go to stderr as they come. */
export const syncInto = async (
  io: Io,
  wired: Wired,
  { path, streams, syncMode, history = false }: Sync,
): Promise<{ readonly ending: Ending; readonly outcomes: ReadonlyArray<Saved> }> => {
  const snapshot = await runOrStop(openSnapshot(path))
  try {
    const state = await readState(snapshot)
    const saver = await saveTo(snapshot, { now: Date.now, history })
    const catalog = streams.map(({ name }) => ({ name, syncMode, attributes: O.none }))
    const ending = await runRead(io, wired, { catalog, state }, [saver.write, telling(io)])
    return { ending, outcomes: await saver.finish() }
  } finally {
    await closeSnapshot(snapshot)
  }
}

/** Also writes what a run says into a DuckDB file: the config's `snapshot_path`. */
export const copyInto = async (
  path: string,
): Promise<{ readonly write: Consumer; readonly finish: () => Promise<void> }> => {
  const snapshot = await runOrStop(openSnapshot(path))
  const saver = await saveTo(snapshot, { now: Date.now })
  return {
    write: saver.write,
    finish: async () => {
      await saver.finish()
      snapshot.db.close()
    },
  }
}

/** What a person wants to hear while a run goes on. */
const telling = (io: Io): Consumer => {
  const counts = new Map<string, number>()
  return async (message) => {
    switch (message._tag) {
      case 'Records': {
        const count = (counts.get(message.stream) ?? 0) + message.rows.length
        counts.set(message.stream, count)
        io.progress(`${message.stream}: ${count.toLocaleString('en')} records`)
        return
      }
      case 'Waiting':
        return io.progress(
          `${message.stream}: the service makes us wait until ${new Date(message.until).toISOString()}`,
        )
      case 'Failed':
        return io.warn(`${message.stream ?? 'The run'} failed. ${message.failure.message}`)
      case 'Log':
        return message.level === 'warn' || message.level === 'error' ? io.warn(message.message) : undefined
      default:
        return
    }
  }
}

/** What came, per stream, for people. */
export const table = (outcomes: ReadonlyArray<Saved>): string => {
  const rows = outcomes.map(({ stream, status, records, seconds }) => [
    stream,
    status,
    records.toLocaleString('en'),
    seconds.toFixed(1),
    seconds === 0 ? '' : Math.round(records / seconds).toLocaleString('en'),
  ])
  const head = ['stream', 'status', 'records', 'seconds', 'records/s']
  const widths = head.map((title, i) => Math.max(title.length, ...rows.map((row) => row[i]?.length ?? 0)))
  return [head, ...rows]
    .map(
      (row) =>
        `${row.map((cell, i) => (i < 2 ? cell.padEnd(widths[i] ?? 0) : cell.padStart(widths[i] ?? 0))).join('  ')}\n`,
    )
    .join('')
}
