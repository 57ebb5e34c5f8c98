import * as O from 'fp-ts/Option'
import type { CommandIo, Stream, SyncMode } from '../cdk'
import { runOrThrow } from '../config'
import { closeSnapshot, createSnapshotWriter, type LoadSummary, openSnapshot, readSnapshotState } from '../snapshot'
import type { SourceEnv } from '../streams'
import { type MessageConsumer, type ReadOutcome, runRead } from './read'
import type { ConfiguredSource } from './source'

export type SyncOptions = {
  readonly path: string
  readonly streams: ReadonlyArray<Stream<SourceEnv>>
  readonly syncMode: SyncMode
  /** From now on, keep every version of a row. */
  readonly history?: boolean
}

/** Reads what is new into a DuckDB file, from where the file stands; warnings and failures go to stderr as they come. */
export const syncSnapshot = async (
  io: CommandIo,
  wired: ConfiguredSource,
  { path, streams, syncMode, history = false }: SyncOptions,
): Promise<{ readonly ending: ReadOutcome; readonly outcomes: ReadonlyArray<LoadSummary> }> => {
  const snapshot = await runOrThrow(openSnapshot(path))
  try {
    const state = await readSnapshotState(snapshot)
    const saver = await createSnapshotWriter(snapshot, { now: Date.now, history })
    const catalog = streams.map(({ name }) => ({ name, syncMode, attributes: O.none }))
    const ending = await runRead(io, wired, { catalog, state }, [saver.write, createProgressReporter(io)])
    return { ending, outcomes: await saver.finish() }
  } finally {
    await closeSnapshot(snapshot)
  }
}

/** Also writes what a run says into a DuckDB file: the config's `snapshot_path`. */
export const openSnapshotCopy = async (
  path: string,
): Promise<{ readonly write: MessageConsumer; readonly finish: () => Promise<void> }> => {
  const snapshot = await runOrThrow(openSnapshot(path))
  const saver = await createSnapshotWriter(snapshot, { now: Date.now })
  return {
    write: saver.write,
    finish: async () => {
      await saver.finish()
      snapshot.db.close()
    },
  }
}

/** What a person wants to hear while a run goes on. */
const createProgressReporter = (io: CommandIo): MessageConsumer => {
  const counts = new Map<string, number>()
  return async (message) => {
    switch (message._tag) {
      case 'Records': {
        const count = (counts.get(message.stream) ?? 0) + message.rows.length
        counts.set(message.stream, count)
        io.printProgress(`${message.stream}: ${count.toLocaleString('en')} records`)
        return
      }
      case 'Waiting':
        return io.printProgress(
          `${message.stream}: the service makes us wait until ${new Date(message.until).toISOString()}`,
        )
      case 'Failed':
        return io.printWarning(`${message.stream ?? 'The run'} failed. ${message.failure.message}`)
      case 'Log':
        return message.level === 'warn' || message.level === 'error' ? io.printWarning(message.message) : undefined
      default:
        return
    }
  }
}

/** What came, per stream, for people. */
export const formatOutcomes = (outcomes: ReadonlyArray<LoadSummary>): string => {
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
