import fc from 'fast-check'
import * as E from 'fp-ts/Either'
import { describe, expect, test } from 'vitest'
import { drawCount, draws } from '../support/draws'
import { anySimulationPlan, anyTraits, orders } from '../support/export-arbitraries'
import { runSimulation, type SimulationPlan } from '../support/export-runs'
import {
  type ExportTraits,
  type Order,
  simulateExport,
  stableTraits,
  type TieOrder,
} from '../support/export-simulation'
import { readService } from '../support/read-list'

/** How much more than `npm test` the simulations of single worlds try. */
const scale = drawCount(1)

const simplePlan: SimulationPlan = { seed: 1, limit: 50, concurrency: 1, runs: 2, crashes: false }
const singleChanges: Partial<ExportTraits> = { changes: 1, deletions: 0.2, additions: 0.5 }

/** Reads a service with these traits once, and counts the rows that a complete read lacks. */
const readOnce = async (traits: Partial<ExportTraits>, seed: number, env: Parameters<typeof readService>[1] = {}) => {
  const service = simulateExport({ ...stableTraits, ...traits }, seed)
  const { read, failure, ids, notes, isComplete } = await readService(service, env)
  const missing = failure === undefined ? [...service.truth().keys()].filter((id) => !read.has(id)).length : 0
  return { failure: failure?.message, missing, requests: service.requests(), ids, notes, isComplete, service }
}
const complete = { failure: undefined, missing: 0 }

/**
 * An answer that lacks rows breaks A1, and a short page A2: only then may a stream of a quiet service end INCOMPLETE.
 */
const mayEndIncomplete = ({ lackingRows, shortPages }: ExportTraits): boolean => lackingRows > 0 || shortPages

describe('a read of a service that changes meanwhile', () => {
  test('makes the destination equal to the service after a quiet run', async () => {
    await fc.assert(
      fc.asyncProperty(anyTraits, anySimulationPlan, async (traits, plan) => {
        const { differences, unfinished } = await runSimulation(traits, plan)
        if (unfinished.length > 0) {
          expect(mayEndIncomplete(traits), unfinished.join()).toBe(true)
          for (const message of unfinished) expect(message).toMatch(/The cursor of the stream did not move/)
        } else expect(differences).toEqual([])
      }),
      draws(80),
    )
  })

  const lacking: Partial<ExportTraits> = { inclusive: true, echo: true, lackingRows: 8 }
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
        ...{ ...singleChanges, order: 'descending', ties: 'replicas', clamp: 30, rows: 395, lag: 60_000 },
        ...{ clockSkew: 1_200_000, shortPages: true, unmentioned: 0.1, echo: true, futureDates: [600_000] },
        latency: 30_000,
      },
      { seed: -19, runs: 4 },
    ],
    [
      'all answers are empty for a moment when a stopped read goes on with its windows',
      {
        ...{ order: 'random', ties: 'merged', rows: 90, rowsPerTime: 7, burstSize: 15, inclusive: false, echo: false },
        ...{ unmentioned: 0.1, futureDates: [10_800_000], outageEvery: 20, outageTime: 5000 },
        clockSkew: undefined,
      },
      { seed: 1_719_834_993, runs: 3, crashes: true },
    ],
  ])('makes the destination equal to the service in a world that was wrong once: %s', async (_, traits, plan) => {
    const outcome = await runSimulation({ ...stableTraits, ...traits }, { ...simplePlan, ...plan })
    // An answer that always lacks rows may leave a read in rounds INCOMPLETE (A1).
    if (traits.lackingRows === undefined) expect(outcome.unfinished).toEqual([])
    if (outcome.unfinished.length === 0) expect(outcome.differences).toEqual([])
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
          const { ids, failure, requests } = await readOnce({ ...singleChanges, order, rows: 2000 }, seed, {
            concurrency,
          })
          expect(failure).toBeUndefined()
          expect(new Set(ids).size).toBe(ids.length)
          expect(requests).toBeLessThanOrEqual(1.25 * (Math.ceil(2000 / 40) + 2) + concurrency - 1)
        }
    },
  )

  const busy = { rows: 1000, changes: 5, additions: 2, deletions: 0.5, burstEvery: 15, burstSize: 60 }
  test.each(['ascending', 'descending', 'id'] as const)('ends although the service is busy: %s', async (order) => {
    const reads = await Promise.all([0, 1, 2, 3, 4].map((seed) => readOnce({ ...busy, order }, seed)))
    // In a list that changes by more than its pages overlap, a run may end INCOMPLETE.
    expect(reads.filter(({ isComplete }) => isComplete).length).toBeGreaterThanOrEqual(4)
    for (const { isComplete, requests } of reads) if (isComplete) expect(requests).toBeLessThan(500)
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

describe('a read loses rows', () => {
  const lossy = async (traits: Partial<ExportTraits>, without: Partial<SimulationPlan>): Promise<void> => {
    const countWrong = async (changes: Partial<SimulationPlan>): Promise<number> => {
      const outcomes = await Promise.all(
        Array.from({ length: 12 }, (_, seed) =>
          runSimulation({ ...stableTraits, rows: 300, ...traits }, { ...simplePlan, runs: 4, seed, ...changes }),
        ),
      )
      return outcomes.filter(({ differences }) => differences.length > 0).length
    }
    expect(await countWrong({})).toBe(0)
    expect(await countWrong(without)).toBeGreaterThan(0)
  }

  test('without the lookback', () => lossy({ ...singleChanges, lag: 500_000 }, { lookback: 0 }))
  test('without the slack of a long read, if Date is ahead of the clock that stamps rows', () =>
    lossy({ ...singleChanges, order: 'id', clockSkew: 5_400_000, latency: 120_000 }, { slack: false }))
})

describe('a read of a quiet service', () => {
  test.each([
    [0, 2],
    [1, 2],
    [2, 2],
    [300, 2],
    [999, 2],
    [1000, 3],
    [5000, 7],
  ])('has %i rows with pages of 1,000 in %i requests', async (rows, most) => {
    for (const order of ['ascending', 'descending', 'id'] as const) {
      const { ids, failure, missing, requests, notes } = await readOnce({ rows, order }, 1, { limit: 1000 })
      expect({ failure, missing, notes }).toEqual({ ...complete, notes: [] })
      expect(ids.length).toBe(rows)
      expect(requests).toBeLessThanOrEqual(most)
    }
  })

  test.each([5, 49, 50, 51, 60, 61, 90, 91, 400])('has %i rows in the fewest requests', async (rows) => {
    const { ids, failure, requests } = await readOnce({ rows }, 1)
    expect(failure).toBeUndefined()
    expect(ids.length).toBe(rows)
    expect(requests).toBeLessThanOrEqual(Math.ceil(rows / 40) + 2)
  })

  test.each([2, 3, 20])('has all rows if a page has %i whatever is asked for', async (clamp) => {
    expect(await readOnce({ rows: 45, clamp }, 1)).toMatchObject(complete)
  })

  test('in no order is read in at most twenty times the fewest requests', async () => {
    for (let seed = 0; seed < 10 * scale; seed++) {
      const outcome = await readOnce({ order: 'random', rows: 760, clamp: 30 }, seed)
      expect(outcome).toMatchObject(complete)
      expect(outcome.requests).toBeLessThan(20 * Math.ceil(760 / 30))
    }
  })

  test.each(['ascending', 'random'] as const)(
    'asks ahead, for no more pages than allowed, with the same result: %s',
    async (order) => {
      const alone = await readOnce({ rows: 1000, order }, 1)
      const ahead = await readOnce({ rows: 1000, order }, 1, { concurrency: 8 })
      expect(ahead).toMatchObject(complete)
      expect(new Set(ahead.ids)).toEqual(new Set(alone.ids))
      if (order === 'ascending') expect(ahead.ids).toEqual(alone.ids)
      expect(ahead.service.mostPending()).toBe(8)
      expect(ahead.requests).toBeLessThanOrEqual(alone.requests + (order === 'ascending' ? 7 : 100))
    },
  )

  const tieOrders: ReadonlyArray<TieOrder> = ['replicas', 'merged', 'rotated']
  test.each(
    tieOrders.flatMap((ties) =>
      (['ascending', 'descending'] as const).flatMap((order) =>
        [40, 600].map((rowsPerTime) => [ties, order, rowsPerTime] as const),
      ),
    ),
  )(
    'has all rows although those of one modifiedTime change places: %s, %s, %i rows each',
    async (ties, order, rowsPerTime) => {
      for (let seed = 0; seed < 3 * scale; seed++) {
        const traits = { ties, order, rowsPerTime, rows: 700 }
        const outcome = await readOnce(traits, seed, { concurrency: seed % 2 === 0 ? 1 : 4 })
        expect(outcome).toMatchObject(complete)
        expect(outcome.requests).toBeLessThan(12 * Math.ceil(700 / 40))
      }
    },
  )

  test.each(['ascending', 'descending', 'id'] as const)(
    'is never complete without a row that its first answer lacks: %s',
    async (order) => {
      for (let seed = 0; seed < 5 * scale; seed++) {
        const outcome = await readOnce({ order, lackingRows: 1 + (seed % 8), rows: 40 + 60 * seed }, seed)
        expect(outcome).toMatchObject(complete)
      }
    },
  )

  test.each([
    ['matches reviews without a mention time with every window', 'lenient'],
    ['ignores the filters by mention time', 'ignored'],
    ['has no order', 'kept'],
  ] as const)('has all rows although it %s, and many reviews have no mention time', async (_, mentionFilter) => {
    for (let seed = 0; seed < 3 * scale; seed++) {
      const traits = { order: 'random', rows: 500, unmentioned: 0.4, mentionFilter } as const
      const outcome = await readOnce(traits, seed)
      expect(outcome).toMatchObject(complete)
      expect(outcome.requests).toBeLessThan(30 * Math.ceil(500 / 50))
    }
  })

  test('has a single review without a mention time although it keeps no order', async () => {
    for (const seed of [...Array(3 * scale).keys(), 56])
      expect(await readOnce({ order: 'random', rows: 760, clamp: 30, unmentioned: 0.0015 }, seed)).toMatchObject(
        complete,
      )
  })

  test('does not take a limit that was lowered meanwhile for the end', async () => {
    for (const order of ['ascending', 'descending', 'id'] as const)
      for (let seed = 0; seed < 3 * scale; seed++) {
        const lowered = { lowerAfter: 4 + (seed % 7), lowerLimit: 8 + (seed % 5) * 8 }
        const outcome = await readOnce({ order, rows: 400, ...lowered }, seed)
        expect(outcome).toMatchObject(complete)
        expect(outcome.requests).toBeLessThan((3 * 400) / lowered.lowerLimit)
      }
  })
})

test.each([
  ['descending', 4, 8, 6, 60, 0, 6],
  ['descending', 4, 8, 6, 60, 1, 1],
  ['descending', 8, 24, 6, 200, 3, 6],
  ['id', 3, 8, 3, 60, 1, 1],
  ['id', 8, 8, 6, 60, 2, 4],
] as const)(
  'a limit lowered while many rows change at once is not taken for the end: %s, after %i, to %i',
  async (order, lowerAfter, lowerLimit, burstEvery, burstSize, seed, concurrency) => {
    const traits = { ...stableTraits, order, rows: 400, lowerAfter, lowerLimit, burstEvery, burstSize }
    const service = simulateExport(traits, seed)
    const before = service.truth()
    const { read, failure } = await readService(service, { concurrency })
    const isLost = ([id, version]: readonly [string, number]) => before.get(id) === version && !read.has(id)
    if (failure === undefined) expect([...service.truth()].filter(isLost)).toEqual([])
    else expect(failure.message).toContain('The cursor of the stream did not move')
  },
)
