import { runOrThrow } from '../../connector/cdk'
import type { Message } from '../../connector/cdk/message'
import { createLakeLoader } from '../../connector/lake/loader'
import { createLogs, lakeMetadata } from '../../connector/lake/metadata'
import type { LakeShare } from '../../connector/lake/place'
import { firstViewsSql } from '../../connector/lake/relations'
import {
  createSnapshotWriter,
  type SnapshotWriter,
  type SnapshotWriterOptions,
} from '../../connector/snapshot/load/writer'
import { openDatabase, type Snapshot } from '../../connector/snapshot/store/database'
import { random } from './random'
import {
  checkpointMessage,
  contentJson,
  createStreamInfo,
  deletedReviewsInfo,
  emittedAt,
  instantSchema,
  integerSchema,
  recordsMessage,
  reviewContentsInfo,
  reviewJson,
  reviewsInfo,
  startedMessage,
  timeAtMinute,
} from './snapshot-messages'

/** A lake in memory: its tables and views without DuckLake, which keeps versions of them in files. */
export const openMemoryLake = async (): Promise<Snapshot> => {
  const db = await runOrThrow(openDatabase(':memory:', { threads: 1 }))
  await createLogs(db)
  await db.run(firstViewsSql())
  return { db: { ...db, lake: { ...lakeMetadata(db, '/data'), freeze: async () => undefined } } }
}

type LakeWriterOptions = Partial<Omit<SnapshotWriterOptions, 'loader'>> & { readonly share?: LakeShare }

export const createLakeWriter = async (
  snapshot: Snapshot,
  { share, now = () => emittedAt, ...options }: LakeWriterOptions = {},
): Promise<SnapshotWriter> => {
  const loader = await createLakeLoader(snapshot, share, now())
  return createSnapshotWriter(snapshot, { ...options, now, loader })
}

export const writeLakeMessages = async (
  snapshot: Snapshot,
  messages: ReadonlyArray<Message>,
  options?: LakeWriterOptions,
) => {
  const writer = await createLakeWriter(snapshot, options)
  for (const message of messages) await writer.write(message)
  return writer.finish()
}

const locationsInfo = createStreamInfo('locations', { id: integerSchema, seen: instantSchema }, ['id'], 'seen')
const drawnInfos = [reviewsInfo(), reviewContentsInfo(), deletedReviewsInfo(), locationsInfo]
export const drawnTables = drawnInfos.map(({ name }) => name)
export const drawnStarts: ReadonlyArray<Message> = drawnInfos.map(startedMessage)

/**
 * Pages of reviews with their parts, of deletions and of locations, with repeated ids; each with the number of the
 * writer that gets it. In the second half reviews have an undeclared attribute, and some deletions come as tombstones,
 * whose marks may be earlier than their cursors.
 */
export const drawPages = (
  seed: number,
  writers: number,
  steps = 40,
): ReadonlyArray<{ readonly writer: number; readonly messages: ReadonlyArray<Message> }> => {
  const draw = random(seed)
  const pick = (count: number) => Math.floor(draw() * count)
  // Among few ids most are met again; among many most are new.
  const range = seed % 2 === 0 ? 25 : 150
  return Array.from({ length: steps }, (_, step) => {
    const [minute, ids] = [1 + pick(9), Array.from({ length: 1 + pick(4) }, () => 1 + pick(range))]
    const texts = ids.map((id) => {
      const review = JSON.parse(reviewJson(id, minute, `version ${minute} of ${id}`))
      return JSON.stringify(step > steps / 2 ? { ...review, later: minute } : review)
    })
    const [deletedId, deletedMinute] = [1 + pick(25), pick(10)]
    const deletion = reviewJson(deletedId, deletedMinute)
    const marked = timeAtMinute(Math.max(0, deletedMinute - pick(3)))
    const isTombstone = step > steps / 2 && pick(2) > 0
    const messages = [
      recordsMessage('reviews', ...texts),
      ...(pick(4) > 0
        ? [recordsMessage('review_contents', ...ids.map((id) => contentJson(id, minute, id * 100 + (minute % 3))))]
        : []),
      ...(pick(4) > 0
        ? []
        : isTombstone
          ? [recordsMessage('reviews', JSON.stringify({ ...JSON.parse(deletion), _ab_cdc_deleted_at: marked }))]
          : [recordsMessage('deleted_reviews', deletion)]),
      recordsMessage('locations', `{"id":${pick(5)},"seen":"2026-01-01T00:0${pick(3)}:00Z","n":${step}}`),
      ...drawnInfos.map((info) => checkpointMessage(info.name, { step })),
      // Makes each writer commit before another one continues.
      { _tag: 'Waiting', stream: 'reviews', until: 0 } as const,
    ]
    return { writer: pick(writers), messages }
  })
}

/** Rows of a snapshot, without the columns that show when and by whom they were written. */
export const readDrawnRows = async ({ db }: Snapshot): Promise<Readonly<Record<string, unknown>>> => {
  const rows: Record<string, unknown> = {}
  for (const table of drawnTables)
    rows[table] = await db.query(
      `SELECT * EXCLUDE (_airbyte_extracted_at, _airbyte_meta, _airbyte_generation_id) FROM ${table} ORDER BY ALL`,
    )
  return rows
}
