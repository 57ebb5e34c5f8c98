import * as TE from 'fp-ts/TaskEither'
import { describe, expect, it } from 'vitest'
import type { Api } from '../../../connector/api/api'
import { createEntityIndex } from '../../../connector/streams/entity-index'
import { commentsStream } from '../../../connector/streams/feedback/comments'
import { entityRatingsStream } from '../../../connector/streams/feedback/entity-ratings'
import { transparencyReviewsStream } from '../../../connector/streams/feedback/transparency-reviews'
import type { SourceEnv } from '../../../connector/streams/source-env'
import { createFeedbackDestination } from '../../support/feedback-destination'
import {
  defaultTraits,
  type FeedbackSimulation,
  type FeedbackTraits,
  simulateFeedback,
} from '../../support/feedback-simulation'
import { readAll, sourceOf } from '../../support/in-process'

const start = Date.parse('2026-03-01T12:00:00.250Z')
const day = 86_400_000
const numbered = (count: number): ReadonlyArray<string> => Array.from({ length: count }, (_, n) => String(n + 1))

/** A service in which each of these persons exists, and something was said of each two days ago. */
const people = (ids: ReadonlyArray<string>, behaviour: Partial<FeedbackTraits> = {}): FeedbackSimulation => {
  const service = simulateFeedback({ ...defaultTraits, ...behaviour }, start)
  for (const id of ids) service.add(`person ${id}`, start - 2 * day)
  return service
}

const sourceAt = (
  service: FeedbackSimulation,
  persons: ReadonlyArray<string>,
  more: Partial<SourceEnv> = {},
): SourceEnv =>
  sourceOf(service.api, {
    now: service.now,
    startDate: start - 400 * day,
    entities: { persons, locations: [], entities: [], fromReviews: { locations: false, providers: 'none' } },
    entityIndex: createEntityIndex(),
    ...more,
  })

const held = (records: ReadonlyArray<Record<string, unknown>> = []): ReadonlyArray<unknown> =>
  records.map(({ entityId }) => entityId)

describe('many identifiers', () => {
  it('go in one request of a form', async () => {
    const service = people(numbered(120))
    service.add('person 1', start - day)
    expect((await readAll(sourceAt(service, numbered(120)), [commentsStream])).records.comments).toHaveLength(121)
    // An answer longer than any before is doubted once.
    expect(service.requests.map(({ ids }) => ids)).toEqual([50, 50, 50, 20])
  })

  it('are halved by a 413, which is remembered', async () => {
    const service = people(numbered(100), { identifiers: 14 })
    const { records, failures } = await readAll(sourceAt(service, numbered(100), { concurrency: 1 }), [commentsStream])
    expect(failures).toEqual({})
    expect(records.comments).toHaveLength(100)
    expect(service.refusals()).toBe(2)
    expect(service.requests.every(({ ids }) => ids <= 13)).toBe(true)
  })

  it('are asked for one by one where the service calls entities otherwise', async () => {
    const service = people(numbered(8), { names: 'own' })
    const { records } = await readAll(sourceAt(service, numbered(8)), [commentsStream])
    expect(held(records.comments)).toEqual(numbered(8))
    expect(service.requests.map(({ ids }) => ids)).toEqual([8, ...numbered(8).map(() => 1)])
  })
})

describe('an entity that the service refuses', () => {
  it.each([commentsStream, transparencyReviewsStream, entityRatingsStream])(
    'stays as it is, and $name of the others come',
    async (stream) => {
      const service = people(numbered(5))
      const asked = ['nobody', ...numbered(5)]
      const { records, failures, logs, state } = await readAll(sourceAt(service, asked), [stream])
      expect(failures).toEqual({})
      expect(held(records[stream.name])).toEqual(numbered(5))
      expect(logs).toEqual([expect.stringContaining('refuses person nobody')])
      service.add('person nobody', start - 300 * day)
      service.pass(day)
      const again = await readAll(sourceAt(service, asked), [stream], state)
      if (stream !== entityRatingsStream) expect(held(again.records[stream.name])).toEqual(['nobody'])
    },
  )

  it('ends the stream if it is the only one', async () => {
    const { failures } = await readAll(sourceAt(people([]), ['nobody']), [commentsStream])
    expect(failures.comments).toContain('application error (code 7)')
  })
})

describe('a service out of order', () => {
  const refusing = (status: number): Partial<Api> => ({
    retrieveComments: () => TE.left({ _tag: 'Http', status, message: 'no' }),
    retrieveCommentsByForm: () => TE.left({ _tag: 'Http', status, message: 'no' }),
  })

  it('ends the stream that may not be read, and that one alone', async () => {
    const service = people(['1'])
    const source = { ...sourceAt(service, ['1']), api: { ...sourceAt(service, ['1']).api, ...refusing(403) } }
    const { failures, records } = await readAll(source, [commentsStream, transparencyReviewsStream])
    expect(Object.keys(failures)).toEqual(['comments'])
    expect(failures.comments).toContain('permission')
    expect(records.transparency_reviews).toHaveLength(1)
  })

  it('is told where it does not heed the dates', async () => {
    const service = people([], { appliesWindow: false })
    for (let n = 0; n < 200; n += 1) service.add('person 1', start - n * day)
    const { failures } = await readAll(sourceAt(service, ['1']), [commentsStream])
    expect(failures.comments).toContain('ignores fromDate and toDate')
    expect(service.requests.length).toBeLessThan(20)
  })

  it('is told where the pages of one second never agree', async () => {
    const service = people([], { order: 'shuffled', maxPageSize: 10 })
    for (let n = 0; n < 60; n += 1) service.add('person 1', start - 2 * day)
    const { failures } = await readAll(sourceAt(service, ['1']), [commentsStream])
    expect(failures.comments).toContain('differed at each of 5 readings')
  })
})

describe('limits that nobody tells', () => {
  it.each([commentsStream, transparencyReviewsStream])('cost $name no row', async (stream) => {
    const service = people([], { maxPageSize: 25, echo: 'asked', totals: 'none' })
    for (let n = 0; n < 400; n += 1) service.add('person 1', start - service.dice(390 * day))
    const { records } = await readAll(sourceAt(service, ['1']), [stream])
    expect(records[stream.name]).toHaveLength(400)
  })
})

describe('the state', () => {
  it('of 10,000 entities is less than a megabyte, under way too', async () => {
    const ids = numbered(10_000).map((n) => `${1_000_000_000 + Number(n)}`)
    const service = people(ids)
    const target = createFeedbackDestination()
    const cadence = { records: 2_500, millis: 3_600_000 }
    const source = sourceAt(service, ids)
    const sizes = (await target.run(commentsStream, source, undefined, cadence)).messages.flatMap((message) =>
      message._tag === 'Checkpoint' ? [JSON.stringify(message.state).length] : [],
    )
    expect(sizes.length).toBeGreaterThan(3)
    expect(Math.max(...sizes)).toBeLessThan(1_000_000)
    service.pass(day)
    service.add(`person ${ids[0]}`, service.now() - 60_000)
    expect((await target.run(commentsStream, source, undefined, cadence)).records).toBe(1)
  })

  it('lets a long first reading go on where it was killed', async () => {
    const service = people([])
    for (let n = 0; n < 3000; n += 1) service.add('person 1', start - service.dice(390 * day))
    const target = createFeedbackDestination()
    await target.run(commentsStream, sourceAt(service, ['1'], { concurrency: 1 }), { after: 40, how: 'kill' })
    const first = service.requests.length
    await target.run(commentsStream, sourceAt(service, ['1'], { concurrency: 1 }))
    expect(target.rows.size).toBe(3000)
    const whole = people([])
    for (let n = 0; n < 3000; n += 1) whole.add('person 1', start - whole.dice(390 * day))
    await createFeedbackDestination().run(commentsStream, sourceAt(whole, ['1'], { concurrency: 1 }))
    expect(first).toBeGreaterThan(20)
    expect(service.requests.length - first).toBeLessThan(whole.requests.length - first / 2)
  })

  it('lets a full refresh that was killed go on, and one that was finished start anew', async () => {
    const ids = numbered(30)
    const service = people(ids, { identifiers: 5 })
    const source = sourceAt(service, ids, { concurrency: 1 })
    const full = await readAll(source, [commentsStream], {}, 'full_refresh')
    expect(full.records.comments).toHaveLength(30)
    const again = await readAll(source, [commentsStream], full.state, 'full_refresh')
    expect(again.records.comments).toHaveLength(30)
    const states = again.messages.flatMap((message) => (message._tag === 'Checkpoint' ? [message.state] : []))
    const rest = await readAll(source, [commentsStream], { comments: states[3] }, 'full_refresh')
    expect(rest.records.comments?.length).toBeGreaterThan(0)
    expect(rest.records.comments?.length).toBeLessThan(30)
  })

  it('from the future is kept, and gives no rows', async () => {
    const service = people(['1'])
    const state = { comments: { fromDate: '2030-01-01T00:00:00.000Z', partitions: { 'person:1': { digest: 'x' } } } }
    const after = await readAll(sourceAt(service, ['1']), [commentsStream], state)
    expect(after.records.comments).toEqual([])
    expect(after.state).toEqual(state)
    expect(after.logs).toEqual([expect.stringContaining("ahead of the service's time")])
  })

  it('that is none of ours is refused by name', async () => {
    const { failures } = await readAll(sourceAt(people(['1']), ['1']), [commentsStream], { comments: { fromDate: 5 } })
    expect(failures.comments).toContain('The state of comments is wrong: fromDate')
  })
})

describe('a response that comes late', () => {
  it('makes the window of its entity leave again, and of no other', async () => {
    const service = people(['1', '2'])
    for (let n = 0; n < 5; n += 1) service.add('person 1', start - (3 + n) * day)
    const source = sourceAt(service, ['1', '2'])
    const first = await readAll(source, [commentsStream])
    service.pass(day)
    service.answer('person 1')
    const second = await readAll(source, [commentsStream], first.state)
    expect(held(second.records.comments)).toEqual(numbered(6).map(() => '1'))
    service.add('person 2', service.now())
    service.pass(day)
    const third = await readAll(source, [commentsStream], second.state)
    expect(held(third.records.comments)).toEqual(['2'])
  })
})
