import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Message } from '../../../connector/cdk/message'
import type { Snapshot } from '../../../connector/snapshot/store/database'
import {
  checkpointMessage,
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

const listRows = async ({ db }: Snapshot, table: string, columns = 'id') =>
  (await db.query(`SELECT ${columns} FROM ${table} ORDER BY ALL`)).map((row) => Object.values(row).join(' '))

describe('rows', () => {
  it('keep integers beyond 2^53 and nested attributes that are not declared', async () => {
    const snapshot = await openMemorySnapshot()
    await writeMessages(
      snapshot,
      streamMessages(
        reviewsInfo(),
        `{"id":9007199254740993,"modifiedTime":"${timeAtMinute(1)}","rating":4.5,"location":{"id":9007199254740995,"new":[1]}}`,
      ),
    )
    expect(await snapshot.db.query('SELECT id, rating, location, modifiedTime FROM reviews')).toEqual([
      {
        id: 9007199254740993n,
        rating: 4.5,
        location: '{"id":9007199254740995,"new":[1]}',
        modifiedTime: new Date(timeAtMinute(1)),
      },
    ])
  })

  it('name a value that does not fit its column in their metadata, and keep the other values', async () => {
    const snapshot = await openMemorySnapshot()
    await writeMessages(
      snapshot,
      streamMessages(reviewsInfo(), `{"id":1,"modifiedTime":"yesterday","rating":"high","text":null}`),
    )
    const [row] = await snapshot.db.query('SELECT id, modifiedTime, rating, _airbyte_meta AS meta FROM reviews')
    expect(row).toMatchObject({ id: 1, modifiedTime: null, rating: null })
    expect(JSON.parse(String(row?.meta))).toEqual({
      changes: ['modifiedTime', 'rating'].map((field) => ({
        field,
        change: 'NULLED',
        reason: 'DESTINATION_TYPECAST_ERROR',
      })),
    })
  })

  it('keep every text and every object unchanged', async () => {
    const snapshot = await openMemorySnapshot()
    const stream = createStreamInfo(
      'things',
      { id: { type: 'integer' }, text: { type: 'string' }, value: { type: 'object' } },
      ['id'],
      'id',
    )
    const samples = fc.sample(
      fc.record({ text: fc.string({ unit: 'grapheme' }), value: fc.dictionary(fc.string(), fc.jsonValue()) }),
      { seed: 20261121, numRuns: 300 },
    )
    await writeMessages(
      snapshot,
      streamMessages(stream, ...samples.map((sample, id) => JSON.stringify({ id, ...sample }))),
    )
    const rows = await snapshot.db.query('SELECT text, value FROM things ORDER BY id')
    expect(rows.map(({ text, value }) => ({ text, value: JSON.parse(String(value)) }))).toEqual(
      JSON.parse(JSON.stringify(samples)),
    )
  })

  it('have U+FFFD in place of half a surrogate pair, and of nothing else', async () => {
    const snapshot = await openMemorySnapshot()
    const texts = ['\\ud83d\\ude00', 'a\\ud83d', '\\uDE00b', '\\\\ud83d', '\\ud83d\\ud83d\\ude00', '\\u00e9']
    await writeMessages(
      snapshot,
      streamMessages(
        reviewsInfo(),
        ...texts.map((text, i) => `{"id":${i},"modifiedTime":"${timeAtMinute(1)}","text":"${text}"}`),
      ),
    )
    expect((await snapshot.db.query('SELECT text FROM reviews ORDER BY id')).map(({ text }) => text)).toEqual([
      '😀',
      'a\ufffd',
      '\ufffdb',
      '\\ud83d',
      '\ufffd😀',
      'é',
    ])
  })

  it('that are not JSON end the run with the number of the record and without its text', async () => {
    const snapshot = await openMemorySnapshot()
    const run = writeMessages(
      snapshot,
      streamMessages(reviewsInfo(), reviewJson(1, 1), reviewJson(2, 1), '{"id":3,"text":"secret\t"}'),
    )
    await expect(run).rejects.toThrow(/^Record 3 of the stream reviews is not JSON: it breaks at line 1, column 23\.$/)
  })

  it('have null in place of a fraction in an integer column', async () => {
    const snapshot = await openMemorySnapshot()
    await writeMessages(
      snapshot,
      streamMessages(
        deletedReviewsInfo(),
        `{"id":5.0,"modifiedTime":"${timeAtMinute(1)}"}`,
        `{"id":6.5,"modifiedTime":"${timeAtMinute(1)}"}`,
      ),
    )
    expect(await listRows(snapshot, 'deleted_reviews', 'coalesce(id, -1)')).toEqual(['-1', '5'])
  })
})

describe('merging', () => {
  it('keeps the newest version of a key, and the last one of equal versions', async () => {
    const snapshot = await openMemorySnapshot()
    await writeMessages(
      snapshot,
      streamMessages(
        reviewsInfo(),
        reviewJson(1, 5, 'b'),
        reviewJson(1, 3, 'a'),
        reviewJson(2, 1, 'x'),
        reviewJson(2, 1, 'y'),
      ),
    )
    expect(await listRows(snapshot, 'reviews', 'id, text')).toEqual(['1 b', '2 y'])
    await writeMessages(
      snapshot,
      streamMessages(reviewsInfo(), reviewJson(1, 4, 'older'), reviewJson(2, 1, 'z'), reviewJson(3, 1, 'new')),
    )
    expect(await listRows(snapshot, 'reviews', 'id, text')).toEqual(['1 b', '2 z', '3 new'])
  })

  it('compares every part of a key', async () => {
    const snapshot = await openMemorySnapshot()
    await writeMessages(
      snapshot,
      streamMessages(
        reviewContentsInfo(),
        contentJson(1, 1, 1),
        contentJson(1, 1, 2),
        contentJson(2, 1, 1),
        contentJson(1, 1, 1),
      ),
    )
    expect(await listRows(snapshot, 'review_contents', 'reviewId, id')).toEqual(['1 1', '1 2', '2 1'])
  })

  it('keeps every record if the catalog asks to append', async () => {
    const snapshot = await openMemorySnapshot()
    await writeMessages(snapshot, streamMessages(reviewsInfo(), reviewJson(1, 1), reviewJson(1, 1)), {
      loadOptions: { reviews: { mode: 'append' } },
    })
    expect(await listRows(snapshot, 'reviews')).toEqual(['1', '1'])
  })
})

describe('a full refresh', () => {
  it('replaces the old rows once it is complete, not earlier', async () => {
    const snapshot = await openMemorySnapshot()
    await writeMessages(snapshot, streamMessages(reviewsInfo(), reviewJson(1, 1), reviewJson(2, 1)))
    await writeMessages(snapshot, [
      startedMessage(reviewsInfo('full_refresh')),
      recordsMessage('reviews', reviewJson(2, 0, 'again'), reviewJson(3, 1)),
    ])
    expect(await listRows(snapshot, 'reviews')).toEqual(['1', '2', '3'])
    await writeMessages(
      snapshot,
      streamMessages(reviewsInfo('full_refresh'), reviewJson(2, 0, 'again'), reviewJson(3, 1)),
    )
    expect(await listRows(snapshot, 'reviews', "id, coalesce(text, '')")).toEqual(['2 again', '3 '])
  })

  it('whose source may have been cut short is incomplete: the old rows stay, a shared state is kept', async () => {
    const snapshot = await openMemorySnapshot()
    await writeMessages(snapshot, streamMessages(reviewsInfo(), reviewJson(1, 1)))
    const outcomes = await writeMessages(snapshot, [
      startedMessage(reviewsInfo('full_refresh')),
      recordsMessage('reviews', reviewJson(2, 1)),
      { _tag: 'SharedCheckpoint', states: [{ stream: 'reviews', state: { scan: 1 } }] },
      { _tag: 'Finished', stream: 'reviews', extent: 'unknown' },
    ])
    expect(outcomes).toMatchObject([{ stream: 'reviews', status: 'incomplete', records: 1 }])
    expect(await listRows(snapshot, 'reviews')).toEqual(['1', '2'])
    await writeMessages(snapshot, streamMessages(reviewsInfo('full_refresh'), reviewJson(3, 1)))
    expect(await listRows(snapshot, 'reviews')).toEqual(['2', '3'])
  })

  it('that was interrupted continues from its state without losing its first part', async () => {
    const snapshot = await openMemorySnapshot()
    await writeMessages(snapshot, streamMessages(reviewsInfo(), reviewJson(1, 1)))
    await writeMessages(snapshot, [
      startedMessage(reviewsInfo('full_refresh')),
      recordsMessage('reviews', reviewJson(2, 1)),
      checkpointMessage('reviews', { scan: 1 }, 1),
    ])
    await writeMessages(snapshot, streamMessages(reviewsInfo('full_refresh'), reviewJson(3, 1)))
    expect(await listRows(snapshot, 'reviews')).toEqual(['2', '3'])
  })

  it('obeys the generations of the catalog', async () => {
    const snapshot = await openMemorySnapshot()
    const overwrite = (generation: number, minimum: number) =>
      ({ loadOptions: { reviews: { mode: 'overwrite', generation, minimum } } }) as const
    await writeMessages(snapshot, streamMessages(reviewsInfo('full_refresh'), reviewJson(1, 1)), overwrite(4, 4))
    await writeMessages(snapshot, streamMessages(reviewsInfo('full_refresh'), reviewJson(2, 1)), overwrite(4, 4))
    expect(await listRows(snapshot, 'reviews')).toEqual(['1', '2'])
    await writeMessages(snapshot, streamMessages(reviewsInfo('full_refresh'), reviewJson(3, 1)), overwrite(5, 5))
    expect(await listRows(snapshot, 'reviews')).toEqual(['3'])
    await expect(writeMessages(snapshot, streamMessages(reviewsInfo('full_refresh')), overwrite(4, 4))).rejects.toThrow(
      /already has generation 5/,
    )
    await writeMessages(snapshot, streamMessages(reviewsInfo(), reviewJson(3, 9, 'newer')), {
      loadOptions: { reviews: { generation: 4, minimum: 0 } },
    })
    expect(await snapshot.db.scalar('SELECT text FROM reviews')).toBe('newer')
  })
})

describe('deletions', () => {
  const startAll = (...messages: Message[]) => [
    startedMessage(deletedReviewsInfo()),
    startedMessage(reviewsInfo()),
    startedMessage(reviewContentsInfo()),
    ...messages,
  ]

  it('remove the review and its children, but not a version that is newer than they are', async () => {
    const snapshot = await openMemorySnapshot()
    await writeMessages(
      snapshot,
      startAll(
        recordsMessage('reviews', reviewJson(1, 1), reviewJson(2, 9)),
        recordsMessage('review_contents', contentJson(1, 1, 7), contentJson(2, 9, 8)),
        recordsMessage('deleted_reviews', reviewJson(1, 5), reviewJson(2, 5)),
      ),
    )
    expect(await listRows(snapshot, 'reviews')).toEqual(['2'])
    expect(await listRows(snapshot, 'review_contents')).toEqual(['8'])
    expect(await listRows(snapshot, 'deleted_reviews')).toEqual(['1', '2'])
  })

  it('keep a review that is sent after them, and are not applied again', async () => {
    const snapshot = await openMemorySnapshot()
    await writeMessages(
      snapshot,
      startAll(
        recordsMessage('reviews', reviewJson(1, 1)),
        recordsMessage('deleted_reviews', reviewJson(1, 5)),
        recordsMessage('reviews', reviewJson(1, 1)),
      ),
    )
    expect(await listRows(snapshot, 'reviews')).toEqual(['1'])
    await writeMessages(snapshot, streamMessages(deletedReviewsInfo(), reviewJson(1, 5)))
    expect(await listRows(snapshot, 'reviews')).toEqual(['1'])
    await writeMessages(snapshot, streamMessages(deletedReviewsInfo(), reviewJson(1, 6)))
    expect(await listRows(snapshot, 'reviews')).toEqual([])
  })

  it('can come as tombstones', async () => {
    const snapshot = await openMemorySnapshot()
    const stream = createStreamInfo(
      'reviews',
      { ...reviewProperties, _ab_cdc_deleted_at: instantSchema },
      ['id'],
      'modifiedTime',
    )
    await writeMessages(snapshot, [
      startedMessage(reviewContentsInfo()),
      recordsMessage('review_contents', contentJson(1, 1, 7)),
      ...streamMessages(stream, reviewJson(1, 1), reviewJson(2, 1)),
    ])
    await writeMessages(
      snapshot,
      streamMessages(stream, `{"id":1,"modifiedTime":"${timeAtMinute(3)}","_ab_cdc_deleted_at":"${timeAtMinute(3)}"}`),
    )
    expect(await listRows(snapshot, 'reviews')).toEqual(['2'])
    expect(await listRows(snapshot, 'review_contents')).toEqual([])
  })

  const tombstone = (id: number, minute: number) =>
    `{"id":${id},"modifiedTime":"${timeAtMinute(minute)}","_ab_cdc_deleted_at":"${timeAtMinute(minute)}"}`
  const withTombstones = createStreamInfo(
    'reviews',
    { ...reviewProperties, _ab_cdc_deleted_at: instantSchema },
    ['id'],
    'modifiedTime',
  )

  it.each<[string, ReadonlyArray<Message>]>([
    [
      'a deletion after it',
      [recordsMessage('reviews', reviewJson(1, 5)), recordsMessage('deleted_reviews', reviewJson(1, 5))],
    ],
    [
      'a deletion before it',
      [recordsMessage('deleted_reviews', reviewJson(1, 5)), recordsMessage('reviews', reviewJson(1, 5))],
    ],
    ['a tombstone after it', [recordsMessage('reviews', reviewJson(1, 5)), recordsMessage('reviews', tombstone(1, 5))]],
    [
      'a tombstone before it',
      [recordsMessage('reviews', tombstone(1, 5)), recordsMessage('reviews', reviewJson(1, 5))],
    ],
  ])('of the same millisecond leave the review, as it was restored: %s', async (_, messages) => {
    for (const isOneBatch of [true, false]) {
      const snapshot = await openMemorySnapshot()
      await writeMessages(snapshot, [
        startedMessage(withTombstones),
        startedMessage(deletedReviewsInfo()),
        startedMessage(reviewContentsInfo()),
        recordsMessage('reviews', reviewJson(1, 1), reviewJson(2, 1)),
        recordsMessage('review_contents', contentJson(1, 5, 7), contentJson(2, 1, 8)),
        ...messages.flatMap((message): Message[] =>
          isOneBatch ? [message] : [{ _tag: 'Waiting', stream: 'reviews', until: 0 }, message],
        ),
      ])
      expect(await listRows(snapshot, 'reviews')).toEqual(['1', '2'])
      expect((await snapshot.db.query('FROM reviews WHERE _ab_cdc_deleted_at IS NOT NULL')).length).toBe(0)
      expect(await listRows(snapshot, 'review_contents')).toEqual(['7', '8'])
    }
  })
})

describe('children', () => {
  it('of an older version of their review are removed, whether a child or the review brings the newer one', async () => {
    const snapshot = await openMemorySnapshot()
    await writeMessages(snapshot, [
      startedMessage(reviewContentsInfo()),
      recordsMessage('review_contents', contentJson(1, 1, 1), contentJson(1, 1, 2), contentJson(2, 1, 3)),
    ])
    await writeMessages(snapshot, [
      startedMessage(reviewContentsInfo()),
      recordsMessage('review_contents', contentJson(1, 2, 1)),
    ])
    expect(await listRows(snapshot, 'review_contents', 'reviewId, id')).toEqual(['1 1', '2 3'])
    await writeMessages(snapshot, [startedMessage(reviewsInfo()), recordsMessage('reviews', reviewJson(2, 5))])
    expect(await listRows(snapshot, 'review_contents', 'reviewId, id')).toEqual(['1 1'])
    await writeMessages(snapshot, [
      startedMessage(reviewContentsInfo()),
      recordsMessage('review_contents', contentJson(2, 1, 3), contentJson(2, 5, 4)),
    ])
    expect(await listRows(snapshot, 'review_contents', 'reviewId, id')).toEqual(['1 1', '2 4'])
  })
})

describe('the metadata tables', () => {
  it('have the result of each load', async () => {
    const snapshot = await openMemorySnapshot()
    const summaries = await writeMessages(snapshot, [
      ...streamMessages(reviewsInfo(), reviewJson(1, 1), reviewJson(1, 2)),
      startedMessage(deletedReviewsInfo()),
      recordsMessage('deleted_reviews', reviewJson(9, 1)),
    ])
    expect(summaries.map(({ stream, status, records }) => [stream, status, records])).toEqual([
      ['reviews', 'complete', 2],
      ['deleted_reviews', 'incomplete', 1],
    ])
    expect(
      await snapshot.db.query(
        'SELECT run, stream, status, records, source_records, rows, cursor_from, cursor_to FROM _loads ORDER BY load',
      ),
    ).toEqual([
      {
        run: 1,
        stream: 'reviews',
        status: 'complete',
        records: 2,
        source_records: 2,
        rows: 1,
        cursor_from: timeAtMinute(1),
        cursor_to: timeAtMinute(2),
      },
      {
        run: 1,
        stream: 'deleted_reviews',
        status: 'incomplete',
        records: 1,
        source_records: null,
        rows: 1,
        cursor_from: timeAtMinute(1),
        cursor_to: timeAtMinute(1),
      },
    ])
    expect(await snapshot.db.query('SELECT stream, state FROM _state')).toEqual([
      { stream: 'reviews', state: '{"cursor":2}' },
    ])
  })
})
