import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { Message } from '../../../connector/cdk/message'
import { draws } from '../../support/draws'
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

type Event =
  | { readonly kind: 'review'; readonly id: number; readonly minute: number }
  | { readonly kind: 'deletion'; readonly id: number; readonly minute: number }
  | { readonly kind: 'child'; readonly id: number; readonly minute: number; readonly child: number }
  | { readonly kind: 'commit' }

const id = fc.integer({ min: 1, max: 3 })
const minute = fc.integer({ min: 1, max: 6 })
const eventArbitrary: fc.Arbitrary<Event> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('review' as const), id, minute }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('deletion' as const), id, minute }) },
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constant('child' as const), id, minute, child: fc.integer({ min: 1, max: 2 }) }),
  },
  { weight: 1, arbitrary: fc.constant({ kind: 'commit' as const }) },
)

/**
 * The rows that the writer must leave, whatever the order of the events and the batches. Among equal versions the last
 * one counts.
 */
const expectedRows = (events: ReadonlyArray<Event>) => {
  const deletions = new Map<number, number>()
  for (const event of events)
    if (event.kind === 'deletion') deletions.set(event.id, Math.max(event.minute, deletions.get(event.id) ?? 0))
  const reviews = new Map<number, { minute: number; text: number }>()
  const children = new Map<string, { id: number; child: number; minute: number }>()
  events.forEach((event, i) => {
    if (event.kind === 'commit' || event.kind === 'deletion' || event.minute < (deletions.get(event.id) ?? 0)) return
    if (event.kind === 'review') {
      if ((reviews.get(event.id)?.minute ?? 0) <= event.minute) reviews.set(event.id, { minute: event.minute, text: i })
      return
    }
    const key = `${event.id} ${event.child}`
    if ((children.get(key)?.minute ?? 0) <= event.minute) children.set(key, event)
  })
  const versions = new Map<number, number>()
  for (const [id, { minute }] of reviews) versions.set(id, minute)
  for (const { id, minute } of children.values()) versions.set(id, Math.max(minute, versions.get(id) ?? 0))
  const living = [...children.values()].filter(({ id, minute }) => minute === versions.get(id))
  return {
    reviews: [...reviews].map(([id, { minute, text }]) => `${id} ${minute} ${text}`).sort(),
    deleted_reviews: [...deletions].map(([id, minute]) => `${id} ${minute}`).sort(),
    review_contents: living.map(({ id, child, minute }) => `${id} ${child} ${minute}`).sort(),
  }
}

const toMessage = (event: Event, i: number): Message => {
  switch (event.kind) {
    case 'review':
      return recordsMessage('reviews', reviewJson(event.id, event.minute, String(i)))
    case 'deletion':
      return recordsMessage('deleted_reviews', reviewJson(event.id, event.minute))
    case 'child':
      return recordsMessage('review_contents', contentJson(event.id, event.minute, event.child))
    case 'commit':
      return { _tag: 'Waiting', stream: 'reviews', until: 0 }
  }
}

const minuteSql = (column: string) => `datediff('minute', TIMESTAMPTZ '${timeAtMinute(0)}', "${column}")`

it(
  'the writer leaves the rows that the rules give, for any ' +
    'order and any batches of changes, deletions and children',
  () =>
    fc.assert(
      fc.asyncProperty(fc.array(eventArbitrary, { minLength: 1, maxLength: 25 }), async (events) => {
        const snapshot = await openMemorySnapshot()
        await writeMessages(snapshot, [
          startedMessage(reviewsInfo()),
          startedMessage(deletedReviewsInfo()),
          startedMessage(reviewContentsInfo()),
          ...events.map(toMessage),
        ])
        const listRows = async (table: string, ...columns: string[]) =>
          (await snapshot.db.query(`SELECT concat_ws(' ', ${columns.join(', ')}) AS row FROM ${table}`))
            .map(({ row }) => String(row))
            .sort()
        const rows = {
          reviews: await listRows('reviews', 'id', minuteSql('modifiedTime'), 'text'),
          deleted_reviews: await listRows('deleted_reviews', 'id', minuteSql('modifiedTime')),
          review_contents: await listRows('review_contents', '"reviewId"', 'id', minuteSql('reviewModifiedTime')),
        }
        snapshot.db.close()
        expect(rows).toEqual(expectedRows(events))
      }),
      { ...draws(12), endOnFailure: true },
    ),
)
