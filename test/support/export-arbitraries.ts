import fc from 'fast-check'
import type { SimulationPlan } from './export-runs'
import { type ExportTraits, type Order, stableTraits } from './export-simulation'

const hour = 3_600_000

export const orders: readonly Order[] = ['ascending', 'descending', 'id', 'ties', 'random']

/**
 * Any service for which a scan promises completeness: rows become visible within the lookback and have a mention time.
 */
export const anyTraits: fc.Arbitrary<ExportTraits> = fc
  .record({
    order: fc.constantFrom(...orders),
    clamp: fc.constantFrom(1000, 1000, 1000, 50, 30),
    rows: fc.oneof(
      { weight: 1, arbitrary: fc.constantFrom(0, 1, 2, 5, 20, 21, 49, 50, 51, 60, 61) },
      { weight: 3, arbitrary: fc.integer({ min: 0, max: 400 }) },
    ),
    rowsPerTime: fc.constantFrom(1, 1, 1, 7, 40, 120),
    changes: fc.constantFrom(0, 1, 1, 5),
    deletions: fc.constantFrom(0, 0.2, 0.2, 3),
    additions: fc.constantFrom(0, 0.5, 0.5, 2),
    restorations: fc.constantFrom(0, 0, 0.2),
    burstEvery: fc.constantFrom(0, 0, 8, 15),
    burstSize: fc.constantFrom(15, 60, 200),
    attackSize: fc.constantFrom(0, 0, 0, 5, 12, 30),
    lag: fc.constantFrom(0, 0, 60_000, 600_000),
    futureDates: fc.constantFrom([], [], [], [600_000], [3 * hour], [10 * 365 * 24 * hour]),
    clockSkew: fc.constantFrom(0, 0, 0, 1200_000, 3 * hour, -1200_000, -3 * hour, undefined),
    latency: fc.constantFrom(200, 3000, 30_000),
    inclusive: fc.boolean(),
    echo: fc.boolean(),
    shortPages: fc.constantFrom(false, false, false, true),
    unmentioned: fc.constantFrom(0, 0, 0.1, 0.5),
    mentionFilter: fc.constantFrom('kept', 'kept', 'kept', 'lenient', 'ignored'),
    ties: fc.constantFrom('stable', 'stable', 'replicas', 'merged', 'rotated'),
    lackingRows: fc.constantFrom(0, 0, 0, 1, 6),
    outageEvery: fc.constantFrom(0, 0, 0, 20),
    outageTime: fc.constantFrom(600, 5_000, 100_000),
    lowerAfter: fc.constantFrom(0, 0, 0, 5, 20),
    lowerLimit: fc.constantFrom(15, 25, 45),
  })
  .map((traits) => ({ ...stableTraits, ...traits }))
  .map((traits) => ({ ...traits, futureDates: traits.futureDates.filter((time) => time !== traits.clockSkew) }))
  .map((traits) => ({ ...traits, ...(keepsOrder(traits) ? {} : limitGrowth(traits)) }))
  .map((traits) => ({ ...traits, ...(traits.shortPages ? limitChanges(traits) : {}) }))
  .map((traits) => ({ ...traits, ...(isOrderUnsteady(traits) ? stopChanges : {}) }))

/**
 * Rows that change place a little, and a silently lowered limit, can be distinguished from changes only while no row
 * changes.
 */
const isOrderUnsteady = ({ ties, lackingRows, lowerAfter }: ExportTraits): boolean =>
  ties === 'merged' || ties === 'rotated' || lackingRows > 0 || lowerAfter > 0

const stopChanges = {
  changes: 0,
  deletions: 0,
  additions: 0,
  restorations: 0,
  burstEvery: 0,
  attackSize: 0,
  lag: 0,
  shortPages: false,
} as const

const keepsOrder = ({ order }: ExportTraits): boolean => order !== 'ties' && order !== 'random'

/**
 * Without an order, a page that is short for no reason looks like the whole window, and a fast-growing set never
 * settles.
 */
const limitGrowth = ({ additions, burstEvery }: ExportTraits): Partial<ExportTraits> => ({
  shortPages: false,
  lowerAfter: 0,
  additions: Math.min(additions, 0.5),
  burstEvery: burstEvery * 3,
})

/**
 * If pages may be short although more rows follow, against the service's own rule, the end can only be found while
 * little changes.
 */
const limitChanges = ({ changes, additions }: ExportTraits): Partial<ExportTraits> => ({
  changes: Math.min(changes, 1),
  additions: Math.min(additions, 0.5),
  outageEvery: 0,
  lowerAfter: 0,
  attackSize: 0,
  burstEvery: 0,
})

/**
 * One to four runs while the service is busy, some killed after any item, with pages requested one by one or several at
 * a time.
 */
export const anySimulationPlan: fc.Arbitrary<SimulationPlan> = fc.record({
  seed: fc.integer(),
  limit: fc.constant(50),
  concurrency: fc.constantFrom(1, 4),
  runs: fc.integer({ min: 1, max: 4 }),
  crashes: fc.boolean(),
})
