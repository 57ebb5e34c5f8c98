import fc from 'fast-check'
import { pipe } from 'fp-ts/function'
import * as TE from 'fp-ts/TaskEither'
import { describe, expect, it } from 'vitest'
import type { ReviewsResponse } from '../../../connector/api/envelopes'
import type { ApiError } from '../../../connector/api/error'
import type { ReviewsRequest } from '../../../connector/api/model/entity'
import { transparencyReviewsStream } from '../../../connector/streams/entities/operations'
import type { SourceEnv } from '../../../connector/streams/source-env'
import { draws } from '../../support/draws'
import { createFeedbackDestination, type RunEnd } from '../../support/feedback-destination'
import { createSourceEnv, readAll, readMessages, selectEntities } from '../../support/in-process'
import {
  createScrollService,
  publishedTraits,
  type ScrollService,
  type ScrollTraits,
  specifiedTraits,
} from '../../support/scroll-service'

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
  ...(['row', 'offset', 'endless', 'constant', 'repeated', 'overlap'] as const).map((key) => ({ key })),
  ...(['used'] as const).flatMap((page) =>
    (['none', 'blank', 'cycle', 'stuck'] as const).map((key): Partial<ScrollTraits> => ({ key, page })),
  ),
  { windows: 'used', page: 'used', key: 'none' },
  { windows: 'used', page: 'used', key: 'row' },
)

const anyTraits: fc.Arbitrary<ScrollTraits> = fc
  .tuple(
    fc.record({
      windows: fc.constantFrom('ignored' as const, 'ignored' as const, 'used' as const),
      page: fc.constantFrom('used' as const, 'ignored' as const, 'empty' as const),
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
      draws(60),
    )
  })
})

it(
  'two readings must agree on the rows outside the window too: ' +
    'few may lie inside, all of them on pages that come again',
  async () => {
    const service = simulateService(
      { ...publishedTraits, page: 'used', key: 'cycle', echo: 'requested', echoedSize: 'requested', maxPageSize: 13 },
      181_886,
    )
    service.setTraits({ maxDays: undefined, order: 'scattered' })
    const destination = createFeedbackDestination()
    for (let run = 0; run < 2; run += 1) {
      service.advanceClock(60_000)
      const { records, failures } = await destination.run(transparencyReviewsStream, sourceAt(service))
      expect([run === 0 ? service.truth(startDate - 1000).length : 0, []]).toEqual([records, failures])
    }
  },
)

const readReviews = (service: ScrollService, state = {}, overrides: Partial<SourceEnv> = {}) =>
  readAll(sourceAt(service, overrides), [transparencyReviewsStream], state)

describe('what is asked for', () => {
  it('is three requests more than the pages need, in a run of a service as published', async () => {
    const service = createScrollService(publishedTraits, 1, start)
    for (const id of people) for (let n = 1; n <= 5; n += 1) service.addRow(`person ${id}`, start - n * day)
    for (let n = 1; n <= 25; n += 1) service.addRow('person 1', start - n * day)
    const { records, logs } = await readReviews(service)
    expect(records.transparency_reviews).toHaveLength(45)
    expect(logs).toEqual([expect.stringContaining('ignores fromDate and toDate')])
    // Three that are answered without regard to their dates, twice two pages of the first person, and one of each of
    // the others.
    expect(service.requests).toHaveLength(3 + 4 + 3)
    expect(
      service.requests.slice(3).every(({ fromDate, toDate }) => fromDate === undefined && toDate === undefined),
    ).toBe(true)
  })

  it('is windows alone of a service that uses them, though it gives keys', async () => {
    const service = createScrollService(specifiedTraits, 1, start)
    for (let n = 1; n <= 60; n += 1) service.addRow('person 1', start - n * day)
    await readReviews(service, {}, { entities: selectEntities({ persons: ['1'] }) })
    expect(
      service.requests.every(({ fromDate, scrollKey }) => typeof fromDate === 'string' && scrollKey === undefined),
    ).toBe(true)
    expect(service.requests.length).toBeLessThan(20)
  })

  it('does not reach back before the start date, however long the lookback', async () => {
    for (const traits of [publishedTraits, specifiedTraits]) {
      const service = createScrollService(traits, 1, start)
      for (let n = 1; n <= 25; n += 1) service.addRow('person 1', start - n * day)
      const overrides = { startDate: start - 10 * day - 3_600_000 }
      const first = await readReviews(service, {}, overrides)
      expect(first.records.transparency_reviews).toHaveLength(10)
      service.advanceClock(day)
      expect((await readReviews(service, first.state, overrides)).records.transparency_reviews).toEqual([])
    }
  })
})

describe('rows of an entity that is read page by page', () => {
  it('leave with their page', async () => {
    const service = createScrollService({ ...publishedTraits, maxPageSize: 20 }, 1, start)
    for (let n = 1; n <= 2000; n += 1) service.addRow('person 1', start - n * 3_600_000)
    let rows = 0
    let mostHeld = 0
    for await (const message of readMessages(sourceAt(service), [transparencyReviewsStream])) {
      if (message._tag === 'Records') rows += message.rows.length
      if (rows > 0 && rows < 2000) mostHeld = Math.max(mostHeld, service.requests.length * 20 - rows)
    }
    expect(rows).toBe(2000)
    expect(mostHeld).toBeLessThan(200)
  })

  it('are sent again if one of them has changed, also where they are too many to hold', async () => {
    for (const count of [600, 2600]) {
      const service = createScrollService(publishedTraits, 1, start)
      for (let n = 1; n <= count; n += 1) service.addRow('person 1', start - n * 600_000)
      const overrides = { feedback: { thresholds: {}, perPage: 100, days: 365, lookbackDays: 30 } }
      const first = await readReviews(service, {}, overrides)
      service.advanceClock(60_000)
      expect((await readReviews(service, first.state, overrides)).records.transparency_reviews).toEqual([])
      service.respond('person 1')
      service.advanceClock(60_000)
      const changed = await readReviews(service, first.state, overrides)
      expect(changed.records.transparency_reviews).toHaveLength(count)
      service.advanceClock(60_000)
      expect((await readReviews(service, changed.state, overrides)).records.transparency_reviews).toEqual([])
    }
  })
})

describe('a service at fault', () => {
  const review = (id: number) => ({ documentId: id, mentionTime: new Date(start - (id % 300) * day).toISOString() })
  type Page = { readonly rows: ReadonlyArray<number>; readonly key?: string | null }
  /** A service whose pages are made by their number in this run. */
  const readPages = async (pageOf: (asked: ReviewsRequest, count: number) => TE.TaskEither<ApiError, Page>) => {
    let count = 0
    const retrieveReviews = (asked: ReviewsRequest): TE.TaskEither<ApiError, ReviewsResponse> =>
      pipe(
        pageOf(asked, count++),
        TE.map(({ rows, key = null }) => ({
          status: { code: 200 },
          servedAt: start,
          data: { entities: [{ id: '1', reviews: rows.map(review) }], filter: { perPage: 20, scrollKey: key } },
        })),
      )
    const env = createSourceEnv(
      { retrieveReviews },
      { now: () => start, startDate, entities: selectEntities({ persons: ['1'] }) },
    )
    const outcome = await readAll(env, [transparencyReviewsStream])
    const ids = new Set(outcome.records.transparency_reviews?.map(({ documentId }) => documentId))
    return { ...outcome, ids: ids.size, count }
  }
  const rowsFrom = (first: number, count = 20): ReadonlyArray<number> =>
    Array.from({ length: count }, (_, n) => first + n)

  it('whose keys never end, with new rows on each page, is named', async () => {
    const { logs, failures } = await readPages((_, n) => TE.right({ rows: [1 + n], key: `key ${n}` }))
    expect([...logs, ...Object.values(failures)].join()).toContain('its pages do not end')
  })

  it('that has empty pages with keys between others loses none', async () => {
    const { ids } = await readPages(({ scrollKey = '0' }) => {
      const n = Number(scrollKey)
      return TE.right({ rows: n % 3 === 0 ? rowsFrom(1 + n * 20) : [], key: n < 12 ? String(n + 1) : null })
    })
    expect(ids).toBe(100)
  })

  it('whose keys skip rows of the time of a last row is named', async () => {
    const service = createScrollService({ ...publishedTraits, key: 'time', maxPageSize: 20 }, 1, start)
    for (let n = 0; n < 300; n += 1) service.addRow('person 1', start - 3_600_000 - Math.floor(n / 30) * day)
    const { records, logs } = await readReviews(service)
    expect(records.transparency_reviews?.length).toBeLessThan(300)
    expect(logs).toContainEqual(expect.stringContaining('person 1 cannot be read completely'))
  })

  it.each<[string, (n: number, isFirst: boolean) => Page]>([
    ['empty pages and ever new keys', (n, isFirst) => ({ rows: isFirst ? rowsFrom(1) : [], key: `key ${n}` })],
    ['one page and ever new keys', (n) => ({ rows: rowsFrom(1), key: `key ${n}` })],
    ['one page and one key', () => ({ rows: rowsFrom(1), key: 'key' })],
    ['no rows and one key', () => ({ rows: [], key: 'key' })],
    ['no rows and ever new keys', (n) => ({ rows: [], key: `key ${n}` })],
  ])('with %s ends after few requests', async (_, pageOf) => {
    const { count, ids } = await readPages(({ scrollKey }, n) => TE.right(pageOf(n, scrollKey === undefined)))
    expect(count).toBeLessThan(20)
    expect(ids).toBe(pageOf(0, true).rows.length)
  })

  it('that refuses its own key is asked from the beginning three times, then the entity is named', async () => {
    const refused: ApiError = { _tag: 'Http', status: 400, message: 'scrollKey expired' }
    const pageOf = (refusals: number) => {
      let count = 0
      return ({ scrollKey }: ReviewsRequest): TE.TaskEither<ApiError, Page> => {
        if (scrollKey === undefined) return TE.right({ rows: rowsFrom(1), key: 'next' })
        count += 1
        return count <= refusals ? TE.left(refused) : TE.right({ rows: rowsFrom(21, 5) })
      }
    }
    const twice = await readPages(pageOf(2))
    expect([twice.ids, twice.failures, twice.logs.length]).toEqual([25, {}, 1])
    const always = await readPages(pageOf(1000))
    expect([...always.logs, ...Object.values(always.failures)].join()).toContain('refused its own scrollKey')
    expect(always.count).toBeLessThan(20)
  })

  it('whose answers are too large is asked for smaller ones', async () => {
    const { ids, failures } = await readPages(({ perPage = 0, scrollKey = '0', fromDate }) => {
      if (perPage > 6 && fromDate === undefined) return TE.left({ _tag: 'TooLarge', bytes: 2, limit: 1 })
      const next = Number(scrollKey) + perPage
      return TE.right({ rows: rowsFrom(1, 40).slice(Number(scrollKey), next), key: next < 40 ? String(next) : null })
    })
    expect([ids, failures]).toEqual([40, {}])
  })
})
