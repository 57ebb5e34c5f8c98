import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { Message } from '../../../connector/cdk/message'
import {
  contentJson,
  deletedReviewsInfo,
  openMemorySnapshot,
  recordsMessage,
  reviewContentsInfo,
  reviewJson,
  reviewsInfo,
  startedMessage,
  timeAtMinute,
  writeMessages,
} from '../../support/snapshot-messages'

const seed = 20261121

type Event =
  | { readonly kind: 'review'; readonly id: number; readonly minute: number }
  | { readonly kind: 'deletion'; readonly id: number; readonly minute: number }
  | { readonly kind: 'child'; readonly id: number; readonly minute: number; readonly child: number }
  | { readonly kind: 'commit' }

const id = fc.integer({ min: 1, max: 3 })
const minute = fc.integer({ min: 1, max: 6 })
const event: fc.Arbitrary<Event> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('review' as const), id, minute }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('deletion' as const), id, minute }) },
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constant('child' as const), id, minute, child: fc.integer({ min: 1, max: 2 }) }),
  },
  { weight: 1, arbitrary: fc.constant({ kind: 'commit' as const }) },
)

/** The rules, one event after the other: what `save` must come to, however it batches. */
const model = (events: ReadonlyArray<Event>) => {
  const alive = new Map<number, { minute: number; text: number }>()
  const gone = new Map<number, number>()
  let children: Array<{ id: number; child: number; minute: number }> = []
  events.forEach((one, i) => {
    if (one.kind === 'commit') return
    if (one.kind === 'deletion') {
      if ((gone.get(one.id) ?? 0) >= one.minute) return
      gone.set(one.id, one.minute)
      if ((alive.get(one.id)?.minute ?? 99) <= one.minute) alive.delete(one.id)
      children = children.filter(({ id, minute }) => id !== one.id || minute > one.minute)
      return
    }
    if (one.kind === 'review') {
      if ((alive.get(one.id)?.minute ?? 0) <= one.minute) alive.set(one.id, { minute: one.minute, text: i })
    } else {
      const held = children.find(({ id, child }) => id === one.id && child === one.child)
      if ((held?.minute ?? 0) <= one.minute) children = [...children.filter((other) => other !== held), one]
    }
    const version = Math.max(
      alive.get(one.id)?.minute ?? 0,
      ...children.flatMap((each) => (each.id === one.id ? [each.minute] : [])),
    )
    children = children.filter((each) => each.id !== one.id || each.minute === version)
  })
  return {
    reviews: [...alive].map(([id, { minute, text }]) => `${id} ${minute} ${text}`).sort(),
    deleted_reviews: [...gone].map(([id, minute]) => `${id} ${minute}`).sort(),
    review_contents: children.map(({ id, child, minute }) => `${id} ${child} ${minute}`).sort(),
  }
}

const message = (one: Event, i: number): Message => {
  switch (one.kind) {
    case 'review':
      return recordsMessage('reviews', reviewJson(one.id, one.minute, String(i)))
    case 'deletion':
      return recordsMessage('deleted_reviews', reviewJson(one.id, one.minute))
    case 'child':
      return recordsMessage('review_contents', contentJson(one.id, one.minute, one.child))
    case 'commit':
      return { _tag: 'Waiting', stream: 'reviews', until: 0 }
  }
}

const minuteOf = (column: string) => `datediff('minute', TIMESTAMPTZ '${timeAtMinute(0)}', "${column}")`

it('comes to what the rules say, however changes, deletions and children are mixed and batched', () =>
  fc.assert(
    fc.asyncProperty(fc.array(event, { minLength: 1, maxLength: 25 }), async (events) => {
      const snapshot = await openMemorySnapshot()
      await writeMessages(snapshot, [
        startedMessage(reviewsInfo()),
        startedMessage(deletedReviewsInfo()),
        startedMessage(reviewContentsInfo()),
        ...events.map(message),
      ])
      const rowsOf = async (table: string, ...columns: string[]) =>
        (await snapshot.db.query(`SELECT concat_ws(' ', ${columns.join(', ')}) AS row FROM ${table}`))
          .map(({ row }) => String(row))
          .sort()
      const found = {
        reviews: await rowsOf('reviews', 'id', minuteOf('modifiedTime'), 'text'),
        deleted_reviews: await rowsOf('deleted_reviews', 'id', minuteOf('modifiedTime')),
        review_contents: await rowsOf('review_contents', '"reviewId"', 'id', minuteOf('reviewModifiedTime')),
      }
      snapshot.db.close()
      expect(found).toEqual(model(events))
    }),
    { seed, numRuns: 25 },
  ))
