import fc from 'fast-check'
import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as O from 'fp-ts/Option'
import * as TE from 'fp-ts/TaskEither'
import { describe, expect, test } from 'vitest'
import type { ApiError } from '../../../connector/api/error'
import { toInstant } from '../../../connector/cdk/scalar'
import type { CutRecord } from '../../../connector/export/cut/record'
import type { ExportPage, FetchPage } from '../../../connector/export/fetch-page'
import { decodeResumeToken } from '../../../connector/export/scan/resume-token'
import { type ScanEnv, type ScanItem, type ScanStart, scan } from '../../../connector/export/scan/scan'
import { allScanRules } from '../../../connector/export/scan/state'
import { drawCount, draws } from '../../support/draws'
import { anySimulationPlan, anyTraits, orders } from '../../support/export-arbitraries'
import { runSimulation, type SimulationPlan, scanReader } from '../../support/export-runs'
import {
  type ExportTraits,
  type Order,
  simulateExport,
  stableTraits,
  type TieOrder,
} from '../../support/export-simulation'
import { random } from '../../support/random'

/** How much more than `npm test` the simulations of single worlds try. */
const scale = drawCount(1)

const simplePlan: SimulationPlan = { seed: 1, limit: 50, concurrency: 1, runs: 2, crashes: false }
const singleChanges: Partial<ExportTraits> = { changes: 1, deletions: 0.2, additions: 0.5 }

const collect = async (
  fetch: FetchPage,
  env: Partial<ScanEnv> = {},
  start: Partial<ScanStart> = {},
): Promise<{ items: ScanItem[]; ids: string[]; failure: string | undefined }> => {
  const items: ScanItem[] = []
  const feed = scan({
    operation: 'export reviews',
    fetch,
    now: () => Date.UTC(2026, 0, 31),
    concurrency: 1,
    limit: 50,
    hasMentionTime: true,
    ...env,
  })({
    origin: { startDate: Date.UTC(2025, 0, 1), cursor: O.none, lookback: 600_000 },
    filters: {},
    resumeToken: O.none,
    ...start,
  })
  for await (const item of feed) {
    if (E.isLeft(item)) return { items, ids: items.flatMap(idsOf), failure: item.left.message }
    items.push(item.right)
    if (items.length > 20_000) return { items, ids: [], failure: 'the scan does not end' }
  }
  return { items, ids: items.flatMap(idsOf), failure: undefined }
}
const mentionedIds = (items: ReadonlyArray<ScanItem>): ReadonlyArray<string> =>
  items.flatMap(({ rows }) => rows.filter(({ raw }) => raw.toString().includes('mentionTime')).map(({ id }) => id))
const idsOf = ({ rows }: ScanItem): string[] => rows.map(({ id }) => id)

describe('a scan of a service that changes while it is read', () => {
  test('makes the destination equal to the service after a quiet run', async () => {
    await fc.assert(
      fc.asyncProperty(anyTraits, anySimulationPlan, async (traits, plan) => {
        const outcome = await runSimulation(traits, plan)
        expect(outcome.unfinished).toEqual([])
        expect(outcome.differences).toEqual([])
      }),
      draws(80),
    )
  })

  const lacking: Partial<ExportTraits> = { inclusive: true, echo: true, lackingRows: 8 }
  const busy: Partial<ExportTraits> = { changes: 1, deletions: 0.2, additions: 0.5 }
  test.each<[string, Partial<ExportTraits>, Partial<SimulationPlan>]>([
    [
      'the first page always lacks rows, and some reviews have no mention time',
      { ...lacking, order: 'ties', rows: 398, unmentioned: 0.1 },
      { seed: 697_607_691, concurrency: 4 },
    ],
    [
      'the first page always lacks rows, and half of the reviews have no mention time',
      { ...lacking, order: 'ties', ties: 'replicas', rows: 132, unmentioned: 0.5, clockSkew: undefined },
      { seed: -607_981_066, crashes: true },
    ],
    [
      'the newest rows come first, and short pages hold nothing but rows after the cutoff',
      {
        ...{ ...busy, order: 'descending', ties: 'replicas', clamp: 30, rows: 395, lag: 60_000, latency: 30_000 },
        ...{ clockSkew: 1_200_000, shortPages: true, unmentioned: 0.1, echo: true, futureDates: [600_000] },
      },
      { seed: -19, runs: 4 },
    ],
  ])('makes the destination equal to the service in a world that was wrong once: %s', async (_, traits, plan) => {
    const outcome = await runSimulation({ ...stableTraits, ...traits }, { ...simplePlan, ...plan })
    expect(outcome.unfinished).toEqual([])
    expect(outcome.differences).toEqual([])
  })

  test.each(orders)('sends nothing again when nothing changes: %s', async (order) => {
    const { repeated } = await runSimulation({ ...stableTraits, ...singleChanges, order, rows: 300 }, simplePlan)
    expect(repeated).toEqual([])
  })

  test.each(['ascending', 'descending', 'id'] as const)(
    'takes few requests and sends each key once while single rows change: %s',
    async (order) => {
      for (const concurrency of [1, 4])
        for (let seed = 0; seed < 5; seed++) {
          const service = simulateExport({ ...stableTraits, ...singleChanges, order, rows: 2000 }, seed)
          const { ids, failure } = await collect(service.reviews, { concurrency, now: service.now })
          expect(failure).toBeUndefined()
          expect(new Set(ids).size).toBe(ids.length)
          expect(service.requests()).toBeLessThanOrEqual(1.25 * (Math.ceil(2000 / 40) + 2) + concurrency - 1)
        }
    },
  )

  test.each(['ascending', 'descending', 'id'] as const)('ends although the service is busy: %s', async (order) => {
    const busy = {
      ...stableTraits,
      order,
      rows: 1000,
      changes: 5,
      additions: 2,
      deletions: 0.5,
      burstEvery: 15,
      burstSize: 60,
    }
    for (let seed = 0; seed < 5; seed++) {
      const service = simulateExport(busy, seed)
      const { failure, items } = await collect(service.reviews, { now: service.now })
      expect(failure).toBeUndefined()
      expect(items[items.length - 1]?.completion).toBeDefined()
      expect(service.requests()).toBeLessThan(250)
    }
  })
})

/** The rows that nobody touched and that a plain pass never received: it adds up page lengths until a page is short. */
const countRowsLostByOffsets = async (traits: Partial<ExportTraits>, seed: number): Promise<number> => {
  const service = simulateExport({ ...stableTraits, rows: 3000, ...traits }, seed)
  const before = service.truth()
  const received = new Set<string>()
  for (let offset = 0, length = 50; length === 50; offset += length) {
    const page = await service.reviews({ modifiedTimeFrom: '2025-01-01T00:00:00.000Z', offset, limit: 50 })()
    const rows = E.isRight(page) ? page.right.rows : []
    for (const { id } of rows) received.add(id)
    length = rows.length
  }
  const after = service.truth()
  return [...before].filter(([id, version]) => after.get(id) === version && !received.has(id)).length
}

test.each<[Order, number]>([
  ['ascending', 30],
  ['descending', 1],
  ['id', 4],
  ['ties', 180],
  ['random', 1000],
])('a plain pass by offset loses untouched rows, in the order %s at least %i of 3,000', async (order, least) => {
  const lost: number[] = []
  for (let seed = 0; seed < 5; seed++)
    lost.push(await countRowsLostByOffsets({ ...singleChanges, order, rowsPerTime: order === 'ties' ? 20 : 1 }, seed))
  expect(lost.reduce((a, b) => a + b) / lost.length).toBeGreaterThanOrEqual(least)
})

test('an unordered service is read in parts with at most twenty times the fewest requests', async () => {
  for (let seed = 0; seed < 10; seed++) {
    const service = simulateExport({ ...stableTraits, order: 'random', rows: 760, clamp: 30 }, seed)
    const { ids, failure } = await collect(service.reviews, { now: service.now })
    expect(failure).toBeUndefined()
    expect(new Set(ids).size).toBe(760)
    expect(service.requests()).toBeLessThan(20 * Math.ceil(760 / 30))
  }
})

describe('a scan loses rows without one of its safeguards:', () => {
  const lossy = async (
    traits: Partial<ExportTraits>,
    plan: Partial<SimulationPlan>,
    withoutSafeguard: Partial<SimulationPlan>,
  ): Promise<void> => {
    const countWrong = async (changes: Partial<SimulationPlan>): Promise<number> => {
      const outcomes = await Promise.all(
        Array.from({ length: 12 }, (_, seed) =>
          runSimulation({ ...stableTraits, rows: 300, ...traits }, { ...simplePlan, ...plan, seed, ...changes }),
        ),
      )
      return outcomes.filter(({ differences }) => differences.length > 0).length
    }
    expect(await countWrong({})).toBe(0)
    expect(await countWrong(withoutSafeguard)).toBeGreaterThan(0)
  }

  test('without witnesses', () =>
    lossy(
      { ...singleChanges, burstEvery: 5, burstSize: 60 },
      {},
      { reader: scanReader({ ...allScanRules, witness: false }) },
    ))
  test('without the overlap', () =>
    lossy(singleChanges, {}, { reader: scanReader({ ...allScanRules, overlap: false }) }))
  test('without the halving', () =>
    lossy({ order: 'random' }, {}, { reader: scanReader({ ...allScanRules, halving: false }) }))
  test('without the lookback', () => lossy({ ...singleChanges, lag: 500_000 }, { runs: 4 }, { lookback: 0 }))
  test('without the slack of a long pass, if Date is ahead of the clock that stamps rows', () =>
    lossy({ ...singleChanges, order: 'id', clockSkew: 5_400_000, latency: 120_000 }, { runs: 4 }, { slack: false }))
})

describe('a scan of a quiet service', () => {
  const overlap = (page: number): number => Math.min(Math.floor(page / 2), 10)

  test.each([0, 1, 2, 5, 49, 50, 51, 60, 61, 90, 91, 400])('reads %i rows in the fewest requests', async (rows) => {
    const service = simulateExport({ ...stableTraits, rows }, 1)
    const { ids, items } = await collect(service.reviews, { now: service.now })
    expect(ids.length).toBe(rows)
    expect(items.flatMap(({ notes }) => notes)).toEqual([])
    const page = Math.min(rows, 50)
    const most = rows === 0 ? 1 : rows === 1 ? 3 : Math.ceil(rows / (page - overlap(page))) + 2
    expect(service.requests()).toBeLessThanOrEqual(most)
  })

  test.each([1, 2, 3, 20])('reads everything if a page has %i rows whatever is asked for', async (clamp) => {
    const service = simulateExport({ ...stableTraits, rows: 45, clamp }, 1)
    const { ids } = await collect(service.reviews, { now: service.now })
    expect(new Set(ids).size).toBe(45)
  })

  test('prefetches pages, not more than allowed at a time, with the same result', async () => {
    const alone = await collect(simulateExport({ ...stableTraits, rows: 1000 }, 1).reviews)
    const service = simulateExport({ ...stableTraits, rows: 1000 }, 1)
    const ahead = await collect(service.reviews, { concurrency: 8 })
    expect(ahead.ids).toEqual(alone.ids)
    expect(ahead.items.map(({ rows }) => rows.length)).toEqual(alone.items.map(({ rows }) => rows.length))
    expect(service.mostPending()).toBe(8)
    expect(service.requests()).toBeLessThanOrEqual(Math.ceil(1000 / 40) + 2 + 7)
  })
})

describe('a scan', () => {
  test('sends all reviews without a mention time, which lie in no window', async () => {
    const service = simulateExport({ ...stableTraits, rows: 300, order: 'random', unmentioned: 0.1 }, 3)
    const { items } = await collect(service.reviews, { now: service.now })
    const unmentioned = items.flatMap(({ rows }) => rows).filter(({ raw }) => !raw.toString().includes('mentionTime'))
    expect(unmentioned.length).toBeGreaterThan(10)
    expect(new Set(unmentioned.map(({ id }) => id)).size).toBe(
      [...service.truth().keys()].length - new Set(mentionedIds(items)).size,
    )
  })

  test('reads the rows that changed places so that a page comes again', async () => {
    const limit = 30
    for (let by = 1; by < 60; by++) {
      const service = simulateExport({ ...stableTraits, rows: 60, rowsPerTime: 60 }, by)
      let requests = 0
      /** From the second request on the last rows are the first. */
      const turned: FetchPage = (request) =>
        TE.map((page: ExportPage): ExportPage => {
          requests += 1
          const rows = requests === 1 ? page.rows : [...page.rows.slice(-by), ...page.rows.slice(0, -by)]
          return { ...page, rows: rows.slice(request.offset, request.offset + request.limit) }
        })(service.reviews({ ...request, offset: 0, limit: 1000 }))
      const { ids, failure } = await collect(turned, { now: service.now, limit })
      expect(failure).toBeUndefined()
      expect(new Set(ids).size, `turned by ${by}`).toBe(60)
    }
  })

  test('gives up reading in rounds if the list grows faster than they read it', async () => {
    for (let seed = 0; seed < 2; seed++) {
      const growing = { order: 'random', rows: 60, clamp: 30, additions: 3, clockSkew: 86_400_000 } as const
      const outcome = await readOnce(growing, seed, { hasMentionTime: false })
      expect(outcome.failure).toMatch(/faster than they could be read.*cursor of the stream did not move/)
      expect(outcome.requests).toBeLessThan(300)
    }
  })

  test('sends a single review without a mention time on a service without order', async () => {
    for (const seed of [...Array(3 * scale).keys(), 56]) {
      const traits = { order: 'random', rows: 760, clamp: 30, unmentioned: 0.0015 } as const
      expect(await readOnce(traits, seed)).toMatchObject({ failure: undefined, missing: 0 })
    }
  })

  const twice = [3, 40, 320, 321]
  test.each([
    ['reviews', true],
    ['deletions', false],
  ])('reads a list in which some rows stand twice, far apart: %s', async (_, hasMentionTime) => {
    for (const clamp of [100, 1000]) {
      const service = simulateExport({ ...stableTraits, rows: 400, clamp: 1000 }, 1)
      const doubled: FetchPage = ({ offset, limit, ...request }) =>
        TE.map((page: ExportPage): ExportPage => {
          const rows = [...page.rows, ...page.rows.filter(({ id }) => twice.includes(Number(id)))]
          return { ...page, rows: rows.slice(offset, offset + Math.min(limit, clamp)) }
        })(service.reviews({ ...request, offset: 0, limit: 1000 }))
      const { ids, failure, items } = await collect(doubled, { hasMentionTime, now: service.now })
      expect(failure).toBeUndefined()
      expect(new Set(ids).size).toBe(400)
      expect(items.flatMap(({ notes }) => notes).map(({ message }) => message)).toContainEqual(
        expect.stringContaining('4 rows of the list are rows that it shows in another place too'),
      )
    }
  })

  test('does not take a row for one that stands twice where another page shows another row in its place', async () => {
    const service = simulateExport({ ...stableTraits, rows: 400 }, 1)
    const hiding: FetchPage = ({ offset, limit, ...request }) =>
      TE.map((page: ExportPage): ExportPage => {
        // The row at place 300 changes with the pages, and row 350 is never shown.
        const rows = page.rows.map((row, i) => page.rows[i === 300 ? (offset / 25) % 7 : i === 350 ? 0 : i] ?? row)
        return { ...page, rows: rows.slice(offset, offset + Math.min(limit, 100)) }
      })(service.reviews({ ...request, offset: 0, limit: 1000 }))
    const { failure } = await collect(hiding, { hasMentionTime: false, now: service.now })
    expect(failure).toMatch(/cursor of the stream did not move/)
  })

  test('reads a part that cannot be split until nothing new comes', async () => {
    for (let seed = 0; seed < 3; seed++) {
      const service = simulateExport({ ...stableTraits, rows: 300, order: 'random', clamp: 30 }, seed)
      const { ids, failure, items } = await collect(service.reviews, { hasMentionTime: false, now: service.now })
      expect(failure).toBeUndefined()
      expect(new Set(ids).size).toBe(300)
      expect(items.flatMap(({ notes }) => notes).map(({ message }) => message)).toContainEqual(
        expect.stringContaining('300 ids were held in memory'),
      )
    }
  })

  test('ends although rows keep arriving and Date is ahead of the clock that stamps them', async () => {
    const service = simulateExport(
      { ...stableTraits, changes: 5, additions: 2, deletions: 0.5, clockSkew: 1_200_000 },
      1,
    )
    const { failure, items } = await collect(service.reviews, { now: service.now })
    expect(failure).toBeUndefined()
    expect(items.at(-1)?.completion).toBeDefined()
    expect(service.requests()).toBeLessThan(30)
  })

  test.each([
    ['an hour', [3_600_000], 40],
    ['a year', [31_536_000_000], 40],
    ['two hours, a day and a century', [7_200_000, 86_400_000, 3_155_760_000_000], 50],
  ])(
    'ends although rows keep arriving and rows are dated in the future by %s',
    async (_, futureDates, mostRequests) => {
      for (const order of ['ascending', 'id'] as const) {
        const busy = { changes: 5, additions: 2, deletions: 0.5, clockSkew: 1_200_000, order, futureDates }
        const service = simulateExport({ ...stableTraits, ...busy }, 1)
        const { failure, items } = await collect(service.reviews, { now: service.now })
        expect(failure).toBeUndefined()
        expect(items.at(-1)?.completion).toBeDefined()
        expect(service.requests()).toBeLessThan(mostRequests)
      }
    },
  )

  test('fails without moving the cursor if a part cannot be split and never stops moving', async () => {
    const service = simulateExport({ ...stableTraits, rows: 0 }, 1)
    const moving: FetchPage = (request) => {
      service.sleep(1000)
      const rows = Array.from({ length: 50 }, (_, i) => {
        const id = String(Math.floor(service.now() / 1000) * 100 + i)
        return { id, modifiedTime: Date.UTC(2026, 0, 2), raw: Buffer.from('{}'), json: Buffer.from('{}') }
      })
      return TE.right({ rows: request.offset > 500 ? [] : rows, filter: {}, unknownPaths: [], servedAt: service.now() })
    }
    const { failure } = await collect(moving, { hasMentionTime: false })
    expect(failure).toMatch(/cursor of the stream did not move: run again/)
  })

  test('asks for half as many rows if a page is too large', async () => {
    const service = simulateExport({ ...stableTraits, rows: 200 }, 1)
    const tooLarge: ApiError = { _tag: 'TooLarge', bytes: 2, limit: 1 }
    const { ids, items } = await collect((request) =>
      request.limit > 12 ? TE.left(tooLarge) : service.reviews(request),
    )
    expect(new Set(ids).size).toBe(200)
    expect(items.flatMap(({ notes }) => notes).map(({ message }) => message)).toContainEqual(
      expect.stringContaining('asking for 12 rows at a time'),
    )
    const one = await collect(() => TE.left(tooLarge))
    expect(one.failure).toContain('max_response_mb')
  })

  const http = (status: number): ApiError => ({ _tag: 'Http', status, message: 'offset' })
  const refusals: ReadonlyArray<readonly [string, ApiError]> = [
    ...[204, 400, 403, 404, 405, 410, 413, 416, 422, 500, 501].map((status) => [String(status), http(status)] as const),
    ['an error with status 200', { _tag: 'Application', code: 'TOO_DEEP', message: 'offset' }],
    ['a code with status 200', { _tag: 'Application', code: '5030', message: 'offset 503 is too deep' }],
  ]

  describe.each(refusals)('takes an offset that the service refuses with %s for an empty page', (_, refusal) => {
    test.each([
      ['behind the last row', 200],
      ['deeper than the service allows, so that windows are read', 120],
    ])('%s', async (_, deepest) => {
      for (const concurrency of [1, 4]) {
        const service = simulateExport({ ...stableTraits, rows: 200 }, 1)
        let refused = 0
        const { ids, failure } = await collect(
          (request) => {
            if (request.offset < deepest) return service.reviews(request)
            refused += 1
            return TE.left(refusal)
          },
          { concurrency },
        )
        expect(failure).toBeUndefined()
        expect(new Set(ids).size).toBe(200)
        expect(refused).toBeLessThanOrEqual(10 * concurrency)
      }
    })

    test('of a window with few rows, and goes on asking for it in others', async () => {
      const service = simulateExport({ ...stableTraits, rows: 60, order: 'random', clamp: 20, unmentioned: 0.3 }, 1)
      const { ids, failure } = await collect((request) =>
        pipe(
          service.reviews(request),
          TE.filterOrElse(
            ({ rows }) => request.offset === 0 || rows.length > 0,
            () => refusal,
          ),
        ),
      )
      expect(failure).toBeUndefined()
      expect(new Set(ids).size).toBe(60)
    })

    test('but fails without a certificate if the export cannot be split', async () => {
      const service = simulateExport({ ...stableTraits, rows: 200, clamp: 50 }, 1)
      const { failure, items } = await collect(
        (request) => (request.offset >= 120 ? TE.left(refusal) : service.reviews(request)),
        { hasMentionTime: false },
      )
      expect(failure).toMatch(/the service refuses offset \d+.*cursor of the stream did not move/)
      expect(items.every(({ completion }) => completion === undefined)).toBe(true)
    })
  })

  test('ends where rows after the cutoff change places at the end of the list', async () => {
    for (let seed = 1; seed <= 20; seed += 1) {
      const next = random(seed)
      const service = simulateExport({ ...stableTraits, rows: 3 }, seed)
      const late = Date.UTC(2026, 0, 31)
      const { ids, failure } = await collect((request) =>
        request.offset >= 3
          ? TE.left(http(416))
          : pipe(
              service.reviews({ ...request, offset: 0 }),
              TE.map((page) => ({
                ...page,
                servedAt: late - 5_400_000,
                rows: page.rows
                  .map((row) => ({ row: { ...row, modifiedTime: late }, place: next() }))
                  .sort((a, b) => a.place - b.place)
                  .map(({ row }) => row)
                  .slice(request.offset),
              })),
            ),
      )
      expect(failure).toBeUndefined()
      expect(ids).toEqual([])
    }
  })

  test.each([401, 408, 429, 502, 503, 504])('fails if the service answers %i at further offsets', async (status) => {
    const service = simulateExport({ ...stableTraits, rows: 200 }, 1)
    const { failure } = await collect((request) =>
      request.offset > 0 ? TE.left(http(status)) : service.reviews(request),
    )
    expect(failure).toContain(String(status))
  })

  const outages: ReadonlyArray<readonly [code: string, message: string]> = [
    ...[408, 429, 502, 503, 504].map((status) => [String(status), 'offset'] as const),
    ['HTTP_503', 'offset'],
    ['503.0', 'offset'],
    ['SERVICE_UNAVAILABLE', 'offset'],
    ['TooManyRequests', 'offset'],
    ['gateway-timeout', 'offset'],
    ['none', '503 Service Unavailable'],
    ['7', 'Too *** requests'],
  ]
  test.each(outages)(
    'fails if an error with status 200 at further offsets is an outage: %s, %s',
    async (code, message) => {
      const service = simulateExport({ ...stableTraits, rows: 200 }, 1)
      const { failure, items } = await collect((request) =>
        request.offset > 0 ? TE.left({ _tag: 'Application', code, message }) : service.reviews(request),
      )
      expect(failure).toContain(`application error (code ${code})`)
      expect(items.every(({ completion }) => completion === undefined)).toBe(true)
    },
  )

  test('does not take an expired token for an empty page', async () => {
    const service = simulateExport({ ...stableTraits, rows: 200 }, 1)
    let expired = false
    const { failure } = await collect((request) => {
      expired ||= request.offset > 100
      return expired ? TE.left({ _tag: 'Http', status: 400, message: 'token' }) : service.reviews(request)
    })
    expect(failure).toContain('(400)')
  })

  test('does not split by the sources of an echo if none were asked for', async () => {
    const service = simulateExport({ ...stableTraits, rows: 300, order: 'random' }, 1)
    const limits: number[] = []
    const { ids } = await collect(
      (request) => {
        limits.push(request.limit)
        return TE.map((page: ExportPage) => ({ ...page, filter: { sources: [1, 2, 3] } }))(service.reviews(request))
      },
      { hasMentionTime: false },
    )
    expect(new Set(ids).size).toBe(300)
    expect(new Set(limits)).toEqual(new Set([50, 1000]))
  })

  test('names the operation in an error', async () => {
    const { failure } = await collect(() => TE.left({ _tag: 'Http', status: 503, message: '' }))
    expect(failure).toContain('export reviews: the service answered 503')
  })

  test('ignores a prefetched page that fails and is not needed', async () => {
    const service = simulateExport({ ...stableTraits, rows: 200 }, 1)
    const fetch: FetchPage = (request) =>
      request.offset >= 200 && request.offset % 40 === 0 && request.offset !== 200
        ? () => Promise.reject(new Error('the page is not needed'))
        : service.reviews(request)
    const { ids, failure } = await collect(fetch, { concurrency: 6 })
    expect(failure).toBeUndefined()
    expect(ids.length).toBe(200)
  })
})

/** Reads a service with these traits, waits included, and counts the rows that a complete scan lacks. */
const readOnce = async (traits: Partial<ExportTraits>, seed: number, env: Partial<ScanEnv> = {}) => {
  const service = simulateExport({ ...stableTraits, ...traits }, seed)
  const { ids, failure } = await collect(service.reviews, {
    now: service.now,
    wait: (millis) => async () => service.sleep(millis),
    ...env,
  })
  const read = new Set(ids)
  const missing = failure === undefined ? [...service.truth().keys()].filter((id) => !read.has(id)).length : 0
  return { failure, missing, requests: service.requests() }
}

describe('a scan of a quiet service is complete with all rows although', () => {
  const tieOrders: ReadonlyArray<TieOrder> = ['replicas', 'merged', 'rotated']
  const worlds = tieOrders.flatMap((ties) =>
    (['ascending', 'descending'] as const).flatMap((order) =>
      [40, 600].map((rowsPerTime) => [ties, order, rowsPerTime] as const),
    ),
  )
  test.each(worlds)(
    'rows with one modifiedTime change place: %s, %s, %i rows each',
    async (ties, order, rowsPerTime) => {
      for (let seed = 0; seed < 3 * scale; seed++) {
        const traits = { ties, order, rowsPerTime, rows: 700 }
        const outcome = await readOnce(traits, seed, { concurrency: seed % 2 === 0 ? 1 : 4 })
        expect(outcome).toMatchObject({ failure: undefined, missing: 0 })
        expect(outcome.requests).toBeLessThan(12 * Math.ceil(700 / 40))
      }
    },
  )

  test.each(['ascending', 'descending', 'id'] as const)('its first page lacks rows: %s', async (order) => {
    for (let seed = 0; seed < 5 * scale; seed++) {
      const outcome = await readOnce({ order, lackingRows: 1 + (seed % 8), rows: 40 + 60 * seed }, seed)
      expect(outcome).toMatchObject({ failure: undefined, missing: 0 })
    }
  })

  test.each([
    ['matches reviews without a mention time with every window', 'lenient'],
    ['ignores the filters by mention time', 'ignored'],
    ['has no order', 'kept'],
  ] as const)('it %s, and many have none', async (_, mentionFilter) => {
    for (let seed = 0; seed < scale; seed++) {
      const traits = { order: 'random', rows: 500, unmentioned: 0.4, mentionFilter } as const
      const outcome = await readOnce(traits, seed)
      expect(outcome).toMatchObject({ failure: undefined, missing: 0 })
      expect(outcome.requests).toBeLessThan(30 * Math.ceil(500 / 50))
    }
  })
})

/** A list that only shrinks between two runs. */
const startList = (order: 'modifiedTime' | 'id' | 'newest first', count: number) => {
  const start = Date.UTC(2026, 0, 1)
  const draw = random(count)
  const times = Array.from(
    { length: count },
    (_, i) => start + 60_000 * (order === 'id' ? Math.floor(draw() * count) : i),
  )
  let rows = (order === 'newest first' ? times.reverse() : times).map((modifiedTime, i): CutRecord => {
    const raw = Buffer.from(JSON.stringify({ id: i, modifiedTime: toInstant(modifiedTime) }))
    return { id: String(i), modifiedTime, raw, json: raw }
  })
  let requests = 0
  const fetch: FetchPage = ({ offset, limit }) => {
    requests += 1
    return TE.right({ rows: rows.slice(offset, offset + limit), filter: {}, unknownPaths: [], servedAt: start + 1e10 })
  }
  const removeAmongFirst = (place: number, removed: number): void => {
    const gone = new Set<number>()
    while (gone.size < removed) gone.add(Math.floor(draw() * place))
    rows = rows.filter((_, i) => !gone.has(i))
  }
  return { fetch, removeAmongFirst, requests: () => requests, ids: () => rows.map(({ id }) => id) }
}

describe('a scan goes on at its place, or near by, although rows in front of it were deleted:', () => {
  test.each(
    (['modifiedTime', 'id', 'newest first'] as const).flatMap((order) =>
      [0, 5, 20, 60, 300, 1000, 2000].map((removed) => [order, removed] as const),
    ),
  )('by %s, %i of 3,000', async (order, removed) => {
    const list = startList(order, 6000)
    const now = () => Date.UTC(2026, 5, 1)
    const start = { origin: { startDate: Date.UTC(2025, 0, 1), cursor: O.none, lookback: 600_000 }, filters: {} }
    const env = { operation: 'export reviews', fetch: list.fetch, now, concurrency: 4, limit: 50, hasMentionTime: true }
    const before: string[] = []
    let token: ScanStart['resumeToken'] = O.none
    for await (const item of scan(env)({ ...start, resumeToken: O.none })) {
      if (E.isLeft(item)) throw new Error(item.left.message)
      before.push(...idsOf(item.right))
      token = decodeResumeToken(JSON.parse(JSON.stringify(item.right.resumeToken())))
      if (before.length >= 3000) break
    }
    list.removeAmongFirst(3000, removed)
    const asked = list.requests()
    const { ids, items } = await collect(list.fetch, { now, concurrency: 4 }, { ...start, resumeToken: token })
    expect(items.flatMap(({ notes }) => notes)).toEqual([])
    const all = new Set([...before, ...ids])
    expect(list.ids().filter((id) => !all.has(id))).toEqual([])
    // What is left, what rewinding by twice the deletions brings again, and a few pages to find the place.
    expect(list.requests() - asked).toBeLessThan((3000 + 2 * removed) / 30 + 25)
  })
})

describe('an end that contradicts what was read', () => {
  /** Answers the requests from the `first` one to before the `last` one with `change`. */
  const interrupt = (
    fetch: FetchPage,
    first: number,
    last: number,
    change: (page: ExportPage) => ExportPage,
  ): FetchPage => {
    let count = 0
    return (request) => {
      count += 1
      return count >= first && count < last ? TE.map(change)(fetch(request)) : fetch(request)
    }
  }
  const empty = (page: ExportPage): ExportPage => ({ ...page, rows: [] })
  const keep =
    (length: number) =>
    (page: ExportPage): ExportPage => ({ ...page, rows: page.rows.slice(0, length) })

  const worlds = [
    ['empty', empty],
    ['of one row', keep(1)],
    ['of four rows', keep(4)],
  ] as const
  const orders = ['ascending', 'descending', 'random'] as const

  test.each(worlds.flatMap(([name, change]) => orders.map((order) => [name, order, change] as const)))(
    'never ends the scan while answers are %s for a while: %s',
    async (_, order, change) => {
      for (const length of [2, 7])
        for (let first = 3; first < 18; first += Math.ceil(6 / scale)) {
          const service = simulateExport({ ...stableTraits, order, rows: 200 }, first)
          const { ids, failure } = await collect(interrupt(service.reviews, first, first + length, change), {
            now: service.now,
          })
          if (failure === undefined) expect(new Set(ids).size, `${length} from ${first}`).toBe(200)
          else expect(failure).toContain('the list ends before rows that the service has shown')
        }
    },
  )

  test('is waited out', async () => {
    const service = simulateExport({ ...stableTraits, rows: 600 }, 1)
    const waits: number[] = []
    const { ids, failure, items } = await collect(interrupt(service.reviews, 4, 8, empty), {
      now: service.now,
      wait: (millis) => async () => void waits.push(millis),
    })
    expect(failure).toBeUndefined()
    expect(new Set(ids).size).toBe(600)
    expect(waits.length).toBeGreaterThan(0)
    expect(items.flatMap(({ notes }) => notes).map(({ level }) => level)).toEqual(waits.map(() => 'info'))
  })

  test('fails the scan if it stays, after a bounded time, and the next run begins anew', async () => {
    for (const order of ['ascending', 'random'] as const) {
      const service = simulateExport({ ...stableTraits, order, rows: 600 }, 1)
      const waits: number[] = []
      const { failure, items } = await collect(interrupt(service.reviews, 4, 1e6, empty), {
        now: service.now,
        wait: (millis) => async () => void waits.push(millis),
      })
      expect(failure).toMatch(/in 6 answers within 15.5 s. The cursor of the stream did not move: run again/)
      expect(waits).toEqual([500, 1000, 2000, 4000, 8000])
      const token = items.at(-1)?.resumeToken()
      expect(token).toMatchObject({ taken: 0, trail: [], windows: [{ kind: 'part' }] })
      const again = await collect(service.reviews, { now: service.now }, { resumeToken: O.fromNullable(token) })
      expect(again.failure).toBeUndefined()
      expect(new Set(again.ids).size).toBe(600)
    }
  })

  test('is believed if some of the last rows are gone for good', async () => {
    const service = simulateExport({ ...stableTraits, rows: 75 }, 1)
    let count = 0
    const { failure, ids } = await collect(
      (request) => {
        count += 1
        return count < 3
          ? service.reviews(request)
          : TE.map(({ rows, ...page }: ExportPage) => ({ ...page, rows: rows.filter(({ id }) => Number(id) <= 72) }))(
              service.reviews(request),
            )
      },
      { now: service.now },
    )
    expect(failure).toBeUndefined()
    expect(new Set(ids).size).toBe(75)
  })
})

test('a limit lowered untold is not taken for the end', async () => {
  for (const order of ['ascending', 'descending', 'id'] as const)
    for (let seed = 0; seed < 3 * scale; seed++) {
      const lowered = { lowerAfter: 4 + (seed % 7), lowerLimit: 8 + (seed % 5) * 8 }
      const quiet = await readOnce({ order, rows: 400, ...lowered }, seed)
      expect(quiet).toMatchObject({ failure: undefined, missing: 0 })
      expect(quiet.requests).toBeLessThan((3 * 400) / lowered.lowerLimit)
    }
})

test.each([
  ['descending', 4, 8, 6, 60, 0, 6],
  ['descending', 4, 8, 6, 60, 1, 1],
  ['descending', 8, 24, 6, 200, 3, 6],
  ['id', 3, 8, 3, 60, 1, 1],
  ['id', 8, 8, 6, 60, 2, 4],
] as const)(
  'a limit lowered untold is not taken for the end while many rows change at once: %s, after %i, to %i',
  async (order, lowerAfter, lowerLimit, burstEvery, burstSize, seed, concurrency) => {
    const traits = { ...stableTraits, order, rows: 400, lowerAfter, lowerLimit, burstEvery, burstSize }
    const service = simulateExport(traits, seed)
    const before = service.truth()
    const { ids, failure } = await collect(service.reviews, {
      concurrency,
      now: service.now,
      wait: (millis) => async () => service.sleep(millis),
    })
    const read = new Set(ids)
    const isLost = ([id, version]: readonly [string, number]) => before.get(id) === version && !read.has(id)
    if (failure === undefined) expect([...service.truth()].filter(isLost)).toEqual([])
    else expect(failure).toContain('the list ends before rows that the service has shown')
  },
)
