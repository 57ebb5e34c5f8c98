import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createEntityIndex } from '../../../connector/streams/entity-index'
import { commentsStream } from '../../../connector/streams/feedback/comments'
import { transparencyReviewsStream } from '../../../connector/streams/feedback/transparency-reviews'
import type { SourceEnv } from '../../../connector/streams/source-env'
import { createFeedbackDestination, type RunEnd } from '../../support/feedback-destination'
import {
  defaultTraits,
  type FeedbackSimulation,
  type FeedbackTraits,
  simulateFeedback,
} from '../../support/feedback-simulation'
import { sourceOf } from '../../support/in-process'

const start = Date.parse('2026-03-01T12:00:00.250Z')
const day = 86_400_000
const kinds = { person: ['1', '2', '3'], location: ['10', '11'], entity: ['20'] } as const

const sourceAt = (service: FeedbackSimulation, perPage = 20): SourceEnv =>
  sourceOf(service.api, {
    now: service.now,
    startDate: start - 400 * day,
    entities: {
      persons: kinds.person,
      locations: kinds.location,
      entities: kinds.entity,
      fromReviews: { locations: false, providers: 'none' },
    },
    feedback: { thresholds: {}, perPage, days: 365, lookbackDays: 30 },
    entityIndex: createEntityIndex(),
  })

/** A service with a past: much said of some, in bursts of one second too, nothing of others. */
const simulateWithPast = (behaviour: FeedbackTraits): FeedbackSimulation => {
  const service = simulateFeedback(behaviour, start)
  const keys = Object.entries(kinds).flatMap(([kind, ids]) => ids.map((id) => `${kind} ${id}`))
  for (const key of keys) {
    service.exist(key)
    for (let n = service.dice(4) === 0 ? service.dice(120) : service.dice(12); n > 0; n -= 1)
      service.add(key, start - service.dice(399 * day))
  }
  const burst = start - 50 * day
  for (let n = service.dice(30); n > 0; n -= 1) service.add('person 1', burst - (burst % 1000) + service.dice(1000))
  return service
}

const anyTraits: fc.Arbitrary<FeedbackTraits> = fc.record({
  seed: fc.nat(1_000_000),
  maxPageSize: fc.constantFrom(10, 15, 100),
  echo: fc.constantFrom('applied' as const, 'asked' as const, 'none' as const),
  paging: fc.constantFrom('entity' as const, 'answer' as const),
  totals: fc.constantFrom('right' as const, 'zero' as const, 'huge' as const, 'none' as const),
  bounds: fc.record({ from: fc.boolean(), to: fc.boolean() }),
  order: fc.constantFrom('newest' as const, 'oldest' as const, 'scattered' as const),
  identifiers: fc.constantFrom(1, 2, 50),
  names: fc.constantFrom('asked' as const, 'own' as const),
  appliesWindow: fc.constant(true),
  changesPerRequest: fc.constantFrom(0, 0.3, 1.5),
})

const anyRunEnd: fc.Arbitrary<RunEnd> = fc.record({
  after: fc.integer({ min: 1, max: 40 }),
  how: fc.constantFrom('kill' as const, 'stop' as const),
})

describe.each([commentsStream, transparencyReviewsStream])('$name of a service that moves', (stream) => {
  it('equal the truth after a quiet run, however runs end and pages move', async () => {
    await fc.assert(
      fc.asyncProperty(anyTraits, fc.array(anyRunEnd, { maxLength: 4 }), async (behaviour, cut) => {
        const service = simulateWithPast(behaviour)
        const source = sourceAt(service)
        const held = createFeedbackDestination()
        for (const end of cut) {
          const { failures } = await held.run(stream, source, end)
          expect(failures).toEqual([])
          service.pass(day)
        }
        service.quiet()
        service.pass(60_000)
        expect((await held.run(stream, source)).failures).toEqual([])
        expect(new Map([...held.rows].sort())).toEqual(new Map([...service.truth()].sort()))
        service.pass(3_600_000)
        const again = await held.run(stream, source)
        expect(again.records).toBe(0)
        expect(again.failures).toEqual([])
      }),
      { numRuns: 40, seed: 20261121 },
    )
  })
})

it('asks for little more than the rows need', async () => {
  const service = simulateFeedback({ ...defaultTraits, maxPageSize: 100 }, start)
  for (const id of kinds.person) service.exist(`person ${id}`)
  for (const id of kinds.location) service.exist(`location ${id}`)
  for (const id of kinds.entity) service.exist(`entity ${id}`)
  for (let n = 0; n < 3000; n += 1) service.add('person 1', start - service.dice(399 * day))
  const held = createFeedbackDestination()
  await held.run(commentsStream, sourceAt(service, 100))
  expect(held.rows.size).toBe(3000)
  expect(service.requests.length).toBeLessThan(100)
})
