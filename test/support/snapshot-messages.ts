import * as E from 'fp-ts/Either'
import * as O from 'fp-ts/Option'
import type { Message, StreamInfo, SyncMode } from '../../connector/cdk/message'
import { defined } from '../../connector/cdk/schema'
import { createSnapshotWriter, type SnapshotWriterOptions } from '../../connector/snapshot/load/writer'
import type { Snapshot } from '../../connector/snapshot/store/database'
import { openSnapshot, type SnapshotAccess } from '../../connector/snapshot/store/file'

/** Throws the failure's message if the file does not open. */
export const openSnapshotFile = async (path: string, access?: SnapshotAccess): Promise<Snapshot> => {
  const opened = await openSnapshot(path, access)()
  if (E.isLeft(opened)) throw new Error(opened.left.message)
  return opened.right
}

/** Gives the database of a file to `body`, and closes it. */
export const useDatabase = async <A>(
  path: string,
  access: SnapshotAccess,
  body: (db: Snapshot['db']) => Promise<A>,
): Promise<A> => {
  const { db } = await openSnapshotFile(path, access)
  try {
    return await body(db)
  } finally {
    db.close()
  }
}

export const openMemorySnapshot = (): Promise<Snapshot> => openSnapshotFile(':memory:')

export const integerSchema = { type: 'integer' }
export const instantSchema = { type: 'string', format: 'date-time' }
export const createStreamInfo = (
  name: string,
  properties: Record<string, unknown>,
  primaryKey: ReadonlyArray<string>,
  cursor: string,
  syncMode: SyncMode = 'incremental',
): StreamInfo => ({ name, schema: { type: 'object', properties }, primaryKey, cursor: O.some(cursor), syncMode })

export const reviewProperties = {
  id: integerSchema,
  modifiedTime: instantSchema,
  rating: { type: ['null', 'number'] },
  location: { type: ['null', 'object'] },
  text: { type: ['null', 'string'] },
}
export const reviewsInfo = (mode?: SyncMode) =>
  createStreamInfo('reviews', reviewProperties, ['id'], 'modifiedTime', mode)
export const deletedReviewsInfo = (mode?: SyncMode) =>
  createStreamInfo('deleted_reviews', { id: integerSchema, modifiedTime: instantSchema }, ['id'], 'modifiedTime', mode)
export const reviewContentsInfo = (mode?: SyncMode) =>
  createStreamInfo(
    'review_contents',
    { reviewId: integerSchema, reviewModifiedTime: instantSchema, id: integerSchema },
    ['reviewId', 'id'],
    'reviewModifiedTime',
    mode,
  )

export const emittedAt = Date.parse('2026-01-02T00:00:00Z')
export const timeAtMinute = (minute: number) => `2026-01-01T00:${String(minute).padStart(2, '0')}:00.000Z`
export const recordsMessage = (stream: string, ...texts: string[]): Message => ({
  _tag: 'Records',
  stream,
  at: emittedAt,
  rows: texts.map((text) => ({ json: Buffer.from(text) })),
})
export const reviewJson = (id: number, minute: number, text?: string) =>
  JSON.stringify({ id, modifiedTime: timeAtMinute(minute), ...defined({ text }) })
export const contentJson = (reviewId: number, minute: number, id: number) =>
  JSON.stringify({ reviewId, reviewModifiedTime: timeAtMinute(minute), id })
export const startedMessage = (stream: StreamInfo): Message => ({ _tag: 'Started', stream })
export const checkpointMessage = (stream: string, state: unknown, count = 0): Message => ({
  _tag: 'Checkpoint',
  stream,
  state,
  count,
})
export const finishedMessage = (stream: string): Message => ({ _tag: 'Finished', stream })

export const writeMessages = async (
  snapshot: Snapshot,
  messages: ReadonlyArray<Message>,
  options: Partial<SnapshotWriterOptions> = {},
) => {
  const writer = await createSnapshotWriter(snapshot, { now: () => emittedAt, ...options })
  for (const message of messages) await writer.write(message)
  return writer.finish()
}

export const streamMessages = (stream: StreamInfo, ...texts: string[]): Message[] => [
  startedMessage(stream),
  ...(texts.length === 0 ? [] : [recordsMessage(stream.name, ...texts)]),
  checkpointMessage(stream.name, { cursor: texts.length }, texts.length),
  finishedMessage(stream.name),
]

/** A snapshot that commits in parts, as if the whole had needed too much memory. */
export const commitInParts = ({ db }: Snapshot): Snapshot => {
  let inParts = false
  return {
    db: {
      ...db,
      withMemory: async (name, work, parts) => {
        if (parts === undefined || inParts) return db.withMemory(name, work)
        inParts = true
        return parts().finally(() => {
          inParts = false
        })
      },
    },
  }
}
