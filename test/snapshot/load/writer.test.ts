import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Message } from '../../../connector/cdk/message'
import { readReceivedRange } from '../../../connector/snapshot/load/earlier-runs'
import { createSnapshotWriter } from '../../../connector/snapshot/load/writer'
import type { Snapshot } from '../../../connector/snapshot/store/database'
import { verifySnapshot } from '../../../connector/snapshot/verify/verify'
import { draws } from '../../support/draws'
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
        `{"id":9007199254740993,"modifiedTime":"${timeAtMinute(1)}","rating":4.5,` +
          '"location":{"id":9007199254740995,"new":[1]}}',
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
      draws(300),
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

  it('have U+FFFD for half a surrogate pair, and for nothing else', async () => {
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

  it('have null for a fraction in an integer column', async () => {
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

describe('numbers and cursors', () => {
  const listItems = async (type: string, cursor: string, ...rows: ReadonlyArray<string>) => {
    const snapshot = await openMemorySnapshot()
    const info = createStreamInfo('items', { id: { type: 'integer' }, value: { type } }, ['id'], cursor)
    await writeMessages(snapshot, streamMessages(info, ...rows))
    return (await snapshot.db.query('SELECT value, _airbyte_meta::VARCHAR AS meta FROM items')).map(
      ({ value, meta }) => ({
        value,
        meta: String(meta),
      }),
    )
  }

  it.each<[string, string, unknown]>([
    ['integer', '1e-7', null],
    ['integer', '1.5', null],
    ['integer', '25e-1', null],
    ['integer', '1E3', 1000],
    ['integer', '5.0', 5],
    ['number', '1e400', null],
    ['number', '-1E+400', null],
    ['number', '1e-7', 1e-7],
    ['integer', 'true', null],
    ['number', 'false', null],
    ['boolean', '2', null],
    ['boolean', '1.5', null],
    ['boolean', '1', true],
    ['boolean', '"true"', true],
  ])('%s %s is kept, or becomes null and is named', async (type, text, value) => {
    const [row] = await listItems(type, 'id', `{"id":1,"value":${text}}`)
    expect(row?.value).toEqual(value)
    expect(row?.meta.includes('DESTINATION_TYPECAST_ERROR')).toBe(value === null)
  })
})

it('a state that comes after its stream has ended is saved, though a commit of it has begun', async () => {
  const snapshot = await openMemorySnapshot()
  let time = 0
  const writer = await createSnapshotWriter(snapshot, { now: () => time })
  for (const message of streamMessages(reviewsInfo(), reviewJson(1, 1))) await writer.write(message)
  for (const cursor of [2, 3]) {
    time += 60_000
    await writer.write(checkpointMessage('reviews', { cursor }))
  }
  expect(await writer.finish()).toMatchObject([{ status: 'complete', records: 1 }])
  expect(await snapshot.db.scalar(`SELECT state->>'$.cursor' FROM _state`)).toBe('3')
  snapshot.db.close()
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

  it('count whatever comes first: their review, an older page of it, or the same messages again', async () => {
    const snapshot = await openMemorySnapshot()
    const capture = startAll(
      recordsMessage('deleted_reviews', reviewJson(1, 5), reviewJson(2, 5)),
      recordsMessage('reviews', reviewJson(1, 1), reviewJson(2, 6)),
      recordsMessage('review_contents', contentJson(1, 1, 7), contentJson(2, 6, 8)),
    )
    for (const messages of [capture, capture, startAll(recordsMessage('reviews', reviewJson(1, 4)))]) {
      await writeMessages(snapshot, messages)
      expect(await listRows(snapshot, 'reviews')).toEqual(['2'])
      expect(await listRows(snapshot, 'review_contents')).toEqual(['8'])
    }
    await writeMessages(snapshot, startAll(recordsMessage('reviews', reviewJson(1, 6))))
    expect(await listRows(snapshot, 'reviews')).toEqual(['1', '2'])
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

  it('find their reviews whatever other columns are named', async () => {
    const snapshot = await openMemorySnapshot()
    const names = ['rowid', 'row', 'time', 'since', 'review', '_gone', 't']
    const withNames = (info: ReturnType<typeof reviewsInfo>) => ({
      ...info,
      schema: {
        ...info.schema,
        properties: {
          ...(info.schema.properties as object),
          ...Object.fromEntries(names.map((name) => [name, { type: 'integer' }])),
        },
      },
    })
    const row = (json: string) =>
      JSON.stringify({ ...JSON.parse(json), ...Object.fromEntries(names.map((n) => [n, 0])) })
    for (let i = 0; i < 2; i += 1)
      await writeMessages(
        snapshot,
        [
          startedMessage(withNames(reviewsInfo())),
          startedMessage(withNames(deletedReviewsInfo())),
          startedMessage(withNames(reviewContentsInfo())),
          recordsMessage('reviews', row(reviewJson(1, 1)), row(reviewJson(2, 1)), row(reviewJson(2, 3))),
          recordsMessage(
            'review_contents',
            row(contentJson(1, 1, 7)),
            row(contentJson(2, 1, 8)),
            row(contentJson(2, 3, 9)),
          ),
          recordsMessage('deleted_reviews', row(reviewJson(1, 2))),
        ],
        { history: true },
      )
    expect(await listRows(snapshot, 'reviews', 'id, "rowid"')).toEqual(['2 0'])
    expect(await listRows(snapshot, 'review_contents')).toEqual(['9'])
    expect((await verifySnapshot(snapshot)).filter(({ ok, name }) => !ok && !/loads|states/.test(name))).toEqual([])
  })

  it.each(['_ab_cdc_deleted_at', '_sdc_deleted_at'])(
    'can come as tombstones in %s that no catalog declares, and are remembered',
    async (mark) => {
      const snapshot = await openMemorySnapshot()
      const info = createStreamInfo(
        'reviews',
        { ...reviewProperties, unknown_attributes: { type: 'object' } },
        ['id'],
        'modifiedTime',
      )
      const alive = `{"id":1,"modifiedTime":"${timeAtMinute(1)}","${mark}":null}`
      const dead = `{"id":1,"modifiedTime":"${timeAtMinute(3)}","${mark}":"${timeAtMinute(3)}"}`
      for (const rows of [[alive, dead], [alive, dead], [dead], [alive], [reviewJson(1, 2)]]) {
        await writeMessages(snapshot, [
          startedMessage(reviewContentsInfo()),
          ...streamMessages(info, ...rows),
          recordsMessage('review_contents', contentJson(1, 2, 7)),
        ])
        expect(await listRows(snapshot, 'reviews')).toEqual([])
        expect(await listRows(snapshot, 'review_contents')).toEqual([])
      }
      await writeMessages(snapshot, streamMessages(info, reviewJson(1, 4)))
      expect(await listRows(snapshot, 'reviews')).toEqual(['1'])
    },
  )
})

describe('children', () => {
  it('of an older version of their review go, whether a child or the review brings the newer one', async () => {
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

describe('the states of a page', () => {
  it('are committed together, so that none of its streams keeps the others back', async () => {
    const snapshot = await openMemorySnapshot()
    let now = 0
    const writer = await createSnapshotWriter(snapshot, { now: () => now })
    const saved: string[] = []
    const page: ReadonlyArray<Message> = [
      recordsMessage('reviews', reviewJson(1, 1)),
      checkpointMessage('reviews', { page: 1 }),
      checkpointMessage('review_contents', { page: 1 }),
    ]
    const start = [startedMessage(reviewsInfo()), startedMessage(reviewContentsInfo())]
    for (const message of [...start, ...page, recordsMessage('reviews', reviewJson(2, 2))]) {
      await writer.write(message)
      await snapshot.db.waitForWork()
      now += 10_000
      saved.push(
        (await snapshot.db.query('SELECT stream FROM _state ORDER BY stream')).map(({ stream }) => stream).join(),
      )
    }
    expect(saved).toEqual(['', '', '', '', '', 'review_contents,reviews'])
  })

  it('are committed, those of one page together, while pages bring no rows', async () => {
    const snapshot = await openMemorySnapshot()
    let now = 0
    const writer = await createSnapshotWriter(snapshot, { now: () => now })
    const saved = new Set<string>()
    const page = (n: number): ReadonlyArray<Message> =>
      ['reviews', 'review_contents'].map((stream) => checkpointMessage(stream, { page: n }))
    const start = [startedMessage(reviewsInfo()), startedMessage(reviewContentsInfo())]
    for (const message of [...start, ...[1, 2, 3, 4, 5, 6].flatMap(page)]) {
      await writer.write(message)
      await snapshot.db.waitForWork()
      now += 1700
      const states = await snapshot.db.query("SELECT state->>'page' AS page FROM _state ORDER BY stream")
      saved.add(states.map((row) => row.page).join())
    }
    expect([...saved]).toEqual(['', '2,2', '4,4'])
  })
})

describe('the metadata tables', () => {
  it('say which times the loads of a stream have received since a time', async () => {
    const snapshot = await openMemorySnapshot()
    const hour = 3_600_000
    for (const [n, minutes] of [
      [1, 2],
      [5, 7],
      [4, 6],
    ].entries())
      await writeMessages(
        snapshot,
        streamMessages(reviewsInfo(), ...minutes.map((minute) => reviewJson(minute, minute))),
        {
          now: () => n * hour,
        },
      )
    const read = readReceivedRange(snapshot)
    expect(await read('reviews', 0)).toEqual({ from: timeAtMinute(1), to: timeAtMinute(7) })
    expect(await read('reviews', hour)).toEqual({ from: timeAtMinute(4), to: timeAtMinute(7) })
    expect(await read('reviews', 9 * hour)).toBeUndefined()
    expect(await read('other', 0)).toBeUndefined()
  })

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
