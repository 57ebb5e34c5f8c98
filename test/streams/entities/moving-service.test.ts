import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { commentsStream, transparencyReviewsStream } from '../../../connector/streams/entities/operations'
import type { SourceEnv } from '../../../connector/streams/source-env'
import { draws } from '../../support/draws'
import { createFeedbackDestination, type RunEnd } from '../../support/feedback-destination'
import {
  defaultTraits,
  type FeedbackSimulation,
  type FeedbackTraits,
  simulateFeedback,
} from '../../support/feedback-simulation'
import { createSourceEnv, selectEntities } from '../../support/in-process'

const start = Date.parse('2026-03-01T12:00:00.250Z')
const day = 86_400_000
const kinds = { person: ['1', '2', '3'], location: ['10', '11'], entity: ['20'] } as const

const sourceAt = (service: FeedbackSimulation, perPage = 20): SourceEnv =>
  createSourceEnv(service.api, {
    now: service.now,
    startDate: start - 400 * day,
    entities: selectEntities({ persons: kinds.person, locations: kinds.location, entities: kinds.entity }),
    feedback: { thresholds: {}, perPage, days: 365, lookbackDays: 30 },
  })

/** A service with older comments: many on some entities, also in bursts of one second, and none on others. */
const simulateWithComments = (traits: FeedbackTraits): FeedbackSimulation => {
  const service = simulateFeedback(traits, start)
  const keys = Object.entries(kinds).flatMap(([kind, ids]) => ids.map((id) => `${kind} ${id}`))
  for (const key of keys) {
    service.addEntity(key)
    for (let n = service.randomInteger(4) === 0 ? service.randomInteger(120) : service.randomInteger(12); n > 0; n -= 1)
      service.addComment(key, start - service.randomInteger(399 * day))
  }
  const burst = start - 50 * day
  for (let n = service.randomInteger(30); n > 0; n -= 1)
    service.addComment('person 1', burst - (burst % 1000) + service.randomInteger(1000))
  return service
}

const anyTraits: fc.Arbitrary<FeedbackTraits> = fc.record({
  seed: fc.nat(1_000_000),
  maxPageSize: fc.constantFrom(4, 10, 15, 100),
  echo: fc.constantFrom('applied' as const, 'requested' as const, 'none' as const),
  paging: fc.constantFrom('entity' as const, 'answer' as const),
  totals: fc.constantFrom('right' as const, 'zero' as const, 'huge' as const, 'none' as const),
  bounds: fc.record({ from: fc.boolean(), to: fc.boolean() }),
  order: fc.constantFrom('newest' as const, 'oldest' as const, 'scattered' as const),
  maxIdentifiers: fc.constantFrom(1, 2, 50),
  ids: fc.constantFrom('requested' as const, 'own' as const),
  appliesWindow: fc.constant(true),
  changesPerRequest: fc.constantFrom(0, 0.3, 1.5),
  deletions: fc.constantFrom(0, 0.1, 0.4),
  filters: fc.constant(0),
  closed: fc.constant([]),
  closedStatus: fc.constant(404),
})

const anyRunEnd: fc.Arbitrary<RunEnd> = fc.record({
  after: fc.integer({ min: 1, max: 40 }),
  how: fc.constantFrom('kill' as const, 'stop' as const),
})

describe.each([commentsStream, transparencyReviewsStream])('$name of a service that changes', (stream) => {
  it('equal the service after a run without changes, however earlier runs ended and pages moved', async () => {
    await fc.assert(
      fc.asyncProperty(anyTraits, fc.array(anyRunEnd, { maxLength: 4 }), async (traits, ends) => {
        const service = simulateWithComments(traits)
        const source = sourceAt(service)
        const destination = createFeedbackDestination()
        for (const end of ends) {
          const { failures } = await destination.run(stream, source, end)
          expect(failures).toEqual([])
          service.advanceClock(day)
        }
        service.stopChanges()
        service.advanceClock(60_000)
        expect((await destination.run(stream, source)).failures).toEqual([])
        // A deleted row stays at the destination, since the service does not report it.
        const held = [...destination.rows].filter(([key]) => !service.deleted().has(key))
        expect(new Map(held.sort())).toEqual(new Map([...service.truth()].sort()))
        service.advanceClock(3_600_000)
        const again = await destination.run(stream, source)
        expect(again.records).toBe(0)
        expect(again.failures).toEqual([])
      }),
      draws(10),
    )
  })
})

describe.each([commentsStream, transparencyReviewsStream])(
  'a row of $name that is deleted between two pages',
  (stream) => {
    /** Three entities that have a row more than a page of ten, and one with fewer, all older than the lookback. */
    const readWhileDeleting = async (traits: Partial<FeedbackTraits>) => {
      const service = simulateFeedback({ ...defaultTraits, maxPageSize: 10, ...traits }, start)
      for (const [key, count] of Object.entries({
        'location 10': 11,
        'location 11': 11,
        'person 1': 11,
        'person 2': 4,
      }))
        for (let n = 0; n < count; n += 1) service.addComment(key, start - (100 + n) * day)
      for (const key of ['person 3', 'entity 20']) service.addEntity(key)
      const destination = createFeedbackDestination()
      const { failures } = await destination.run(stream, sourceAt(service))
      return { service, failures, lost: [...service.truth().keys()].filter((key) => !destination.rows.has(key)) }
    }

    it.each(
      (['newest', 'oldest', 'scattered'] as const).flatMap((order) =>
        (['right', 'zero', 'huge', 'none'] as const).flatMap((totals) =>
          (['entity', 'answer'] as const).flatMap((paging) =>
            ([1, 50] as const).map((maxIdentifiers) => ({ order, totals, paging, maxIdentifiers })),
          ),
        ),
      ),
    )(
      'hides no other one: $order first, totals $totals, pages by $paging, $maxIdentifiers identifiers',
      async (traits) => {
        for (const echo of ['requested', 'none'] as const)
          for (const deletions of [0.2, 0.6])
            for (let seed = 1; seed <= 5; seed += 1) {
              const { service, failures, lost } = await readWhileDeleting({ ...traits, echo, deletions, seed })
              expect(failures).toEqual([])
              expect(service.deleted().size).toBeGreaterThan(0)
              expect({ seed, echo, deletions, lost }).toEqual({ seed, echo, deletions, lost: [] })
            }
      },
    )
  },
)

it('rows that come in front as many as a page has hide none, whenever they come', async () => {
  for (let requests = 1; requests <= 30; requests += 1) {
    const service = simulateFeedback({ ...defaultTraits, maxPageSize: 4, echo: 'none', totals: 'none' }, start)
    for (let n = 0; n < 12; n += 1) service.addComment('person 1', start - (100 + n) * day)
    const { retrieveReviews } = service.api
    let asked = 0
    const source = {
      ...sourceAt(service),
      entities: selectEntities({ persons: ['1'] }),
      api: createSourceEnv({
        retrieveReviews: (request) => async () => {
          asked += 1
          if (asked === requests)
            for (let n = 0; n < 4; n += 1) service.addComment('person 1', start - 60_000 - n * 1000)
          return retrieveReviews(request)()
        },
      }).api,
    }
    const destination = createFeedbackDestination()
    for (let run = 0; run < 2; run += 1) {
      expect((await destination.run(transparencyReviewsStream, source)).failures).toEqual([])
      service.advanceClock(day)
    }
    expect({ requests, rows: destination.rows.size }).toEqual({ requests, rows: service.truth().size })
  }
})

describe('what a first read asks for again', () => {
  const ids = Array.from({ length: 60 }, (_, n) => String(n + 1))

  it.each([
    { stream: commentsStream, most: 8, first: 6, second: 4 },
    { stream: commentsStream, most: 60, first: 5, second: 4 },
    { stream: transparencyReviewsStream, most: 8, first: 120, second: 78 },
    { stream: transparencyReviewsStream, most: 60, first: 120, second: 112 },
  ])(
    'costs few requests, and fewer in later runs: $stream.name, less than $most rows each',
    async ({ stream, most, first, second }) => {
      const service = simulateFeedback({ ...defaultTraits, echo: 'none', totals: 'none' }, start)
      for (const id of ids) {
        service.addEntity(`person ${id}`)
        for (let n = service.randomInteger(most); n > 0; n -= 1)
          service.addComment(`person ${id}`, start - service.randomInteger(390 * day))
      }
      const source = { ...sourceAt(service, 100), entities: selectEntities({ persons: ids }) }
      const destination = createFeedbackDestination()
      await destination.run(stream, source)
      const firstCount = service.requests.length
      service.advanceClock(day)
      await destination.run(stream, source)
      expect(new Map([...destination.rows].sort())).toEqual(new Map([...service.truth()].sort()))
      expect({ first: firstCount, second: service.requests.length - firstCount }).toEqual({ first, second })
    },
  )
})

it('3,000 comments are read with less than 100 requests', async () => {
  const service = simulateFeedback({ ...defaultTraits, maxPageSize: 100 }, start)
  for (const id of kinds.person) service.addEntity(`person ${id}`)
  for (const id of kinds.location) service.addEntity(`location ${id}`)
  for (const id of kinds.entity) service.addEntity(`entity ${id}`)
  for (let n = 0; n < 3000; n += 1) service.addComment('person 1', start - service.randomInteger(399 * day))
  const destination = createFeedbackDestination()
  await destination.run(commentsStream, sourceAt(service, 100))
  expect(destination.rows.size).toBe(3000)
  expect(service.requests.length).toBeLessThan(100)
})
