import type { Chance } from './random'
import { createScenario, type PlannedDisturbance, quietRuns, type Scenario } from './scenario'

/** What a world of `feedback sync` has beside that of a source. */
export type SnapshotScenario = Scenario & {
  readonly snapshot: {
    readonly streams: ReadonlyArray<string>
    /** Whether every version of a row is kept. */
    readonly history: boolean
    /** The runs that read everything again. */
    readonly refreshes: ReadonlyArray<number>
  }
}

type DiskDisturbance = Extract<PlannedDisturbance, { what: 'disk' }>

const drawDisk = (run: number, chance: Chance, isLarge: boolean): DiskDisturbance => {
  const drawn = chance.next()
  const step = chance.happens(0.4) ? 0 : chance.between(0, chance.pick([60, 200, 600]))
  const disk = { run, step, what: 'disk' } as const
  if (isLarge && drawn < 0.5) return { ...disk, step: 0, fault: 'no memory', amount: chance.between(1, 12) }
  if (drawn < 0.55)
    return {
      ...disk,
      fault: chance.happens(0.2) ? 'lost sectors' : 'power failure',
      amount: chance.between(0, chance.pick([3, 12, 40])),
    }
  if (drawn < 0.8) return { ...disk, fault: 'full disk', amount: chance.pick([0, 100, 2_000, 20_000, 300_000]) }
  if (drawn < 0.9) return { ...disk, fault: 'no memory', amount: chance.between(1, 12) }
  return { ...disk, fault: 'large log', amount: chance.between(1, 3) }
}

/** A world of a source whose rows go into a file. Some have so many rows that a commit is made in parts where memory is short. */
export const createSnapshotScenario = (seed: number, chance: Chance): SnapshotScenario => {
  const scenario = createScenario(seed)
  const isLarge = chance.happens(0.1)
  const runs = scenario.pauses.length - quietRuns
  const disk = Array.from({ length: runs }, (_, run) => run)
    .filter(() => chance.happens(0.35))
    .map((run) => drawDisk(run, chance, isLarge))
  // The first run makes the file, and has the most to commit.
  const first = { run: 0, step: 0, what: 'disk' } as const
  const early: ReadonlyArray<DiskDisturbance> = isLarge
    ? [
        { ...first, fault: 'no memory', amount: chance.between(3, 5) },
        { ...first, fault: 'power failure', amount: chance.between(10, 40) },
      ]
    : chance.happens(0.15)
      ? [{ ...first, fault: 'power failure', amount: 0 }]
      : []
  return {
    ...scenario,
    program: 'feedback',
    service: {
      ...scenario.service,
      ...(isLarge ? { reviews: chance.between(1_000, 1_300), clamp: 1_000 } : {}),
    },
    config: isLarge ? { ...scenario.config, page_size: 1_000 } : scenario.config,
    disturbances: [...scenario.disturbances, ...disk, ...early].sort((a, b) => a.run - b.run || a.step - b.step),
    snapshot: {
      streams: ['reviews', 'deleted_reviews', 'review_contents'],
      history: chance.happens(0.2),
      refreshes: Array.from({ length: runs }, (_, run) => run).filter(() => chance.happens(0.07)),
    },
  }
}
