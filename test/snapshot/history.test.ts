import { describe, expect, it } from 'vitest'
import type { Snapshot } from '../../connector/snapshot/snapshot'
import { verify } from '../../connector/snapshot/verify'
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
  time,
  whole,
} from './made-up-run'

const versions = async ({ db }: Snapshot, stream: string, columns: string) =>
  (
    await db.query(`
    SELECT concat_ws(' ', ${columns}, strftime(valid_from::TIMESTAMP, '%M'), coalesce(strftime(valid_to::TIMESTAMP, '%M'), 'now')) AS row
    FROM ${stream}_versions ORDER BY ALL`)
  ).map(({ row }) => row)

const history = { history: true }

describe('history', () => {
  it('keeps every version of a row, from when to when, whatever the order and the batches they come in', async () => {
    const snapshot = await open()
    await save(snapshot, whole(reviews(), review(1, 1, 'a'), review(2, 1, 'x'), review(1, 3, 'c')), history)
    await save(snapshot, whole(reviews(), review(1, 2, 'b'), review(1, 3, 'c')))
    await save(snapshot, whole(reviews(), review(1, 2, 'b'), review(1, 9, 'd')))
    expect(await versions(snapshot, 'reviews', 'id, text')).toEqual([
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
    expect((await verify(snapshot)).filter(({ ok }) => !ok).map(({ name }) => name)).toEqual([])
    snapshot.db.close()
  })

  it('ends what is deleted and what an older version of its review leaves behind', async () => {
    const snapshot = await open()
    await save(
      snapshot,
      [
        started(reviews()),
        started(contents()),
        started(deleted()),
        rows('reviews', review(1, 1, 'a'), review(2, 1, 'x')),
        rows('review_contents', content(1, 1, 1), content(1, 1, 2), content(2, 1, 1)),
        rows('reviews', review(1, 3, 'b')),
        rows('review_contents', content(1, 3, 1)),
        rows('deleted_reviews', review(2, 5)),
      ],
      history,
    )
    expect(await versions(snapshot, 'reviews', 'id, text')).toEqual(['1 a 01 03', '1 b 03 now', '2 x 01 05'])
    expect(await versions(snapshot, 'review_contents', '"reviewId", id')).toEqual([
      '1 1 01 03',
      '1 1 03 now',
      '1 2 01 03',
      '2 1 01 05',
    ])
    snapshot.db.close()
  })

  it('ends a version by its tombstone, which is no version itself', async () => {
    const snapshot = await open()
    const stream = info('reviews', { ...reviewShape, _ab_cdc_deleted_at: instant }, ['id'], 'modifiedTime')
    await save(snapshot, whole(stream, review(1, 1, 'a')), history)
    await save(snapshot, whole(stream, `{"id":1,"modifiedTime":"${time(4)}","_ab_cdc_deleted_at":"${time(4)}"}`))
    expect(await versions(snapshot, 'reviews', 'id, text')).toEqual(['1 a 01 04'])
    snapshot.db.close()
  })

  it('ends what a full refresh does not meet again, and follows a schema that changes', async () => {
    const snapshot = await open()
    await save(snapshot, whole(reviews(), review(1, 1, '1'), review(2, 1, '2')), history)
    const changed = info(
      'reviews',
      { ...reviewShape, text: { type: 'integer' }, more: { type: 'string' } },
      ['id'],
      'modifiedTime',
      'full_refresh',
    )
    await save(snapshot, whole(changed, `{"id":1,"modifiedTime":"${time(2)}","text":7,"more":"m"}`))
    expect(
      await snapshot.db.query(
        `SELECT id, text__varchar, text, more, valid_to IS NULL AS current FROM reviews_versions ORDER BY id, valid_from`,
      ),
    ).toEqual([
      { id: 1, text__varchar: '1', text: null, more: null, current: false },
      { id: 1, text__varchar: null, text: 7, more: 'm', current: true },
      { id: 2, text__varchar: '2', text: null, more: null, current: false },
    ])
    snapshot.db.close()
  })
})
