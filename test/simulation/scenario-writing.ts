import type { Entry, FeedTraits } from './feed'
import { feedStreams } from './feed'
import { diskFaults } from './file-disk'
import { serviceFaults } from './front'
import type { InputTraits } from './input'
import { networkFaults } from './network'
import type { RunPlan } from './platform'
import type { Chance } from './random'
import {
  type Disturbance,
  drawConfig,
  drawService,
  minute,
  type PlannedDisturbance,
  quietRuns,
  type Scenario,
} from './scenario'
import type { WritingTraits } from './service-writing'

/** Where the destination keeps the locations that it has written, and the records that it has rejected. */
export const ledgerFile = 'locations.ledger'
export const letterFile = 'rejected.jsonl'

/** What a world of a destination has besides that of a source. */
export type WritingPlan = {
  readonly feed: FeedTraits
  readonly input: InputTraits
  readonly service: WritingTraits
  /** How many records come before a state, about. */
  readonly recordsPerState: number
  /** The states of Airbyte: of each stream, or of all in one of two forms. */
  readonly states: 'stream' | 'global' | 'legacy'
  /** The streams have primary keys. */
  readonly hasKeys: boolean
  /** The keys of the config about rejected records, until the quiet runs. */
  readonly policy: Readonly<Record<string, unknown>>
  /** How locations that leave the list are deactivated; undefined: they are not. */
  readonly reconcile?: ReconcilePlan
  /** The dead letters are on the simulated disk, which fails. */
  readonly hasLetterDisk?: true
}

export type ReconcilePlan = {
  readonly hasLedger: boolean
  readonly deactivatesUnlisted: boolean
  /** The most deactivations of a run before the quiet ones, percent. */
  readonly most: number
}

export type WritingScenario = Scenario & { readonly writing: WritingPlan }

const drawDisturbance = (chance: Chance): Disturbance => {
  const drawn = chance.next()
  if (drawn < 0.15) return { what: 'kill' }
  if (drawn < 0.22) return { what: 'kill in a write' }
  if (drawn < 0.26) return { what: 'signal', signal: chance.pick(['SIGTERM', 'SIGINT']) }
  if (drawn < 0.3) return { what: 'close output' }
  if (drawn < 0.33) return { what: 'slow reader', pause: chance.pick([5, 300, 5_000]) }
  if (drawn < 0.4) return { what: 'close input' }
  if (drawn < 0.44) return { what: 'slow input', pause: chance.pick([5, 300, 5_000]) }
  if (drawn < 0.62) return { what: 'network', fault: chance.pick(networkFaults) }
  // Longer, a request would arrive after the one that is sent in its place.
  if (drawn < 0.66) return { what: 'slow network', most: chance.pick([50, 2_000]) }
  if (drawn < 0.7) return { what: 'service', fault: 'token expired', times: 1 }
  if (drawn < 0.77) return { what: 'service', fault: 'rows unnamed', times: chance.pick([1, 3]) }
  if (drawn < 0.97)
    return { what: 'service', fault: chance.pick(serviceFaults), times: chance.pick([1, 1, 1, 3, 6, 8, 12]) }
  return { what: 'clock', jump: chance.pick([-3_600_000, -5_000, 5_000, 3_600_000]) }
}

const drawWriting = (chance: Chance): WritingPlan => ({
  feed: {
    first: chance.pick([5, 50, 200, 400]),
    more: chance.pick([5, 40, 100]),
    badRate: chance.pick([0, 0, 0.02, 0.1]),
    idRate: chance.pick([0, 0.5, 1]),
    hasPoison: chance.happens(0.3),
  },
  input: {
    piece: chance.pick([64, 1_000, 16_384]),
    room: chance.pick([1_024, 16_384, 65_536]),
    pause: chance.pick([1, 100, 8_000]),
  },
  service: {
    clamp: chance.pick([1000, 1000, 40, 7]),
    clampStatus: chance.pick([413, 400]),
    refusesEmpty: chance.happens(0.3),
    isLoud: chance.happens(0.2),
    listsCodes: chance.happens(0.3),
    knowsCodes: chance.happens(0.5),
  },
  recordsPerState: chance.pick([1, 5, 20, 100]),
  states: chance.pick(['stream', 'stream', 'global', 'legacy']),
  hasKeys: chance.happens(0.7),
  policy: chance.pick([
    { dead_letter_path: letterFile, max_rejects_percent: 100 },
    { dead_letter_path: letterFile, max_rejects_percent: 100 },
    { dead_letter_path: letterFile },
    { on_reject: 'continue', max_rejects_percent: 100 },
    {},
  ]),
})

const drawWritingConfig = (chance: Chance): Scenario['config'] => {
  const { rate_limit, timeouts } = drawConfig(chance)
  return {
    batch_size: chance.pick([1, 3, 10, 100]),
    max_batch_age_seconds: chance.pick([1, 5, 60]),
    rate_limit,
    timeouts,
  }
}

const drawFileFaults = ({ pauses }: Scenario, count: number, chance: Chance): ReadonlyArray<PlannedDisturbance> =>
  Array.from({ length: count }, () => ({
    run: chance.between(0, pauses.length - quietRuns - 1),
    step: chance.happens(0.3) ? 0 : chance.between(0, chance.pick([15, 40, 100, 400])),
    what: 'file',
    fault: chance.pick(diskFaults),
    amount: chance.between(0, chance.pick([1, 10, 100, 1_000])),
  }))

const inOrder = (disturbances: ReadonlyArray<PlannedDisturbance>): ReadonlyArray<PlannedDisturbance> =>
  disturbances.toSorted((a, b) => a.run - b.run || a.step - b.step)

/**
 * Adds a list of locations that the destination follows: by a ledger on its disk, by the list of the service, or by
 * both.
 */
const addReconciliation = (scenario: WritingScenario, chance: Chance): WritingScenario => {
  const [hasLedger, hasList] = chance.pick([
    [true, false],
    [true, false],
    [true, true],
    [false, true],
  ] as const)
  const deactivatesUnlisted = hasList && (!hasLedger || chance.happens(0.3))
  const { writing, disturbances, config } = scenario
  const faults = drawFileFaults(scenario, hasLedger ? chance.between(0, 3) : 0, chance)
  return {
    ...scenario,
    config: {
      ...config,
      reconcile: {
        ...(hasLedger ? { ledger_path: ledgerFile } : {}),
        ...(deactivatesUnlisted ? { deactivate_unlisted: true } : {}),
      },
      ...(hasList ? { lookups: { locations: true } } : {}),
    },
    writing: {
      ...writing,
      reconcile: { hasLedger, deactivatesUnlisted, most: chance.pick([100, 100, 30, 10]) },
      feed: {
        ...writing.feed,
        list: {
          goneRate: chance.pick([0.05, 0.3]),
          backRate: chance.pick([0, 0.3]),
          cutRate: chance.pick([0, 0.3]),
          hasTypes: chance.happens(0.3),
        },
      },
      service: {
        ...writing.service,
        ...(hasList
          ? {
              list: {
                page: chance.pick([1000, 40, 5]),
                tellsPages: chance.happens(0.6),
                refusesEnd: chance.happens(0.2),
                lag: chance.pick([0, 0, 1_500, 30_000]),
                foreign: chance.pick([0, 3, 30]),
                churn: chance.pick([0, 0, 0.3]),
                isLowerCase: chance.happens(0.2),
              },
            }
          : {}),
      },
    },
    disturbances: inOrder([...disturbances, ...faults]),
  }
}

/** Adds a disk under the dead letters, and records that get there. */
const addLetterDisk = (scenario: WritingScenario, chance: Chance): WritingScenario => ({
  ...scenario,
  writing: {
    ...scenario.writing,
    feed: { ...scenario.writing.feed, badRate: chance.pick([0.02, 0.1]) },
    hasLetterDisk: true,
  },
  disturbances: inOrder([...scenario.disturbances, ...drawFileFaults(scenario, chance.between(1, 3), chance)]),
})

export const createWritingScenario = (seed: number, chance: Chance): WritingScenario => {
  const runs = chance.between(2, 7)
  const perRun = chance.pick([1, 3, 6])
  const disturbances: PlannedDisturbance[] = []
  for (let run = 0; run < runs; run += 1)
    for (let i = chance.between(0, perRun); i > 0; i -= 1)
      disturbances.push({
        run,
        step: chance.happens(0.1) ? 0 : chance.between(0, chance.pick([15, 40, 100, 400])),
        ...drawDisturbance(chance),
      })
  const scenario: WritingScenario = {
    seed,
    program: chance.pick(['destination-feedback', 'target-feedback']),
    config: drawWritingConfig(chance.split('config')),
    latency: chance.split('latency').pick([5, 5, 50, 3_000]),
    service: drawService(chance.split('service')),
    writing: drawWriting(chance.split('writing')),
    // What a killed run has sent arrives before the next one begins.
    pauses: Array.from({ length: runs + quietRuns }, () => chance.pick([minute, 10 * minute, 720 * minute])),
    disturbances: inOrder(disturbances),
  }
  const [ledger, letters] = [chance.split('ledger'), chance.split('letters')]
  const listed = ledger.happens(0.35) ? addReconciliation(scenario, ledger) : scenario
  return 'dead_letter_path' in scenario.writing.policy && letters.happens(0.3) ? addLetterDisk(listed, letters) : listed
}

const mayEndRun = (disturbance: Disturbance, hasFixedToken: boolean): boolean => {
  switch (disturbance.what) {
    case 'slow reader':
    case 'slow input':
    case 'slow network':
    case 'clock':
    case 'network':
      return false
    case 'service':
      return ['long wait', 'rows unnamed'].includes(disturbance.fault) || (hasFixedToken && disturbance.fault === '401')
    default:
      return true
  }
}

/**
 * A run has to write these records and succeed: at most one answer or connection fails, and the config allows the
 * rejections.
 */
export const mustWriteAll = (
  { service, writing: { policy }, disturbances }: WritingScenario,
  { index, armed }: RunPlan,
  entries: ReadonlyArray<Entry>,
): boolean => {
  const own = disturbances.filter(({ run }) => run === index)
  const faults = own.map((each) => (each.what === 'service' ? each.times : each.what === 'network' ? 1 : 0))
  const bad = entries.filter(({ fate }) => fate !== 'good')
  const allows = (count: number): boolean =>
    count === 0 ||
    (('dead_letter_path' in policy || policy.on_reject === 'continue') &&
      (count <= 10 || policy.max_rejects_percent === 100))
  return (
    armed === 0 &&
    faults.reduce<number>((sum, count) => sum + count, 0) <= 1 &&
    !own.some((each) => mayEndRun(each, service.tokenSeconds === undefined)) &&
    !bad.some(({ fate }) => fate === 'poison') &&
    feedStreams.every((stream) => {
      const ofStream = entries.filter((entry) => entry.stream === stream)
      const badCount = ofStream.filter(({ fate }) => fate !== 'good').length
      return allows(badCount) && (badCount === 0 || badCount < ofStream.length)
    })
  )
}
