import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { commentsStream, transparencyReviewsStream } from '../../../connector/streams/feedback/comments-and-reviews'
import type { SourceEnv } from '../../../connector/streams/source-env'
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
        expect(new Map([...destination.rows].sort())).toEqual(new Map([...service.truth()].sort()))
        service.advanceClock(3_600_000)
        const again = await destination.run(stream, source)
        expect(again.records).toBe(0)
        expect(again.failures).toEqual([])
      }),
      { numRuns: 40, seed: 20261121 },
    )
  })
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
