import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { brokenAssumptions, findUndetectable } from '../support/assumptions'
import { draws } from '../support/draws'
import { anySimulationPlan, anyTraits } from '../support/export-arbitraries'
import { type RunEnd, runSimulation, type SimulationPlan } from '../support/export-runs'
import { type ExportTraits, stableTraits } from '../support/export-simulation'
import { anyHostileService, type HostileClass, hostileClasses } from '../support/hostile-services'

const lookback = 600_000

/**
 * Complete runs that lack a row. An empty list is complete where nothing is known: the cursor stays, and the next run
 * reads it.
 */
const findFalseEnds = (ends: ReadonlyArray<RunEnd>): ReadonlyArray<RunEnd> =>
  ends.filter(({ lacking, read }) => lacking.length > 0 && read > 0)

/** A service that stops changing, or breaks no assumption, is read to the end. */
const judge = async (
  { isLasting = false }: HostileClass,
  traits: ExportTraits,
  plan: SimulationPlan,
): Promise<void> => {
  const { differences, ends, unfinished } = await runSimulation(traits, plan)
  expect(findFalseEnds(ends)).toEqual([])
  if (unfinished.length === 0) expect(differences).toEqual([])
  const broken = brokenAssumptions(traits, { limit: plan.limit, lookback })
  if (!isLasting || broken.length === 0) expect(unfinished).toEqual([])
}

/** What no list shows by itself: the streams notice it (test/streams/known-rows.test.ts). */
const notOfAList = ['modifiedTimeFrom read hours later than it is']

describe('a service that breaks assumptions never makes a run COMPLETE that lacks a row:', () => {
  for (const [name, hostile] of Object.entries(hostileClasses).filter(([each]) => !notOfAList.includes(each)))
    test(name, async () => {
      await fc.assert(
        fc.asyncProperty(anyHostileService(hostile), ([traits, plan]) => judge(hostile, traits, plan)),
        draws(40),
      )
    })
})

describe('drawn services', () => {
  const services = fc.sample(fc.tuple(anyTraits, anySimulationPlan), { ...draws(500), numRuns: 500 })
  const broken = services.map(([traits, { limit }]) => brokenAssumptions(traits, { limit, lookback }))

  test('do nothing that no reader could notice', () => {
    expect(services.flatMap(([traits]) => findUndetectable(traits, { lookback }))).toEqual([])
    const hostile = Object.values(hostileClasses).flatMap((one) => fc.sample(anyHostileService(one), draws(20)))
    expect(hostile.flatMap(([traits]) => findUndetectable(traits, { lookback }))).toEqual([])
  })

  test('break each assumption that shows in a run, and some break none', () => {
    expect(new Set(broken.flat())).toEqual(new Set(['A1', 'A2', 'A3', 'A4', 'A7']))
    expect(broken.filter((names) => names.length === 0).length).toBeGreaterThan(25)
  })

  test.each<[Partial<ExportTraits>, ReadonlyArray<string>]>([
    [{}, []],
    [{ clamp: 30, echo: true }, []],
    [{ clamp: 30 }, ['A2']],
    [{ clamp: 30, echo: 'asked' }, ['A2']],
    [{ order: 'ties' }, []],
    [{ order: 'ties', rowsPerTime: 7 }, ['A3']],
    [{ ties: 'replicas', changes: 1 }, []],
    [{ ties: 'replicas', changes: 5 }, ['A3']],
    [{ order: 'id', ties: 'replicas', changes: 5 }, []],
    [{ mentionFilter: 'lenient' }, []],
    [{ mentionFilter: 'lenient', unmentioned: 0.1 }, ['A4']],
    [{ outageEvery: 20, outageTime: 5_000 }, []],
    [{ outageEvery: 20, outageTime: 100_000 }, ['A1']],
    [{ lag: 600_000 }, []],
    [{ lag: 600_000, replicaLag: 1_000 }, ['A5']],
    [{ clockSkew: -3_600_000 }, []],
    [{ clockSkew: 1_200_000 }, ['A7']],
    [{ filterShift: 3_600_000 }, ['A6']],
  ])('with %j break %j', (traits, names) => {
    expect(brokenAssumptions({ ...stableTraits, ...traits }, { limit: 50, lookback })).toEqual(names)
  })
})
