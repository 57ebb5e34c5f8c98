import { describe, expect, it } from 'vitest'
import type { Snapshot } from '../../../connector/snapshot/store/database'
import { verifySnapshot } from '../../../connector/snapshot/verify/verify'
import {
  contentJson,
  createStreamInfo,
  deletedReviewsInfo,
  instantSchema,
  openMemorySnapshot,
  recordsMessage,
  reviewContentsInfo,
  reviewJson,
  reviewProperties,
  reviewsInfo,
  startedMessage,
  streamMessages,
  timeAtMinute,
  writeMessages,
} from '../../support/snapshot-messages'

const listVersions = async ({ db }: Snapshot, stream: string, columns: string) =>
  (
    await db.query(`
    SELECT concat_ws(' ', ${columns}, strftime(valid_from::TIMESTAMP, '%M'),
        coalesce(strftime(valid_to::TIMESTAMP, '%M'), 'now')) AS row
    FROM ${stream}_versions ORDER BY ALL`)
  ).map(({ row }) => row)

const withHistory = { history: true }

describe('history', () => {
  it('keeps every version of a row with its period, for any order and any batches of versions', async () => {
    const snapshot = await openMemorySnapshot()
    await writeMessages(
      snapshot,
      streamMessages(reviewsInfo(), reviewJson(1, 1, 'a'), reviewJson(2, 1, 'x'), reviewJson(1, 3, 'c')),
      withHistory,
    )
    await writeMessages(snapshot, streamMessages(reviewsInfo(), reviewJson(1, 2, 'b'), reviewJson(1, 3, 'c')))
    await writeMessages(snapshot, streamMessages(reviewsInfo(), reviewJson(1, 2, 'b'), reviewJson(1, 9, 'd')))
    expect(await listVersions(snapshot, 'reviews', 'id, text')).toEqual([
      '1 a 01 02',
      '1 b 02 03',
      '1 c 03 09',
      '1 d 09 now',
      '2 x 01 now',
    ])
    expect((await snapshot.db.query('SELECT id, text FROM reviews ORDER BY id')).map(Object.values)).toEqual([
      [1, 'd'],
      [2, 'x'],
    ])
    expect((await verifySnapshot(snapshot)).filter(({ ok }) => !ok).map(({ name }) => name)).toEqual([])
    snapshot.db.close()
  })

  it('ends deleted rows, and children of an older version of their review', async () => {
    const snapshot = await openMemorySnapshot()
    await writeMessages(
      snapshot,
      [
        startedMessage(reviewsInfo()),
        startedMessage(reviewContentsInfo()),
        startedMessage(deletedReviewsInfo()),
        recordsMessage('reviews', reviewJson(1, 1, 'a'), reviewJson(2, 1, 'x')),
        recordsMessage('review_contents', contentJson(1, 1, 1), contentJson(1, 1, 2), contentJson(2, 1, 1)),
        recordsMessage('reviews', reviewJson(1, 3, 'b')),
        recordsMessage('review_contents', contentJson(1, 3, 1)),
        recordsMessage('deleted_reviews', reviewJson(2, 5)),
      ],
      withHistory,
    )
    expect(await listVersions(snapshot, 'reviews', 'id, text')).toEqual(['1 a 01 03', '1 b 03 now', '2 x 01 05'])
    expect(await listVersions(snapshot, 'review_contents', '"reviewId", id')).toEqual([
      '1 1 01 03',
      '1 1 03 now',
      '1 2 01 03',
      '2 1 01 05',
    ])
    snapshot.db.close()
  })

  it('ends a version at its tombstone, which is not a version itself', async () => {
    const snapshot = await openMemorySnapshot()
    const stream = createStreamInfo(
      'reviews',
      { ...reviewProperties, _ab_cdc_deleted_at: instantSchema },
      ['id'],
      'modifiedTime',
    )
    await writeMessages(snapshot, streamMessages(stream, reviewJson(1, 1, 'a')), withHistory)
    await writeMessages(
      snapshot,
      streamMessages(stream, `{"id":1,"modifiedTime":"${timeAtMinute(4)}","_ab_cdc_deleted_at":"${timeAtMinute(4)}"}`),
    )
    expect(await listVersions(snapshot, 'reviews', 'id, text')).toEqual(['1 a 01 04'])
    snapshot.db.close()
  })

  it('ends rows that a full refresh does not read again, and follows a schema that grows', async () => {
    const snapshot = await openMemorySnapshot()
    await writeMessages(
      snapshot,
      streamMessages(reviewsInfo(), reviewJson(1, 1, '1'), reviewJson(2, 1, '2')),
      withHistory,
    )
    const changed = createStreamInfo(
      'reviews',
      { ...reviewProperties, more: { type: 'string' } },
      ['id'],
      'modifiedTime',
      'full_refresh',
    )
    await writeMessages(
      snapshot,
      streamMessages(changed, `{"id":1,"modifiedTime":"${timeAtMinute(2)}","text":"3","more":"m"}`),
    )
    expect(
      await snapshot.db.query(
        `SELECT id, text, more, valid_to IS NULL AS current FROM reviews_versions ORDER BY id, valid_from`,
      ),
    ).toEqual([
      { id: 1, text: '1', more: null, current: false },
      { id: 1, text: '3', more: 'm', current: true },
      { id: 2, text: '2', more: null, current: false },
    ])
    snapshot.db.close()
  })

  it.each(['integer', 'string', 'object'])(
    'orders versions by a cursor of type %s, which is not a time',
    async (type) => {
      const snapshot = await openMemorySnapshot()
      const stream = createStreamInfo('things', { id: { type: 'integer' }, step: { type } }, ['id'], 'step')
      for (const [i, step] of [1, 2].entries())
        await writeMessages(
          snapshot,
          [
            startedMessage(stream),
            {
              _tag: 'Records',
              stream: 'things',
              at: Date.parse(timeAtMinute(i + 1)),
              rows: [{ json: Buffer.from(JSON.stringify({ id: 1, step: type === 'string' ? `v${step}` : step })) }],
            },
          ],
          withHistory,
        )
      expect(await listVersions(snapshot, 'things', 'id')).toEqual(['1 01 02', '1 02 now'])
      snapshot.db.close()
    },
  )

  it('keeps the streams that have the names of views', async () => {
    const snapshot = await openMemorySnapshot()
    const names = ['things', 'things_versions', 'Review_Daily', 'reviews']
    const load = (name: string, id: number) =>
      writeMessages(
        snapshot,
        streamMessages(
          createStreamInfo(name, { id: { type: 'integer' }, modifiedTime: instantSchema }, ['id'], 'modifiedTime'),
          reviewJson(id, 1),
        ),
        withHistory,
      )
    for (const name of names) await load(name, 1)
    for (const name of names.toReversed()) await load(name, 2)
    for (const name of names) expect(await snapshot.db.scalar(`SELECT count(*) FROM "${name}"`)).toBe(2)
    expect(await snapshot.db.scalar('SELECT count(*) FROM things_versions_')).toBe(2)
    expect(await snapshot.db.scalar('SELECT count(*) FROM things_versions_versions')).toBe(2)
    expect(await snapshot.db.scalar('SELECT count(*) FROM reviews_current')).toBe(2)
    snapshot.db.close()
  })
})
