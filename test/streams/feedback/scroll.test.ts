import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { transparencyReviewsStream } from '../../../connector/streams/feedback/comments-and-reviews'
import type { SourceEnv } from '../../../connector/streams/source-env'
import { createFeedbackDestination, type RunEnd } from '../../support/feedback-destination'
import { createSourceEnv, selectEntities } from '../../support/in-process'
import { createScrollService, type ScrollService, type ScrollTraits } from '../../support/scroll-service'

const start = Date.parse('2026-03-01T12:00:00.250Z')
const day = 86_400_000
const startDate = start - 400 * day
const people = ['1', '2', '3', '4']

const sourceAt = (service: ScrollService, overrides: Partial<SourceEnv> = {}): SourceEnv =>
  createSourceEnv(service.api, {
    now: service.now,
    startDate,
    entities: selectEntities({ persons: people }),
    feedback: { thresholds: {}, perPage: 20, days: 365, lookbackDays: 30 },
    ...overrides,
  })

/** A service with many rows on the first person, also before the start date and in one second, and few on others. */
const simulateService = (traits: ScrollTraits, seed = 1, count = 130): ScrollService => {
  const service = createScrollService(traits, seed, start)
  for (const id of people) service.addEntity(`person ${id}`)
  const burst = Math.floor((start - 50 * day) / 1000) * 1000
  for (let n = 0; n < count; n += 1) service.addRow('person 1', start - 60_000 - service.pick(399 * day))
  for (let n = 0; n < 25; n += 1) service.addRow('person 2', burst + service.pick(1000))
  for (let n = 0; n < 30; n += 1) service.addRow('person 1', startDate - 5000 - service.pick(30 * day))
  for (let n = service.pick(9); n > 0; n -= 1) service.addRow('person 3', start - 60_000 - service.pick(300 * day))
  return service
}

const toRows = (rows: ReadonlyMap<string, string>): ReadonlyArray<string> =>
  [...rows].map(([key, value]) => `${key} ${value.split(' ').slice(3).join(' ')}`).sort()

const expectAllRows = (service: ScrollService, rows: ReadonlyMap<string, string>): void => {
  const read = new Set(toRows(rows))
  expect(service.truth(startDate).filter((row) => !read.has(row))).toEqual([])
  // The window begins a second before the start date.
  const all = new Set(service.truth(startDate - 1000).map((row) => row.split(' ').slice(0, 3).join(' ')))
  const before = service.truth(Number.NEGATIVE_INFINITY).map((row) => row.split(' ').slice(0, 3).join(' '))
  expect(before.filter((key) => !all.has(key) && rows.has(key))).toEqual([])
}

/** What makes all rows of a service readable. */
const readsAll: fc.Arbitrary<Partial<ScrollTraits>> = fc.constantFrom<Partial<ScrollTraits>>(
  ...(['row', 'offset', 'endless', 'constant', 'repeated'] as const).map((key) => ({ key })),
  ...(['heeded'] as const).flatMap((page) =>
    (['none', 'blank', 'cycle', 'stuck'] as const).map((key): Partial<ScrollTraits> => ({ key, page })),
  ),
  { windows: 'heeded', page: 'heeded', key: 'none' },
  { windows: 'heeded', page: 'heeded', key: 'row' },
)

const anyTraits: fc.Arbitrary<ScrollTraits> = fc
  .tuple(
    fc.record({
      windows: fc.constantFrom('ignored' as const, 'ignored' as const, 'heeded' as const),
      page: fc.constantFrom('heeded' as const, 'ignored' as const, 'empty' as const),
      key: fc.constant('none' as const),
      echo: fc.constantFrom('requested' as const, 'days' as const, 'none' as const),
      echoedSize: fc.constantFrom('applied' as const, 'requested' as const, 'none' as const),
      maxPageSize: fc.constantFrom(13, 20, 100),
      maxDays: fc.constantFrom(36_500, undefined),
      order: fc.constantFrom('newest' as const, 'oldest' as const, 'scattered' as const),
      changes: fc.constantFrom(0, 0.3),
    }),
    readsAll,
  )
  .map(([traits, more]) => ({ ...traits, ...more }))

const anyRunEnd: fc.Arbitrary<RunEnd> = fc.record({
  after: fc.integer({ min: 1, max: 40 }),
  how: fc.constantFrom('kill' as const, 'stop' as const),
})

describe('transparency reviews of a service of any kind', () => {
  it('are complete after a run without changes, however earlier runs ended and whatever kind it was then', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.nat(1_000_000),
        anyTraits,
        fc.array(fc.tuple(anyTraits, fc.option(anyRunEnd, { nil: undefined })), { maxLength: 3 }),
        async (seed, traits, earlier) => {
          const service = simulateService(traits, seed)
          const destination = createFeedbackDestination()
          for (const [kind, end] of earlier) {
            service.setTraits(kind)
            const { failures } = await destination.run(transparencyReviewsStream, sourceAt(service), end)
            expect(failures).toEqual([])
            service.advanceClock(3_600_000)
          }
          service.setTraits({ ...traits, changes: 0 })
          service.advanceClock(60_000)
          expect((await destination.run(transparencyReviewsStream, sourceAt(service))).failures).toEqual([])
          expectAllRows(service, destination.rows)
          service.advanceClock(60_000)
          const again = await destination.run(transparencyReviewsStream, sourceAt(service))
          expect([again.records, again.failures]).toEqual([0, []])
        },
      ),
      { numRuns: Number(process.env.RUNS ?? 60), seed: Number(process.env.SEED ?? 20261123) },
    )
  })
})
