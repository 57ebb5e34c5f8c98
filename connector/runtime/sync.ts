import * as O from 'fp-ts/Option'
import {
  type CommandIo,
  consumeMessages,
  type MessageConsumer,
  type ReadOutcome,
  runOrThrow,
  type Stream,
  type SyncMode,
} from '../cdk'
import type { LoadSummary } from '../snapshot'
import type { SourceEnv } from '../streams'
import type { ConfiguredSource } from './source'

/** Loaded only when a file is opened: it brings DuckDB, which doubles the time that a command takes to start. */
const loadSnapshotRoom = () => import('../snapshot/index.js')

export type SyncOptions = {
  /** The DuckDB file; created if it is missing. */
  readonly path: string
  readonly streams: ReadonlyArray<Stream<SourceEnv>>
  readonly syncMode: SyncMode
  /** From now on, keep every version of a row. */
  readonly history?: boolean
}

/** Reads what is new into a DuckDB file, from the states that the file holds. Reports progress, warnings and failures on stderr. */
export const syncSnapshot = async (
  io: CommandIo,
  configured: ConfiguredSource,
  { path, streams, syncMode, history = false }: SyncOptions,
): Promise<{ readonly outcome: ReadOutcome; readonly summaries: ReadonlyArray<LoadSummary> }> => {
  const { closeSnapshot, createSnapshotWriter, openSnapshot, readSnapshotState } = await loadSnapshotRoom()
  const snapshot = await runOrThrow(openSnapshot(path))
  try {
    const state = await readSnapshotState(snapshot)
    const writer = await createSnapshotWriter(snapshot, { now: Date.now, history })
    const catalog = streams.map(({ name }) => ({ name, syncMode, attributes: O.none }))
    const outcome = await consumeMessages(io, configured, { catalog, state }, [
      writer.write,
      createProgressReporter(io),
    ])
    return { outcome, summaries: await writer.finish() }
  } finally {
    await closeSnapshot(snapshot)
  }
}

/** Writes the messages of a run also into a DuckDB file: the config's `snapshot_path`. */
export const openSnapshotCopy = async (
  path: string,
): Promise<{ readonly write: MessageConsumer; readonly finish: () => Promise<void> }> => {
  const { createSnapshotWriter, openSnapshot } = await loadSnapshotRoom()
  const snapshot = await runOrThrow(openSnapshot(path))
  const writer = await createSnapshotWriter(snapshot, { now: Date.now })
  return {
    write: writer.write,
    finish: async () => {
      await writer.finish()
      snapshot.db.close()
    },
  }
}

/** Reports to a person while a run goes on. */
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
