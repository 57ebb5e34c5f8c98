import { describe, expect, it } from 'vitest'
import type { Message } from '../../../connector/cdk/message'
import { hasManyOldRows, removeOldRowsInSteps } from '../../../connector/snapshot/load/merge'
import type { Database, Snapshot } from '../../../connector/snapshot/store/database'
import { listStreamTables } from '../../../connector/snapshot/store/tables'
import { verifySnapshot } from '../../../connector/snapshot/verify/verify'
import {
  contentJson,
  createStreamInfo,
  deletedReviewsInfo,
  emittedAt,
  instantSchema,
  integerSchema,
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

const listIds = async ({ db }: Snapshot, table: string): Promise<ReadonlyArray<unknown>> =>
  (await db.query(`SELECT id FROM ${table} ORDER BY id`)).map(({ id }) => id)

describe('a version that a tombstone ends', () => {
  const arrived = new Date(emittedAt).toISOString()

  it.each<[string, object, string, string]>([
    ['at the time of its cursor', instantSchema, '2026-01-05T00:00:00.000Z', '2026-01-05T00:00:00.000Z'],
    ['when it arrived, where the cursor is no time', { type: 'string' }, '5', arrived],
    ['when it arrived, where the cursor may be anything', {}, '5', arrived],
  ])('ends %s; the tombstone itself is not a version', async (_, schema, cursor, ended) => {
    const snapshot = await openMemorySnapshot()
    const properties = { id: integerSchema, seen: schema, _ab_cdc_deleted_at: instantSchema }
    const info = createStreamInfo('items', properties, ['id'], 'seen')
    const seenAt = (seen: string, more = {}) => JSON.stringify({ id: 1, seen, ...more })
    const early = cursor.replace('5', '4')
    for (const text of [
      seenAt(early),
      seenAt(cursor, { _ab_cdc_deleted_at: timeAtMinute(1) }),
      seenAt(cursor.replace('5', '6')),
    ])
      await writeMessages(snapshot, streamMessages(info, text), { history: true })
    expect(
      await snapshot.db.query(`SELECT json_extract_string(to_json(seen), '$')[:10] AS seen,
        strftime(_ended AT TIME ZONE 'UTC', '%Y-%m-%dT%H:%M:%S.%gZ') AS ended FROM _history_items`),
    ).toEqual([{ seen: early.slice(0, 10), ended }])
    expect((await snapshot.db.query('SELECT id FROM items')).length).toBe(1)
    snapshot.db.close()
  })

  it('ends without a tombstone at no time of its own', async () => {
    const snapshot = await openMemorySnapshot()
    for (const minute of [1, 2])
      await writeMessages(snapshot, streamMessages(reviewsInfo(), reviewJson(1, minute)), { history: true })
    expect(await snapshot.db.query('SELECT id, _ended FROM _history_reviews')).toEqual([{ id: 1, _ended: null }])
    snapshot.db.close()
  })
})

describe('what deletes reviews deletes nothing else', () => {
  const tombstone = `{"id":1,"modifiedTime":"${timeAtMinute(9)}","_ab_cdc_deleted_at":"${timeAtMinute(9)}"}`

  it('deletions of one review, one after another, all stay where they are appended', async () => {
    const snapshot = await openMemorySnapshot()
    const options = { loadOptions: { deleted_reviews: { mode: 'append' } } } as const
    const deletions = streamMessages(deletedReviewsInfo(), reviewJson(1, 1), reviewJson(1, 5))
    await writeMessages(snapshot, [...streamMessages(reviewsInfo(), reviewJson(1, 0)), ...deletions], options)
    expect([await listIds(snapshot, 'reviews'), await listIds(snapshot, 'deleted_reviews')]).toEqual([[], [1, 1]])
    const info = createStreamInfo(
      'reviews',
      { ...reviewProperties, _ab_cdc_deleted_at: instantSchema },
      ['id'],
      'modifiedTime',
    )
    await writeMessages(snapshot, streamMessages(info, tombstone), options)
    expect([await listIds(snapshot, 'reviews'), await listIds(snapshot, 'deleted_reviews')]).toEqual([[], [1, 1]])
    snapshot.db.close()
  })

  const first: ReadonlyArray<Message> = [
    ...streamMessages(deletedReviewsInfo(), reviewJson(8, 0), reviewJson(9, 0)),
    ...streamMessages(reviewsInfo(), reviewJson(1, 1), reviewJson(2, 1), reviewJson(9, 1)),
    ...streamMessages(reviewContentsInfo(), contentJson(1, 1, 7), contentJson(2, 1, 8)),
  ]

  it('a full refresh of children removes children alone', async () => {
    const snapshot = await openMemorySnapshot()
    await writeMessages(snapshot, first)
    await writeMessages(snapshot, streamMessages(reviewContentsInfo('full_refresh'), contentJson(1, 1, 7)))
    expect(await listIds(snapshot, 'review_contents')).toEqual([7])
    expect(await listIds(snapshot, 'reviews')).toEqual([1, 2, 9])
    expect(await listIds(snapshot, 'deleted_reviews')).toEqual([8, 9])
    snapshot.db.close()
  })

  it('a full refresh of reviews removes what it did not read again, with its children, and no deletion', async () => {
    const snapshot = await openMemorySnapshot()
    await writeMessages(snapshot, first)
    await writeMessages(snapshot, streamMessages(reviewsInfo('full_refresh'), reviewJson(1, 1)))
    expect(await listIds(snapshot, 'reviews')).toEqual([1])
    expect(await listIds(snapshot, 'review_contents')).toEqual([7])
    expect(await listIds(snapshot, 'deleted_reviews')).toEqual([8, 9])
    snapshot.db.close()
  })

  it('a full refresh that appends keeps each row that it read, though an older one was the same', async () => {
    const snapshot = await openMemorySnapshot()
    await writeMessages(snapshot, first, { loadOptions: { reviews: { mode: 'append' } } })
    await writeMessages(snapshot, streamMessages(reviewsInfo(), reviewJson(1, 1), reviewJson(1, 1)), {
      loadOptions: { reviews: { mode: 'append', generation: 2, minimum: 2 } },
    })
    expect(await listIds(snapshot, 'reviews')).toEqual([1, 1])
    snapshot.db.close()
  })

  it('a full refresh of reviews that have no time removes what it did not read again', async () => {
    const snapshot = await openMemorySnapshot()
    const info = (mode?: 'full_refresh') =>
      createStreamInfo('reviews', { id: integerSchema, seen: instantSchema }, ['id'], 'seen', mode)
    await writeMessages(snapshot, streamMessages(info(), '{"id":1}', '{"id":2}'))
    await writeMessages(snapshot, streamMessages(info('full_refresh'), '{"id":2}'))
    expect(await listIds(snapshot, 'reviews')).toEqual([2])
    snapshot.db.close()
  })
})

it('old rows go in parts beside tables that refer to no review and tables without a history', async () => {
  const snapshot = await openMemorySnapshot()
  const visits = createStreamInfo('visits', { id: integerSchema, seen: instantSchema }, ['id'], 'seen')
  await writeMessages(snapshot, streamMessages(reviewsInfo(), reviewJson(1, 1), reviewJson(2, 1)), { history: true })
  await writeMessages(snapshot, [
    ...streamMessages(visits, '{"id":1}'),
    ...streamMessages(reviewContentsInfo(), contentJson(1, 1, 7)),
  ])
  await writeMessages(snapshot, [
    startedMessage(reviewsInfo('full_refresh')),
    recordsMessage('reviews', reviewJson(2, 1)),
  ])
  const tables = await listStreamTables(snapshot.db)
  const reviews = tables.find(({ name }) => name === 'reviews')
  expect(tables.map(({ history }) => history)).toContain(false)
  expect(reviews?.history).toBe(true)
  if (reviews !== undefined) await removeOldRowsInSteps(snapshot.db, reviews, 1, tables, emittedAt)
  expect(await listIds(snapshot, 'reviews')).toEqual([2])
  expect(await listIds(snapshot, '_history_reviews')).toEqual([1])
  expect(await listIds(snapshot, 'review_contents')).toEqual([])
  expect(await listIds(snapshot, 'visits')).toEqual([1])
  const failed = (await verifySnapshot(snapshot)).filter(({ outcome }) => outcome === 'failed')
  // The refresh has not ended, and its counts are right.
  expect(failed.map(({ name }) => name)).toEqual([
    ...['loads are complete', 'cursors are within their loads', 'states exist'],
  ])
  snapshot.db.close()
})

describe('rows of older generations', () => {
  const things = { name: 'things', columns: [], history: false }
  const fill = async (old: number) => {
    const snapshot = await openMemorySnapshot()
    await snapshot.db.run(
      `CREATE TABLE things AS
       SELECT (n >= ${old})::BIGINT AS _airbyte_generation_id, uuid() AS _airbyte_raw_id
       FROM range(${old + 2}) AS r(n)`,
    )
    return snapshot
  }

  it.each([
    [0, false],
    [20_000, false],
    [20_001, true],
  ])('are too many for one transaction from 20,001 on: %i', async (old, isMany) => {
    const { db } = await fill(old)
    expect(await hasManyOldRows(db, things, 1)).toBe(isMany)
    db.close()
  })

  it.each([
    ['none, where there are none', 0, true, 0],
    ['one for the last of them', 3, true, 1],
    ['one for each 20,000 of them', 40_001, true, 3],
    ['no second one, where the first has removed nothing', 3, false, 1],
  ])('take %s', async (_, old, removes, expected) => {
    const { db } = await fill(old)
    const works: string[] = []
    const watched: Database = {
      ...db,
      withMemory: async (name, work, ...rest) => {
        works.push(name)
        return removes ? db.withMemory(name, work, ...rest) : (undefined as never)
      },
    }
    await removeOldRowsInSteps(watched, things, 1, [], emittedAt)
    expect(works).toEqual(Array(expected).fill('removing the old rows of things'))
    expect(await db.scalar('SELECT count(*)::INTEGER FROM things')).toBe(removes ? 2 : old + 2)
    db.close()
  })
})
