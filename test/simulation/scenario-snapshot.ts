import { familyStreams } from './part-tables'
import type { Chance } from './random'
import { firstReviewId } from './rows'
import { createScenario, type PlannedDisturbance, quietRuns, type Scenario } from './scenario'

/** What a world of `feedback sync` has besides that of a source. */
export type SnapshotScenario = Scenario & {
  readonly snapshot: {
    readonly streams: ReadonlyArray<string>
    /** Every version of a row is kept. */
    readonly history: boolean
    /** The runs that read everything again. */
    readonly refreshes: ReadonlyArray<number>
    /** The disk's fsyncs return before anything is written. */
    readonly lies?: boolean
    /** The runs that do something else than `feedback sync`. */
    readonly verbs?: Readonly<Record<number, SnapshotVerb>>
  }
}

/** `forget`: the ids of reviews to forget. */
export type SnapshotVerb = { readonly forget: ReadonlyArray<number> } | 'compact'

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

/**
 * Runs of other verbs, and what stops them at times: a kill, a power failure, or a disk without room for a copy of the
 * file.
 */
const drawVerbs = (runs: number, reviews: number, chance: Chance) => {
  const verbs: Record<number, SnapshotVerb> = {}
  const disturbances: PlannedDisturbance[] = []
  for (let run = 1; run < runs; run += 1) {
    if (!chance.happens(0.5)) continue
    const forget = Array.from({ length: chance.between(1, 3) }, () => firstReviewId + 7 * chance.between(0, reviews))
    verbs[run] = chance.happens(0.65) ? { forget } : 'compact'
    const drawn = chance.next()
    const disk = { run, step: 0, what: 'disk' } as const
    if (drawn < 0.25) disturbances.push({ run, step: chance.between(1, 150), what: 'kill' })
    else if (drawn < 0.5) disturbances.push({ ...disk, fault: 'power failure', amount: chance.between(0, 60) })
    else if (drawn < 0.6)
      disturbances.push({ ...disk, fault: 'full disk', amount: chance.pick([-2_000_000, -1_000_000, -300_000]) })
    // The machine stops soon after the file was replaced: the next run is the first to write it, unless it is a quiet
    // one.
    const later = chance.split(`after ${run}`)
    if (run + 1 < runs && later.happens(0.25))
      disturbances.push({ ...disk, run: run + 1, fault: 'power failure', amount: later.between(0, 2) })
  }
  return { verbs, disturbances }
}

/** Power failures on a disk with lying fsyncs. */
const drawLostSyncs = (runs: number, chance: Chance): ReadonlyArray<DiskDisturbance> =>
  Array.from({ length: runs }, (_, run) => run)
    .filter(() => chance.happens(0.5))
    .map((run) => ({
      run,
      step: chance.happens(0.6) ? 0 : chance.between(0, chance.pick([60, 200, 600])),
      what: 'disk',
      fault: 'lost syncs',
      amount: chance.between(0, chance.pick([2, 8, 20])),
    }))

/**
 * A world with a source whose rows go into a file. Some have so many rows that a commit is split when memory is short.
 */
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
  const lying = chance.split('lies')
  const lies = lying.happens(0.3)
  const lost = lies ? drawLostSyncs(runs, lying) : []
  const hasFamily = !isLarge && chance.split('family').happens(0.25)
  const service = {
    ...scenario.service,
    ...(hasFamily ? { hasFamily } : {}),
    ...(isLarge ? { reviews: chance.between(1_000, 1_300), clamp: 1_000 } : {}),
  }
  const verbing = chance.split('verbs')
  const drawn = verbing.happens(0.3) ? drawVerbs(runs, service.reviews, verbing) : undefined
  return {
    ...scenario,
    program: 'feedback',
    service,
    config: isLarge ? { ...scenario.config, page_size: 1_000 } : scenario.config,
    disturbances: [...scenario.disturbances, ...disk, ...early, ...lost, ...(drawn?.disturbances ?? [])].sort(
      (a, b) => a.run - b.run || a.step - b.step,
    ),
    snapshot: {
      streams: ['reviews', 'deleted_reviews', ...(hasFamily ? familyStreams : ['review_contents'])],
      history: chance.happens(0.2),
      refreshes: Array.from({ length: runs }, (_, run) => run).filter(() => chance.happens(0.07)),
      ...(lies ? { lies } : {}),
      ...(drawn === undefined ? {} : { verbs: drawn.verbs }),
    },
  }
}
