import fc from 'fast-check'
import * as E from 'fp-ts/Either'
import * as O from 'fp-ts/Option'
import * as TE from 'fp-ts/TaskEither'
import { describe, expect, test } from 'vitest'
import type { ApiError } from '../../../connector/api/error'
import type { ExportPage, FetchPage } from '../../../connector/export/export-page'
import { allScanRules } from '../../../connector/export/scan/pass'
import { type ScanEnv, type ScanItem, type ScanStart, scan } from '../../../connector/export/scan/scan'
import { anySimulationPlan, anyTraits, orders } from '../../support/export-arbitraries'
import { runSimulation, type SimulationPlan } from '../../support/export-runs'
import { type ExportTraits, simulateExport, stableTraits } from '../../support/export-simulation'

const numRuns = Number(process.env.SCAN_RUNS ?? 150)
const seed = process.env.SCAN_SEED === undefined ? {} : { seed: Number(process.env.SCAN_SEED) }

const plain: SimulationPlan = { seed: 1, limit: 50, concurrency: 1, sorted: false, runs: 2, crashes: false }
const trickle: Partial<ExportTraits> = { changes: 1, deletions: 0.2, additions: 0.5 }

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
    order: 'unspecified',
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
  }
  return { items, ids: items.flatMap(idsOf), failure: undefined }
}
const idsOf = ({ rows }: ScanItem): string[] => rows.map(({ id }) => id)

describe('a service that moves', () => {
  test('equals the destination after a quiet run', { timeout: 30_000 + numRuns * 200 }, async () => {
    await fc.assert(
      fc.asyncProperty(anyTraits, anySimulationPlan, async (weather, plan) => {
        const outcome = await runSimulation(weather, plan)
        expect(outcome.unfinished).toEqual([])
        expect(outcome.differences).toEqual([])
      }),
      { numRuns, ...seed },
    )
  })

  test.each(orders)('sends nothing again once it is quiet: %s', async (order) => {
    const { repeated } = await runSimulation({ ...stableTraits, ...trickle, order, rows: 300 }, plain)
    expect(repeated).toEqual([])
  })

  test.each(['ascending', 'descending', 'id'] as const)(
    'costs few requests and sends a key once while it trickles: %s',
    async (order) => {
      for (const concurrency of [1, 4])
        for (let at = 0; at < 5; at++) {
          const service = simulateExport({ ...stableTraits, ...trickle, order, rows: 2000 }, at)
          const { ids, failure } = await collect(service.reviews, { concurrency, now: service.now })
          expect(failure).toBeUndefined()
          expect(new Set(ids).size).toBe(ids.length)
          expect(service.requests()).toBeLessThanOrEqual(1.25 * (Math.ceil(2000 / 40) + 2) + concurrency - 1)
        }
    },
  )

  test.each(['ascending', 'descending', 'id'] as const)('does not keep a pass from ending: %s', async (order) => {
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
    for (let at = 0; at < 5; at++) {
      const service = simulateExport(busy, at)
      const { failure, items } = await collect(service.reviews, { now: service.now })
      expect(failure).toBeUndefined()
      expect(items[items.length - 1]?.completion).toBeDefined()
      expect(service.requests()).toBeLessThan(250)
    }
  })
})

test('an unordered service is read in parts at a price that can be told', async () => {
  for (let at = 0; at < 10; at++) {
    const service = simulateExport({ ...stableTraits, order: 'random', rows: 760, clamp: 30 }, at)
    const { ids, failure } = await collect(service.reviews, { now: service.now })
    expect(failure).toBeUndefined()
    expect(new Set(ids).size).toBe(760)
    expect(service.requests()).toBeLessThan(12 * Math.ceil(760 / 30))
  }
})

describe('without one of its safeguards it loses rows:', () => {
  const lossy = async (
    weather: Partial<ExportTraits>,
    plan: Partial<SimulationPlan>,
    mutilated: Partial<SimulationPlan>,
  ): Promise<void> => {
    const lost = async (extra: Partial<SimulationPlan>): Promise<number> => {
      const outcomes = await Promise.all(
        Array.from({ length: 12 }, (_, at) =>
          runSimulation({ ...stableTraits, rows: 300, ...weather }, { ...plain, ...plan, seed: at, ...extra }),
        ),
      )
      return outcomes.filter(({ differences }) => differences.length > 0).length
    }
    expect(await lost({})).toBe(0)
    expect(await lost(mutilated)).toBeGreaterThan(0)
  }

  test('the witness', () =>
    lossy({ ...trickle, burstEvery: 5, burstSize: 60 }, {}, { rules: { ...allScanRules, witness: false } }))
  test('the overlap', () => lossy(trickle, {}, { rules: { ...allScanRules, overlap: false } }))
  test('the halving', () => lossy({ order: 'random' }, {}, { rules: { ...allScanRules, halving: false } }))
  test('the lookback', () => lossy({ ...trickle, lag: 500_000 }, { runs: 4 }, { lookback: 0 }))
  test('the slack of a long pass, where Date is ahead of the clock that stamps rows', () =>
    lossy({ ...trickle, order: 'id', clockSkew: 5_400_000, latency: 120_000 }, { runs: 4 }, { slack: false }))
})

describe('a quiet service', () => {
  const overlap = (page: number): number => Math.min(Math.floor(page / 2), 10)

  test.each([0, 1, 2, 5, 49, 50, 51, 60, 61, 90, 91, 400])(
    'serves %i rows in as few requests as can be',
    async (rows) => {
      const service = simulateExport({ ...stableTraits, rows }, 1)
      const { ids, items } = await collect(service.reviews, { now: service.now })
      expect(ids.length).toBe(rows)
      expect(items.flatMap(({ notes }) => notes)).toEqual([])
      const page = Math.min(rows, 50)
      const most = rows === 0 ? 1 : rows === 1 ? 3 : Math.ceil(rows / (page - overlap(page))) + 2
      expect(service.requests()).toBeLessThanOrEqual(most)
    },
  )

  test.each([1, 2, 3, 20])('may serve %i rows a page, whatever is asked for', async (clamp) => {
    const service = simulateExport({ ...stableTraits, rows: 45, clamp }, 1)
    const { ids } = await collect(service.reviews, { now: service.now })
    expect(new Set(ids).size).toBe(45)
  })

  test('is asked for pages ahead, not more than allowed at a time, for the same result', async () => {
    const alone = await collect(simulateExport({ ...stableTraits, rows: 1000 }, 1).reviews)
    const service = simulateExport({ ...stableTraits, rows: 1000 }, 1)
    const ahead = await collect(service.reviews, { concurrency: 8 })
    expect(ahead.ids).toEqual(alone.ids)
    expect(ahead.items.map(({ rows }) => rows.length)).toEqual(alone.items.map(({ rows }) => rows.length))
    expect(service.mostUnderWay()).toBe(8)
    expect(service.requests()).toBeLessThanOrEqual(Math.ceil(1000 / 40) + 2 + 7)
  })

  test('in the order of modifiedTime is read without deep offsets, each page a safe cursor', async () => {
    const service = simulateExport({ ...stableTraits, rows: 1000, rowsPerTime: 120 }, 1)
    const offsets: number[] = []
    const { ids, items } = await collect(
      (request) => {
        offsets.push(request.offset)
        return service.reviews(request)
      },
      { order: 'modified_time' },
    )
    expect(new Set(ids).size).toBe(1000)
    expect(Math.max(...offsets)).toBeLessThan(200)
    expect(items.filter(({ safeCursor }) => safeCursor !== undefined).length).toBeGreaterThan(5)
  })

  test('that does not keep the order it is said to keep is read all the same, with a warning', async () => {
    const service = simulateExport({ ...stableTraits, rows: 300, order: 'descending' }, 1)
    const { ids, items } = await collect(service.reviews, { order: 'modified_time' })
    expect(new Set(ids).size).toBe(300)
    expect(items.flatMap(({ notes }) => notes).map(({ message }) => message)).toContainEqual(
      expect.stringContaining('set export_order to unspecified'),
    )
  })
})

describe('what it says', () => {
  test('reviews without a mention time are sent where windows cannot find them, and counted', async () => {
    const service = simulateExport({ ...stableTraits, rows: 300, order: 'random', unmentioned: 0.1 }, 3)
    const { items } = await collect(service.reviews, { now: service.now })
    const unmentioned = items.flatMap(({ rows }) => rows).filter(({ raw }) => !raw.toString().includes('mentionTime'))
    expect(unmentioned.length).toBeGreaterThan(10)
    expect(items.flatMap(({ notes }) => notes).map(({ message }) => message)).toContainEqual(
      expect.stringMatching(/\d+ reviews without a mention time/),
    )
  })

  test('a part that no filter can cut and that never settles ends the scan, its cursor unmoved', async () => {
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

  test('a page that is too large is asked for again in halves', async () => {
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

  test.each([
    ['behind the last row', 200],
    ['beyond a depth of its own, so that it is read in windows', 120],
  ])('an offset that the service refuses %s is an empty page', async (_, deepest) => {
    const service = simulateExport({ ...stableTraits, rows: 200 }, 1)
    const refused: ApiError = { _tag: 'Http', status: 400, message: 'offset' }
    const { ids, failure } = await collect((request) =>
      request.offset >= deepest ? TE.left(refused) : service.reviews(request),
    )
    expect(failure).toBeUndefined()
    expect(new Set(ids).size).toBe(200)
  })

  test('a token that expires behind the first page is no empty page', async () => {
    const service = simulateExport({ ...stableTraits, rows: 200 }, 1)
    let expired = false
    const { failure } = await collect((request) => {
      expired ||= request.offset > 100
      return expired ? TE.left({ _tag: 'Http', status: 400, message: 'token' }) : service.reviews(request)
    })
    expect(failure).toContain('(400)')
  })

  test('the default selection of sources in an echo is not taken for all there are', async () => {
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

  test('an error of the service names the operation', async () => {
    const { failure } = await collect(() => TE.left({ _tag: 'Http', status: 503, message: '' }))
    expect(failure).toContain('export reviews: the service answered 503')
  })

  test('a failing page that was asked for ahead and is not wanted harms nothing', async () => {
    const service = simulateExport({ ...stableTraits, rows: 200 }, 1)
    const fetch: FetchPage = (request) =>
      request.offset >= 200 && request.offset % 40 === 0 && request.offset !== 200
        ? () => Promise.reject(new Error('nobody waits for this'))
        : service.reviews(request)
    const { ids, failure } = await collect(fetch, { concurrency: 6 })
    expect(failure).toBeUndefined()
    expect(ids.length).toBe(200)
  })
})
