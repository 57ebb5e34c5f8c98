import * as TE from 'fp-ts/TaskEither'
import { describe, expect, it } from 'vitest'
import type { ApiError } from '../../../connector/api/error'
import type { Api } from '../../../connector/api/routes'
import { commentsStream, transparencyReviewsStream } from '../../../connector/streams/entities/operations'
import { entityRatingsStream } from '../../../connector/streams/entities/ratings'
import type { SourceEnv } from '../../../connector/streams/source-env'
import { createFeedbackDestination } from '../../support/feedback-destination'
import {
  defaultTraits,
  type FeedbackSimulation,
  type FeedbackTraits,
  simulateFeedback,
} from '../../support/feedback-simulation'
import { createSourceEnv, readAll, selectEntities } from '../../support/in-process'

const start = Date.parse('2026-03-01T12:00:00.250Z')
const day = 86_400_000
const numberIds = (count: number): ReadonlyArray<string> => Array.from({ length: count }, (_, n) => String(n + 1))

/** A service in which each of these persons has a comment of two days ago. */
const simulatePersons = (ids: ReadonlyArray<string>, traits: Partial<FeedbackTraits> = {}): FeedbackSimulation => {
  const service = simulateFeedback({ ...defaultTraits, ...traits }, start)
  for (const id of ids) service.addComment(`person ${id}`, start - 2 * day)
  return service
}

const sourceAt = (
  service: FeedbackSimulation,
  persons: ReadonlyArray<string>,
  overrides: Partial<SourceEnv> = {},
): SourceEnv =>
  createSourceEnv(service.api, {
    now: service.now,
    startDate: start - 400 * day,
    entities: selectEntities({ persons }),
    ...overrides,
  })

const entityIds = (records: ReadonlyArray<Record<string, unknown>> = []): ReadonlyArray<unknown> =>
  records.map(({ entityId }) => entityId)

describe('many identifiers', () => {
  it('are sent together, up to 50 in a request', async () => {
    const service = simulatePersons(numberIds(120))
    service.addComment('person 1', start - day)
    expect((await readAll(sourceAt(service, numberIds(120)), [commentsStream])).records.comments).toHaveLength(121)
    // The second request of 50 is the next page: as many rows as ever before may be a full page. The third one is the
    // first page again: no row has moved to it.
    expect(service.requests.map(({ ids }) => ids)).toEqual([50, 50, 50, 1, 50, 20])
  })

  it('are halved after a 413, for all requests that follow', async () => {
    const service = simulatePersons(numberIds(100), { maxIdentifiers: 14 })
    const { records, failures } = await readAll(sourceAt(service, numberIds(100), { concurrency: 1 }), [commentsStream])
    expect(failures).toEqual({})
    expect(records.comments).toHaveLength(100)
    expect(service.refusals()).toBe(2)
    expect(service.requests.every(({ ids }) => ids <= 13)).toBe(true)
  })

  it('are requested one by one if the service lists entities under other ids', async () => {
    const service = simulatePersons(numberIds(8), { ids: 'own' })
    const { records } = await readAll(sourceAt(service, numberIds(8)), [commentsStream])
    expect(entityIds(records.comments)).toEqual(numberIds(8))
    const [first, ...others] = service.requests.map(({ ids }) => ids)
    expect([first, ...new Set(others)]).toEqual([8, 1])
    // As many rows as ever before: the next page shows that these are all.
    expect(others.length).toBeLessThanOrEqual(16)
  })
})

describe('an entity that the service refuses', () => {
  it.each([commentsStream, transparencyReviewsStream, entityRatingsStream])(
    'keeps its state and ends no stream: $name of the other entities are read',
    async (stream) => {
      const service = simulatePersons(numberIds(5))
      const persons = ['unknown', ...numberIds(5)]
      const { records, failures, logs, state } = await readAll(sourceAt(service, persons), [stream])
      expect(failures).toEqual({})
      expect(entityIds(records[stream.name])).toEqual(numberIds(5))
      expect(logs).toEqual([expect.stringContaining('refuses person unknown')])
      service.addComment('person unknown', start - 300 * day)
      service.advanceClock(day)
      const again = await readAll(sourceAt(service, persons), [stream], state)
      if (stream !== entityRatingsStream) expect(entityIds(again.records[stream.name])).toEqual(['unknown'])
    },
  )

  it.each([403, 404])('may be one of a stretch of 150 closed ones that answer %i', async (closedStatus) => {
    const ids = numberIds(200)
    for (const closed of [ids.slice(0, 150), ids.slice(25, 175), ids.slice(50)]) {
      const service = simulatePersons(ids, { closed: closed.map((id) => `person ${id}`), closedStatus })
      for (const stream of [commentsStream, transparencyReviewsStream, entityRatingsStream]) {
        const { records, failures, logs } = await readAll(sourceAt(service, ids), [stream])
        expect(failures).toEqual({})
        expect(new Set(entityIds(records[stream.name])).size).toBe(50)
        expect(logs).toHaveLength(150)
      }
    }
  })

  it('fails the stream where no other one is answered, after few requests', async () => {
    const ids = numberIds(500)
    const service = simulatePersons(ids, { closed: ids.map((id) => `person ${id}`), closedStatus: 403 })
    const { failures } = await readAll(sourceAt(service, ids), [commentsStream])
    expect(failures.comments).toContain('permission')
    expect(service.requests.length).toBeLessThan(60)
  })

  it('that ends the stream each time keeps no other entity from being read by the runs that follow', async () => {
    const ids = numberIds(10)
    for (const stream of [commentsStream, transparencyReviewsStream, entityRatingsStream]) {
      const service = simulatePersons(ids, { maxIdentifiers: 1, closed: ['person 1'], closedStatus: 500 })
      const read = new Set<unknown>()
      let state = {}
      for (let run = 0; run < 3; run += 1) {
        const outcome = await readAll(sourceAt(service, ids, { concurrency: 1 }), [stream], state)
        expect(Object.keys(outcome.failures)).toEqual([stream.name])
        for (const id of entityIds(outcome.records[stream.name])) read.add(id)
        state = outcome.state
      }
      expect(read.size).toBe(9)
    }
  })

  it('ends its stream if it is the only entity', async () => {
    const { failures } = await readAll(sourceAt(simulatePersons([]), ['unknown']), [commentsStream])
    expect(failures.comments).toContain('application error (code 7)')
  })
})

describe('a service at fault', () => {
  const refuseComments = (status: number): Partial<Api> => ({
    retrieveComments: () => TE.left({ _tag: 'Http', status, message: 'no' }),
    retrieveCommentsByForm: () => TE.left({ _tag: 'Http', status, message: 'no' }),
  })

  it('ends only the stream that it forbids', async () => {
    const service = simulatePersons(['1'])
    const source = { ...sourceAt(service, ['1']), api: { ...sourceAt(service, ['1']).api, ...refuseComments(403) } }
    const { failures, records } = await readAll(source, [commentsStream, transparencyReviewsStream])
    expect(Object.keys(failures)).toEqual(['comments'])
    expect(failures.comments).toContain('permission')
    expect(records.transparency_reviews).toHaveLength(1)
  })

  it.each([
    ['an outage', { code: '503', message: 'no' }],
    ['a rate limit', { code: '1', message: 'Too *** requests' }],
    ['an expired token', { code: 'TOKEN_EXPIRED', message: 'no' }],
  ])('that reports %s for one of many entities skips none: the stream ends', async (_, told) => {
    const ids = numberIds(5)
    const service = simulatePersons(ids, { maxIdentifiers: 1 })
    const { api, ...source } = sourceAt(service, ids, { concurrency: 1 })
    const refuseThird =
      <I, O>(ask: (input: I) => TE.TaskEither<ApiError, O>) =>
      (input: I): TE.TaskEither<ApiError, O> =>
        [(input as { personId?: unknown }).personId].flat().includes('3')
          ? TE.left({ _tag: 'Application', ...told })
          : ask(input)
    const faulty: Api = {
      ...api,
      retrieveComments: refuseThird(api.retrieveComments),
      retrieveCommentsByForm: refuseThird(api.retrieveCommentsByForm),
      retrieveReviews: refuseThird(api.retrieveReviews),
    }
    for (const stream of [commentsStream, transparencyReviewsStream, entityRatingsStream]) {
      const { failures, logs } = await readAll({ ...source, api: faulty }, [stream])
      expect([Object.keys(failures), logs]).toEqual([[stream.name], []])
    }
  })

  it.each([commentsStream, transparencyReviewsStream])(
    'that ignores the dates is read page by page: $name',
    async (stream) => {
      const service = simulatePersons([], { appliesWindow: false })
      for (let n = 1; n <= 250; n += 1) service.addComment('person 1', start - n * day)
      const { records, failures, logs } = await readAll(sourceAt(service, ['1']), [stream])
      expect(failures).toEqual({})
      expect(records[stream.name]).toHaveLength(250)
      expect(logs).toEqual([expect.stringContaining('ignores fromDate and toDate')])
      expect(service.requests.length).toBeLessThan(13)
    },
  )
})

describe('many comments of one second', () => {
  const readSecond = async (
    count: number,
    traits: Partial<FeedbackTraits>,
    streams = [commentsStream, transparencyReviewsStream],
  ) => {
    const service = simulatePersons(['1', '2'], traits)
    for (let n = 0; n < count; n += 1) service.addComment('person 1', start - 3 * day)
    return { service, ...(await readAll(sourceAt(service, ['1', '2']), streams)) }
  }

  it.each<[string, Partial<FeedbackTraits>]>([
    ['each page in an order of its own', { order: 'tied' }],
    ['the order of a database with a limit for all', { order: 'tied', maxPageSize: 1000, totals: 'none' }],
  ])('are read completely: %s', async (_, traits) => {
    const { records, failures, logs } = await readSecond(300, traits)
    expect([failures, logs]).toEqual([{}, []])
    expect(new Set(records.comments?.map(({ id }) => id)).size).toBe(302)
    expect(new Set(records.transparency_reviews?.map(({ documentId }) => documentId)).size).toBe(302)
  })

  it.each<[string, Partial<FeedbackTraits>]>([
    [
      'each page in an order of its own, cut at a limit that is not told',
      { order: 'tied', maxPageSize: 7, echo: 'requested' },
    ],
    ['another order at every request', { order: 'shuffled', maxPageSize: 40 }],
    ['another order at every request, without page counts', { order: 'shuffled', maxPageSize: 40, totals: 'none' }],
    ['a row twice in place of another', { order: 'hidden', maxPageSize: 40 }],
  ])('are read completely, or their entity is named: %s', async (_, traits) => {
    for (let seed = 1; seed <= 20; seed += 1)
      for (const stream of [commentsStream, transparencyReviewsStream]) {
        const { records, failures, logs, service } = await readSecond(300, { ...traits, seed }, [stream])
        expect(failures).toEqual({})
        const rows = records[stream.name] ?? []
        expect(entityIds(rows)).toContain('2')
        const isWhole = new Set(rows.map((row) => row.id ?? row.documentId)).size === 302
        expect(isWhole ? [] : logs).toEqual(
          isWhole ? [] : [expect.stringContaining('person 1 cannot be read completely')],
        )
        expect(service.requests.length).toBeLessThan(600)
      }
  })

  it('that no reading finds are named, stay in the state and keep no other entity from being read', async () => {
    // Eight readings of pages of ten find nine of ten rows.
    const { service, records, failures, logs, state } = await readSecond(300, { order: 'shuffled', maxPageSize: 10 }, [
      commentsStream,
    ])
    expect(failures).toEqual({})
    expect(logs).toEqual([expect.stringContaining('person 1 cannot be read completely')])
    expect(entityIds(records.comments)).toContain('2')
    expect(service.requests.length).toBeLessThan(600)
    const { entityStates } = state.comments as { readonly entityStates: Record<string, { readonly digest?: string }> }
    // Only an entity that was read to its end has a digest.
    expect([entityStates['person:1']?.digest ?? '', entityStates['person:2']?.digest]).toEqual([
      '',
      expect.stringMatching(/./),
    ])
  })
})

describe('a page limit that the service does not announce', () => {
  it.each([commentsStream, transparencyReviewsStream])('loses no row of $name', async (stream) => {
    const service = simulatePersons([], { maxPageSize: 25, echo: 'requested', totals: 'none' })
    for (let n = 0; n < 400; n += 1) service.addComment('person 1', start - service.randomInteger(390 * day))
    const { records } = await readAll(sourceAt(service, ['1']), [stream])
    expect(records[stream.name]).toHaveLength(400)
  })

  it.each([[['1']], [['1', '2']]])(
    'loses no row where the first page is full of rows after the cutoff: persons %j',
    async (persons) => {
      const service = simulatePersons(persons, { maxPageSize: 10, echo: 'none' })
      for (let n = 0; n < 12; n += 1) service.addComment('person 1', start)
      const { records } = await readAll(sourceAt(service, persons), [commentsStream, transparencyReviewsStream])
      expect(records.comments).toHaveLength(persons.length)
      expect(records.transparency_reviews).toHaveLength(persons.length)
    },
  )

  it.each<[string, Partial<FeedbackTraits>]>([
    ['is smaller than ten', { maxPageSize: 4 }],
    ['is smaller than ten, though one page is told', { maxPageSize: 4, totals: 'one' }],
    ['varies from page to page', { maxPageSize: 20, filters: 0.3 }],
    ['leaves most of a page out', { maxPageSize: 12, filters: 0.8 }],
  ])('loses no row if it %s', async (_, traits) => {
    const service = simulatePersons([], { echo: 'requested', totals: 'none', ...traits })
    for (const [id, count] of [
      ['1', 150],
      ['2', 40],
      ['3', 3],
    ] as const)
      for (let n = 0; n < count; n += 1) service.addComment(`person ${id}`, start - service.randomInteger(390 * day))
    const { records } = await readAll(sourceAt(service, ['1', '2', '3']), [commentsStream, transparencyReviewsStream])
    const shown = service.shown()
    expect(records.comments).toHaveLength(shown)
    expect(records.transparency_reviews).toHaveLength(shown)
    expect(service.requests.length).toBeLessThan(2500)
  })
})

describe('the state of entities', () => {
  it('of 10,000 entities is smaller than a megabyte at every checkpoint', async () => {
    const ids = numberIds(10_000).map((n) => `${1_000_000_000 + Number(n)}`)
    const service = simulatePersons(ids)
    const destination = createFeedbackDestination()
    const checkpointInterval = { records: 2_500, millis: 3_600_000 }
    const source = sourceAt(service, ids)
    const sizes = (await destination.run(commentsStream, source, undefined, checkpointInterval)).messages.flatMap(
      (message) => (message._tag === 'Checkpoint' ? [JSON.stringify(message.state).length] : []),
    )
    expect(sizes.length).toBeGreaterThan(3)
    expect(Math.max(...sizes)).toBeLessThan(1_000_000)
    service.advanceClock(day)
    service.addComment(`person ${ids[0]}`, service.now() - 60_000)
    expect((await destination.run(commentsStream, source, undefined, checkpointInterval)).records).toBe(1)
  })

  it('lets a first run that was killed continue with the windows it has not read', async () => {
    const service = simulatePersons([])
    for (let n = 0; n < 3000; n += 1) service.addComment('person 1', start - service.randomInteger(390 * day))
    const destination = createFeedbackDestination()
    await destination.run(commentsStream, sourceAt(service, ['1'], { concurrency: 1 }), { after: 40, how: 'kill' })
    const first = service.requests.length
    await destination.run(commentsStream, sourceAt(service, ['1'], { concurrency: 1 }))
    expect(destination.rows.size).toBe(3000)
    const whole = simulatePersons([])
    for (let n = 0; n < 3000; n += 1) whole.addComment('person 1', start - whole.randomInteger(390 * day))
    await createFeedbackDestination().run(commentsStream, sourceAt(whole, ['1'], { concurrency: 1 }))
    expect(first).toBeGreaterThan(20)
    expect(service.requests.length - first).toBeLessThan(whole.requests.length - first / 2)
  })

  it('continues a killed full refresh, and starts over after a finished one', async () => {
    const ids = numberIds(30)
    const service = simulatePersons(ids, { maxIdentifiers: 5 })
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

  it('with a cursor in the future is kept, no rows are read, and the stream fails with what fixes it', async () => {
    const service = simulatePersons(['1'])
    const state = { comments: { fromDate: '2030-01-01T00:00:00.000Z', entityStates: { 'person:1': { digest: 'x' } } } }
    const after = await readAll(sourceAt(service, ['1']), [commentsStream], state)
    expect(after.records.comments).toEqual([])
    expect(after.state).toEqual(state)
    expect(after.failures.comments).toMatch(/^The state reaches to 2030-01-01.*Refresh or Clear/)
  })

  it('of a wrong shape is refused with the stream and the key', async () => {
    const { failures } = await readAll(sourceAt(simulatePersons(['1']), ['1']), [commentsStream], {
      comments: { fromDate: 5 },
    })
    expect(failures.comments).toContain('The state of comments is wrong: fromDate')
  })
})

describe('a late response to a comment', () => {
  it('sends the window of its entity again, and of no other entity', async () => {
    const service = simulatePersons(['1', '2'])
    for (let n = 0; n < 5; n += 1) service.addComment('person 1', start - (3 + n) * day)
    const source = sourceAt(service, ['1', '2'])
    const first = await readAll(source, [commentsStream])
    service.advanceClock(day)
    service.answer('person 1')
    const second = await readAll(source, [commentsStream], first.state)
    expect(entityIds(second.records.comments)).toEqual(numberIds(6).map(() => '1'))
    service.addComment('person 2', service.now())
    service.advanceClock(day)
    const third = await readAll(source, [commentsStream], second.state)
    expect(entityIds(third.records.comments)).toEqual(['2'])
  })
})
