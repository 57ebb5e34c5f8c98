import { expect, it } from 'vitest'
import type { Message } from '../../../connector/cdk/stream'
import type { Snapshot } from '../../../connector/snapshot/store/database'
import { closeSnapshot } from '../../../connector/snapshot/store/file'
import { verifySnapshot } from '../../../connector/snapshot/verify/verify'
import { newTempPath } from '../../support/files'
import {
  checkpointMessage,
  commitInParts,
  contentJson,
  createStreamInfo,
  emittedAt,
  finishedMessage,
  instantSchema,
  integerSchema,
  openSnapshotFile,
  reviewContentsInfo,
  reviewJson,
  reviewsInfo,
  startedMessage,
  writeMessages,
} from '../../support/snapshot-messages'

const locationsInfo = createStreamInfo('locations', { id: integerSchema, seen: instantSchema }, ['id'], 'seen')
const visitsInfo = { ...createStreamInfo('visits', { id: integerSchema }, [], 'id') }

/** Reviews with two contents each, and rows that belong to no review: with a key and without. A value does not fit its column. */
const run = (ids: ReadonlyArray<number>, minute: number): ReadonlyArray<Message> => {
  const records = {
    reviews: ids.map((id) =>
      reviewJson(id, minute, `text ${minute}`).replace('}', `,"rating":${id % 5 === 0 ? '"none"' : id % 5}}`),
    ),
    review_contents: ids.flatMap((id) => [contentJson(id, minute, 1), contentJson(id, minute, minute)]),
    locations: ['{"id":1,"seen":"2026-01-01T00:00:00Z"}'],
    visits: ['{"id":7}'],
  }
  return [
    ...[reviewsInfo(), reviewContentsInfo(), locationsInfo, visitsInfo].map(startedMessage),
    ...Object.entries(records).map(
      ([stream, texts]): Message => ({
        _tag: 'Records',
        stream,
        at: emittedAt,
        rows: texts.map((text) => ({
          json: Buffer.from(text),
          changes: text.includes('"id":3,')
            ? [{ field: 'text', change: 'TRUNCATED', reason: 'SOURCE_SERIALIZATION_ERROR' }]
            : [],
        })),
      }),
    ),
    ...Object.entries(records).map(([stream, texts]) => checkpointMessage(stream, { minute }, texts.length)),
    ...Object.keys(records).map(finishedMessage),
  ]
}

const list = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => from + i)

const load = async (prepare: (snapshot: Snapshot) => Snapshot) => {
  const snapshot = await openSnapshotFile(newTempPath('duckdb'))
  for (const messages of [run(list(0, 900), 1), run(list(300, 1200), 2)])
    await writeMessages(prepare(snapshot), messages, { history: true })
  const tables = [
    'reviews',
    'review_contents',
    'locations',
    'visits',
    '_history_reviews',
    '_history_review_contents',
    '_state',
  ]
  const rows: unknown[] = []
  for (const table of tables)
    rows.push(
      (await snapshot.db.query(`SELECT t::VARCHAR AS row FROM ${table} AS t ORDER BY ALL`)).map(({ row }) => row),
    )
  const loads = await snapshot.db.query(
    'SELECT run, stream, status, records, source_records, rows, cursor_from, cursor_to FROM _loads ORDER BY ALL',
  )
  const failed = (await verifySnapshot(snapshot)).filter(({ ok }) => !ok).map(({ name }) => name)
  await closeSnapshot(snapshot)
  return { rows, loads, failed }
}

it('a commit in parts leaves what a commit of the whole leaves', async () => {
  const whole = await load((snapshot) => snapshot)
  expect(whole.failed).toEqual([])
  expect(await load(commitInParts)).toEqual(whole)
}, 120_000)

it('a run that is stopped between two parts has no state yet, and the next one completes it', async () => {
  const path = newTempPath('duckdb')
  const snapshot = await openSnapshotFile(path)
  let left = 3
  const stopped = commitInParts({
    db: {
      ...snapshot.db,
      release: async () => {
        left -= 1
        if (left === 0) throw new Error('stopped')
        return snapshot.db.release()
      },
    },
  })
  await expect(writeMessages(stopped, run(list(0, 900), 1))).rejects.toThrow('stopped')
  const count = async () => Number(await snapshot.db.scalar('SELECT count(*) FROM reviews'))
  expect(await count()).toBeGreaterThan(0)
  expect(await count()).toBeLessThan(900)
  expect(await snapshot.db.scalar('SELECT count(*)::INTEGER FROM _state')).toBe(0)
  expect(await snapshot.db.scalar('SELECT count(*)::INTEGER FROM visits')).toBe(0)
  await writeMessages(snapshot, run(list(0, 900), 1))
  expect(await count()).toBe(900)
  expect((await verifySnapshot(snapshot)).filter(({ ok }) => !ok)).toEqual([])
  await closeSnapshot(snapshot)
}, 120_000)
