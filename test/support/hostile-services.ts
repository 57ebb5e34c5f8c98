import fc from 'fast-check'
import type { SimulationPlan } from './export-runs'
import { type ExportTraits, type Order, stableTraits } from './export-simulation'

/** A class of services that have cost a reader rows, or might. */
export type HostileClass = {
  readonly traits: fc.Arbitrary<Partial<ExportTraits>>
  readonly plan?: Partial<SimulationPlan>
  /** It continues when nothing else changes, so a reader may end INCOMPLETE for good. */
  readonly isLasting?: boolean
}

const keptOrders: readonly Order[] = ['ascending', 'descending', 'id']
const kept = fc.constantFrom(...keptOrders)
const anyOrder = fc.constantFrom<Order>(...keptOrders, 'ties', 'random')
const rows = fc.integer({ min: 0, max: 400 })
const rowsPerTime = fc.constantFrom(1, 7, 40, 120)
const fewChanges = fc.constantFrom(0, 0.3, 1)

/** By name, in the words of what the service does. */
export const hostileClasses: Readonly<Record<string, HostileClass>> = {
  'replicas 30 s behind that order ties differently, ascending, offsets behind the end refused': {
    traits: fc.record({
      order: fc.constant<Order>('ascending'),
      rows,
      rowsPerTime,
      ties: fc.constant('replicas' as const),
      replicaLag: fc.constant(30_000),
      latency: fc.constantFrom(200, 3000),
      refusesEnd: fc.constant(true),
      changes: fewChanges,
      deletions: fc.constantFrom(0, 0.2, 1),
      additions: fc.constantFrom(0, 0.5),
    }),
  },
  'replicas 5 minutes behind, offsets behind the end refused': {
    traits: fc.record({
      order: kept,
      rows,
      replicaLag: fc.constant(300_000),
      refusesEnd: fc.constant(true),
      changes: fc.constantFrom(0.3, 1),
      additions: fc.constant(0.5),
    }),
  },
  'replicas behind, in any order': {
    traits: fc.record({
      order: anyOrder,
      rows,
      rowsPerTime,
      ties: fc.constantFrom('stable' as const, 'replicas' as const),
      replicaLag: fc.constantFrom(2_000, 30_000),
      latency: fc.constantFrom(200, 3000),
      refusesEnd: fc.boolean(),
      changes: fewChanges,
      deletions: fc.constantFrom(0, 0.2, 1),
      additions: fc.constantFrom(0, 0.5),
    }),
  },
  'the first answer lacks old rows': {
    traits: fc.record({
      order: kept,
      rows,
      rowsPerTime,
      lackingRows: fc.integer({ min: 1, max: 8 }),
      echo: fc.boolean(),
    }),
    isLasting: true,
  },
  'short pages': {
    traits: fc.record({
      order: kept,
      rows,
      rowsPerTime,
      shortPages: fc.constant(true),
      clamp: fc.constantFrom(1000, 50, 30),
      echo: fc.boolean(),
      changes: fewChanges,
      additions: fc.constantFrom(0, 0.5),
    }),
    isLasting: true,
  },
  'a cut tail and as many deletions': {
    traits: fc.record({
      order: kept,
      rows,
      shortPages: fc.constant(true),
      deletions: fc.constantFrom(0.5, 1, 3),
      attackSize: fc.constantFrom(0, 5, 12),
    }),
    isLasting: true,
  },
  'pages of 8 to 12 rows': {
    traits: fc.record({
      order: kept,
      rows,
      rowsPerTime,
      clamp: fc.constant(12),
      leastClamp: fc.constant(8),
      echo: fc.constantFrom(false, 'asked' as const),
      changes: fewChanges,
      deletions: fc.constantFrom(0, 0.2),
    }),
    plan: { limit: 50 },
    isLasting: true,
  },
  'a limit that differs between replicas': {
    traits: fc.record({
      order: anyOrder,
      rows,
      replicaClamp: fc.constantFrom(8, 20, 45),
      clamp: fc.constantFrom(50, 1000),
      echo: fc.constantFrom(false, 'asked' as const),
      replicaLag: fc.constantFrom(0, 30_000),
      changes: fewChanges,
      deletions: fc.constantFrom(0, 0.2),
    }),
    plan: { limit: 50 },
    isLasting: true,
  },
  'fewer rows than were asked for and echoed': {
    traits: fc.record({
      order: anyOrder,
      rows,
      clamp: fc.constantFrom(25, 30, 49),
      echo: fc.constant('asked' as const),
      changes: fewChanges,
    }),
    plan: { limit: 50 },
    isLasting: true,
  },
  'a limit lowered untold while rows change': {
    traits: fc.record({
      order: kept,
      rows,
      lowerAfter: fc.constantFrom(3, 5, 20),
      lowerLimit: fc.constantFrom(8, 15, 25, 45),
      changes: fewChanges,
      deletions: fc.constantFrom(0, 0.2, 1),
      additions: fc.constantFrom(0, 0.5),
    }),
    plan: { limit: 50 },
    isLasting: true,
  },
  'an answer is empty for half a second': {
    traits: fc.record({
      order: anyOrder,
      rows,
      rowsPerTime,
      outageAt: fc.integer({ min: 1, max: 40 }),
      outageTime: fc.constant(500),
      latency: fc.constantFrom(100, 200),
      clamp: fc.constantFrom(1000, 30),
      changes: fewChanges,
      deletions: fc.constantFrom(0, 0.2),
    }),
  },
  'windows are empty now and then': {
    traits: fc.record({
      order: fc.constant<Order>('random'),
      rows,
      outageEvery: fc.constantFrom(3, 8),
      outageTime: fc.constantFrom(300, 2_000),
      changes: fewChanges,
      deletions: fc.constantFrom(0, 0.2),
      mentionSeconds: fc.constantFrom(0, 3, 1000),
    }),
  },
  'rounds end with an empty page': {
    traits: fc.record({
      order: fc.constantFrom<Order>('random', 'ties'),
      rows,
      rowsPerTime: fc.constantFrom(40, 120),
      mentionFilter: fc.constant('ignored' as const),
      outageEvery: fc.constantFrom(5, 15),
      outageTime: fc.constantFrom(300, 2_000),
      clamp: fc.constantFrom(1000, 30),
    }),
  },
  'more than a page of reviews of one second, empty at times': {
    traits: fc.record({
      order: anyOrder,
      rows,
      mentionSeconds: fc.constantFrom(1, 2, 3),
      outageEvery: fc.constantFrom(0, 5, 15),
      outageTime: fc.constantFrom(300, 2_000),
      clamp: fc.constantFrom(30, 50),
      inclusive: fc.boolean(),
      changes: fewChanges,
    }),
  },
  'reviews on the boundary of two windows': {
    traits: fc.record({
      order: fc.constant<Order>('random'),
      rows,
      mentionSeconds: fc.constantFrom(5, 20, 100),
      inclusive: fc.boolean(),
      clamp: fc.constantFrom(30, 50, 1000),
      unmentioned: fc.constantFrom(0, 0.1),
    }),
  },
  'reviews without a mention time, of which some are deleted meanwhile': {
    traits: fc.record({
      order: fc.constantFrom<Order>('random', 'ties'),
      rows,
      rowsPerTime: fc.constant(40),
      unmentioned: fc.constantFrom(0.005, 0.02, 0.1),
      deletions: fc.constantFrom(0.2, 1, 3),
      mentionFilter: fc.constantFrom('kept' as const, 'lenient' as const, 'ignored' as const),
    }),
  },
  'a default of the last 90 days that the echo tells': {
    traits: fc.record({ order: anyOrder, rows, defaultRange: fc.constant('told' as const), changes: fewChanges }),
    isLasting: true,
  },
  'rows deleted or changed at the end of each page': {
    traits: fc.record({
      order: kept,
      rows,
      attackSize: fc.constantFrom(1, 5, 12, 30),
      refusesEnd: fc.boolean(),
      replicaLag: fc.constantFrom(0, 5_000),
    }),
  },
  'modifiedTimeFrom read hours later than it is': {
    traits: fc.record({
      order: kept,
      rows,
      filterShift: fc.constantFrom(3_600_000, 18_000_000),
      changes: fc.constant(1),
      additions: fc.constantFrom(0, 0.5),
    }),
    plan: { runs: 4 },
    isLasting: true,
  },
}

/** A service of a class, and how it is read. */
export const anyHostileService = ({
  traits,
  plan,
}: HostileClass): fc.Arbitrary<readonly [ExportTraits, SimulationPlan]> =>
  fc.tuple(
    traits.map((drawn): ExportTraits => ({ ...stableTraits, ...drawn })),
    fc
      .record({
        seed: fc.integer(),
        limit: fc.constantFrom(20, 50, 50),
        concurrency: fc.constantFrom(1, 4),
        runs: fc.integer({ min: 1, max: 4 }),
        crashes: fc.boolean(),
      })
      .map((drawn): SimulationPlan => ({ ...drawn, ...plan })),
  )
