import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Message } from '../../connector/cdk/message'
import type { Snapshot } from '../../connector/snapshot/snapshot'
import {
  content,
  contents,
  deleted,
  info,
  instant,
  open,
  review,
  reviewShape,
  reviews,
  rows,
  save,
  started,
  state,
  time,
  whole,
} from './made-up-run'

const ids = async ({ db }: Snapshot, table: string, columns = 'id') =>
  (await db.query(`SELECT ${columns} FROM ${table} ORDER BY ALL`)).map((row) => Object.values(row).join(' '))

describe('rows', () => {
  it('keep integers beyond 2^53, at the top and inside, and attributes nobody declared inside', async () => {
    const snapshot = await open()
    await save(
      snapshot,
      whole(
        reviews(),
        `{"id":9007199254740993,"modifiedTime":"${time(1)}","rating":4.5,"location":{"id":9007199254740995,"new":[1]}}`,
      ),
    )
    expect(await snapshot.db.query('SELECT id, rating, location, modifiedTime FROM reviews')).toEqual([
      {
        id: 9007199254740993n,
        rating: 4.5,
        location: '{"id":9007199254740995,"new":[1]}',
        modifiedTime: new Date(time(1)),
      },
    ])
  })

  it('name a value that does not fit its column, and keep the rest', async () => {
    const snapshot = await open()
    await save(snapshot, whole(reviews(), `{"id":1,"modifiedTime":"yesterday","rating":"high","text":null}`))
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

  it('hold any text and any object as they came', async () => {
    const snapshot = await open()
    const stream = info(
      'things',
      { id: { type: 'integer' }, text: { type: 'string' }, value: { type: 'object' } },
      ['id'],
      'id',
    )
    const things = fc.sample(
      fc.record({ text: fc.string({ unit: 'grapheme' }), value: fc.dictionary(fc.string(), fc.jsonValue()) }),
      { seed: 20261121, numRuns: 300 },
    )
    await save(snapshot, whole(stream, ...things.map((thing, id) => JSON.stringify({ id, ...thing }))))
    const held = await snapshot.db.query('SELECT text, value FROM things ORDER BY id')
    expect(held.map(({ text, value }) => ({ text, value: JSON.parse(String(value)) }))).toEqual(
      JSON.parse(JSON.stringify(things)),
    )
  })

  it('take half a surrogate pair, and only that, for U+FFFD', async () => {
    const snapshot = await open()
    const texts = ['\\ud83d\\ude00', 'a\\ud83d', '\\uDE00b', '\\\\ud83d', '\\ud83d\\ud83d\\ude00', '\\u00e9']
    await save(
      snapshot,
      whole(reviews(), ...texts.map((text, i) => `{"id":${i},"modifiedTime":"${time(1)}","text":"${text}"}`)),
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

  it('that are not JSON end the run, which says which one it was and quotes nothing', async () => {
    const snapshot = await open()
    const run = save(snapshot, whole(reviews(), review(1, 1), review(2, 1), '{"id":3,"text":"secret\t"}'))
    await expect(run).rejects.toThrow(/^Record 3 of the stream reviews is not JSON: it breaks at line 1, column 23\.$/)
  })

  it('take no fraction for an integer', async () => {
    const snapshot = await open()
    await save(
      snapshot,
      whole(deleted(), `{"id":5.0,"modifiedTime":"${time(1)}"}`, `{"id":6.5,"modifiedTime":"${time(1)}"}`),
    )
    expect(await ids(snapshot, 'deleted_reviews', 'coalesce(id, -1)')).toEqual(['-1', '5'])
  })
})

describe('merging', () => {
  it('keeps the newest version of a key, and the later of equals', async () => {
    const snapshot = await open()
    await save(snapshot, whole(reviews(), review(1, 5, 'b'), review(1, 3, 'a'), review(2, 1, 'x'), review(2, 1, 'y')))
    expect(await ids(snapshot, 'reviews', 'id, text')).toEqual(['1 b', '2 y'])
    await save(snapshot, whole(reviews(), review(1, 4, 'older'), review(2, 1, 'z'), review(3, 1, 'new')))
    expect(await ids(snapshot, 'reviews', 'id, text')).toEqual(['1 b', '2 z', '3 new'])
  })

  it('goes by every part of a key', async () => {
    const snapshot = await open()
    await save(snapshot, whole(contents(), content(1, 1, 1), content(1, 1, 2), content(2, 1, 1), content(1, 1, 1)))
    expect(await ids(snapshot, 'review_contents', 'reviewId, id')).toEqual(['1 1', '1 2', '2 1'])
  })

  it('keeps every record where the catalog asks to append', async () => {
    const snapshot = await open()
    await save(snapshot, whole(reviews(), review(1, 1), review(1, 1)), { wishes: { reviews: { mode: 'append' } } })
    expect(await ids(snapshot, 'reviews')).toEqual(['1', '1'])
  })
})

describe('a full refresh', () => {
  it('replaces the rows of before once it has finished, not earlier', async () => {
    const snapshot = await open()
    await save(snapshot, whole(reviews(), review(1, 1), review(2, 1)))
    await save(snapshot, [started(reviews('full_refresh')), rows('reviews', review(2, 0, 'again'), review(3, 1))])
    expect(await ids(snapshot, 'reviews')).toEqual(['1', '2', '3'])
    await save(snapshot, whole(reviews('full_refresh'), review(2, 0, 'again'), review(3, 1)))
    expect(await ids(snapshot, 'reviews', "id, coalesce(text, '')")).toEqual(['2 again', '3 '])
  })

  it('that was cut off goes on from its state without losing its first part', async () => {
    const snapshot = await open()
    await save(snapshot, whole(reviews(), review(1, 1)))
    await save(snapshot, [
      started(reviews('full_refresh')),
      rows('reviews', review(2, 1)),
      state('reviews', { scan: 1 }, 1),
    ])
    await save(snapshot, whole(reviews('full_refresh'), review(3, 1)))
    expect(await ids(snapshot, 'reviews')).toEqual(['2', '3'])
  })

  it('obeys the generations of the catalog', async () => {
    const snapshot = await open()
    const wish = (generation: number, minimum: number) =>
      ({ wishes: { reviews: { mode: 'overwrite', generation, minimum } } }) as const
    await save(snapshot, whole(reviews('full_refresh'), review(1, 1)), wish(4, 4))
    await save(snapshot, whole(reviews('full_refresh'), review(2, 1)), wish(4, 4))
    expect(await ids(snapshot, 'reviews')).toEqual(['1', '2'])
    await save(snapshot, whole(reviews('full_refresh'), review(3, 1)), wish(5, 5))
    expect(await ids(snapshot, 'reviews')).toEqual(['3'])
    await expect(save(snapshot, whole(reviews('full_refresh')), wish(4, 4))).rejects.toThrow(/at 5 by now/)
    await save(snapshot, whole(reviews(), review(3, 9, 'newer')), {
      wishes: { reviews: { generation: 4, minimum: 0 } },
    })
    expect(await snapshot.db.scalar('SELECT text FROM reviews')).toBe('newer')
  })
})

describe('deletions', () => {
  const both = (...messages: Message[]) => [started(deleted()), started(reviews()), started(contents()), ...messages]

  it('remove the review and its children, but no version newer than they', async () => {
    const snapshot = await open()
    await save(
      snapshot,
      both(
        rows('reviews', review(1, 1), review(2, 9)),
        rows('review_contents', content(1, 1, 7), content(2, 9, 8)),
        rows('deleted_reviews', review(1, 5), review(2, 5)),
      ),
    )
    expect(await ids(snapshot, 'reviews')).toEqual(['2'])
    expect(await ids(snapshot, 'review_contents')).toEqual(['8'])
    expect(await ids(snapshot, 'deleted_reviews')).toEqual(['1', '2'])
  })

  it('leave a review alive that is sent after them, and are not applied again', async () => {
    const snapshot = await open()
    await save(
      snapshot,
      both(rows('reviews', review(1, 1)), rows('deleted_reviews', review(1, 5)), rows('reviews', review(1, 1))),
    )
    expect(await ids(snapshot, 'reviews')).toEqual(['1'])
    await save(snapshot, whole(deleted(), review(1, 5)))
    expect(await ids(snapshot, 'reviews')).toEqual(['1'])
    await save(snapshot, whole(deleted(), review(1, 6)))
    expect(await ids(snapshot, 'reviews')).toEqual([])
  })

  it('come as tombstones too', async () => {
    const snapshot = await open()
    const stream = info('reviews', { ...reviewShape, _ab_cdc_deleted_at: instant }, ['id'], 'modifiedTime')
    await save(snapshot, [
      started(contents()),
      rows('review_contents', content(1, 1, 7)),
      ...whole(stream, review(1, 1), review(2, 1)),
    ])
    await save(snapshot, whole(stream, `{"id":1,"modifiedTime":"${time(3)}","_ab_cdc_deleted_at":"${time(3)}"}`))
    expect(await ids(snapshot, 'reviews')).toEqual(['2'])
    expect(await ids(snapshot, 'review_contents')).toEqual([])
  })
})

describe('children', () => {
  it('of an older version of their review go, with the review or without', async () => {
    const snapshot = await open()
    await save(snapshot, [
      started(contents()),
      rows('review_contents', content(1, 1, 1), content(1, 1, 2), content(2, 1, 3)),
    ])
    await save(snapshot, [started(contents()), rows('review_contents', content(1, 2, 1))])
    expect(await ids(snapshot, 'review_contents', 'reviewId, id')).toEqual(['1 1', '2 3'])
    await save(snapshot, [started(reviews()), rows('reviews', review(2, 5))])
    expect(await ids(snapshot, 'review_contents', 'reviewId, id')).toEqual(['1 1'])
    await save(snapshot, [started(contents()), rows('review_contents', content(2, 1, 3), content(2, 5, 4))])
    expect(await ids(snapshot, 'review_contents', 'reviewId, id')).toEqual(['1 1', '2 4'])
  })
})

describe('books', () => {
  it('say how each load went', async () => {
    const snapshot = await open()
    const saved = await save(snapshot, [
      ...whole(reviews(), review(1, 1), review(1, 2)),
      started(deleted()),
      rows('deleted_reviews', review(9, 1)),
    ])
    expect(saved.map(({ stream, status, records }) => [stream, status, records])).toEqual([
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
        cursor_from: time(1),
        cursor_to: time(2),
      },
      {
        run: 1,
        stream: 'deleted_reviews',
        status: 'incomplete',
        records: 1,
        source_records: null,
        rows: 1,
        cursor_from: time(1),
        cursor_to: time(1),
      },
    ])
    expect(await snapshot.db.query('SELECT stream, state FROM _state')).toEqual([
      { stream: 'reviews', state: '{"cursor":2}' },
    ])
  })
})
