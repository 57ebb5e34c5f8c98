import { existsSync } from 'node:fs'
import { type Message, type MessageConsumer, runOrThrow, type ServiceIdentity } from '../cdk'

/** Loaded only for a copy: it brings DuckDB, which doubles the time that a command takes to start. */
const loadSnapshotRoom = () => import('../snapshot/index.js')

/** The messages that wait for a reason to create the file of a copy: more would take memory. */
const maxWaitingMessages = 100

/**
 * Writes the messages of a run also into a DuckDB file: the config's `snapshot_path`. A file that does not exist yet is created
 * with the first rows or the end of a stream, so that a run that fails at once, as with a wrong token, leaves none.
 */
export const openSnapshotCopy = async (
  path: string,
  service: ServiceIdentity,
  reportingTimeZone?: string,
): Promise<{ readonly write: MessageConsumer; readonly finish: () => Promise<void> }> => {
  const { claimSnapshot, createSnapshotWriter, openSnapshot, setReportingTimeZone } = await loadSnapshotRoom()
  const open = async () => {
    const snapshot = await runOrThrow(openSnapshot(path))
    await claimSnapshot(snapshot, service, 'refuse')
    if (reportingTimeZone !== undefined) await setReportingTimeZone(snapshot, reportingTimeZone)
    return { snapshot, writer: await createSnapshotWriter(snapshot, { now: Date.now }) }
  }
  let opened = existsSync(path) ? await open() : undefined
  let waiting: ReadonlyArray<Message> = []
  return {
    write: async (message) => {
      if (opened !== undefined) return opened.writer.write(message)
      waiting = [...waiting, message]
      const isWorthFile = message._tag === 'Records' || message._tag === 'Finished'
      if (!isWorthFile && waiting.length <= maxWaitingMessages) return
      opened = await open()
      for (const each of waiting) await opened.writer.write(each)
      waiting = []
    },
    finish: async () => {
      await opened?.writer.finish()
      opened?.snapshot.db.close()
    },
  }
}
