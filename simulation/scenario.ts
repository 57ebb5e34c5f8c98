import { type NetworkFault, networkFaults } from './network'
import { type Chance, createChance } from './random'
import { type Change, type ServiceFault, type ServiceTraits, serviceFaults } from './service'

/** Something that goes wrong, or changes, in a world. */
export type Disturbance =
  | { readonly what: 'kill' }
  | { readonly what: 'kill in a write' }
  | { readonly what: 'signal'; readonly signal: 'SIGTERM' | 'SIGINT' }
  | { readonly what: 'close output' }
  | { readonly what: 'slow reader'; readonly pause: number }
  | { readonly what: 'network'; readonly fault: NetworkFault }
  | { readonly what: 'slow network'; readonly most: number }
  | { readonly what: 'service'; readonly fault: ServiceFault; readonly times: number }
  | { readonly what: 'rows'; readonly change: Change; readonly count: number }
  | { readonly what: 'clock'; readonly jump: number }

/** A disturbance and when it happens: before the step of a run, both counted from 0. */
export type PlannedDisturbance = { readonly run: number; readonly step: number } & Disturbance

/** A world before it begins: everything that its seed decides, apart from the numbers drawn while it runs. */
export type Scenario = {
  readonly seed: number
  readonly program: 'source-feedback' | 'tap-feedback'
  readonly config: Readonly<Record<string, unknown>>
  readonly service: ServiceTraits
  /** How long bytes take at most, milliseconds. */
  readonly latency: number
  /** The pause before each run, milliseconds; the last runs are quiet. */
  readonly pauses: ReadonlyArray<number>
  readonly disturbances: ReadonlyArray<PlannedDisturbance>
}

const minute = 60_000

/** The longest wait for the service that the configs allow, seconds. */
export const maxWaitSeconds = 600

const drawDisturbance = (chance: Chance): Disturbance => {
  const drawn = chance.next()
  if (drawn < 0.08) return { what: 'kill' }
  if (drawn < 0.22) return { what: 'kill in a write' }
  if (drawn < 0.26) return { what: 'signal', signal: chance.pick(['SIGTERM', 'SIGINT']) }
  if (drawn < 0.3) return { what: 'close output' }
  if (drawn < 0.35) return { what: 'slow reader', pause: chance.pick([5, 300, 5_000]) }
  if (drawn < 0.53) return { what: 'network', fault: chance.pick(networkFaults) }
  if (drawn < 0.57) return { what: 'slow network', most: chance.pick([50, 2_000, 30_000]) }
  if (drawn < 0.6) return { what: 'service', fault: 'token expired', times: 1 }
  if (drawn < 0.8) return { what: 'service', fault: chance.pick(serviceFaults), times: chance.pick([1, 1, 1, 3, 12]) }
  if (drawn < 0.83) return { what: 'clock', jump: chance.pick([-3_600_000, -5_000, 5_000, 3_600_000]) }
  return {
    what: 'rows',
    change: chance.pick(['change', 'change', 'delete', 'add', 'restore']),
    count: chance.between(1, 8),
  }
}

const drawService = (chance: Chance): ServiceTraits => ({
  reviews: chance.between(0, 120),
  order: chance.pick(['ascending', 'ascending', 'descending', 'id', 'ties']),
  clamp: chance.pick([1000, 1000, 7, 20]),
  rowsPerTime: chance.pick([1, 1, 3, 12]),
  churn: chance.pick([0, 0, 0.2, 0.6]),
  lag: chance.pick([0, 0, 5_000, 5 * minute]),
  clockSkew: chance.pick([0, 0, 0, -90_000, 90_000]),
  tokenSeconds: chance.pick([undefined, 3600, 120]),
  requestsPerMinute: chance.pick([undefined, undefined, 20]),
})

const drawConfig = (chance: Chance): Scenario['config'] => {
  const perMinute = chance.pick([undefined, undefined, 30, 120])
  return {
    start_date: '2010-01-01T00:00:00Z',
    page_size: chance.pick([10, 10, 25, 1000]),
    deletes: chance.pick(['separate', 'separate', 'tombstones']),
    rate_limit: {
      max_concurrency: chance.pick([1, 2, 4]),
      ...(perMinute === undefined ? {} : { requests_per_minute: perMinute }),
    },
    timeouts: { connect_seconds: 10, response_seconds: chance.pick([30, 120]), max_wait_seconds: maxWaitSeconds },
  }
}

/** The number of runs at the end that nothing disturbs. */
export const quietRuns = 2

export const createScenario = (seed: number): Scenario => {
  const chance = createChance(seed)
  const runs = chance.between(3, 10)
  const perRun = chance.pick([1, 2, 4])
  const disturbances: PlannedDisturbance[] = []
  for (let run = 0; run < runs; run += 1)
    for (let i = chance.between(0, perRun); i > 0; i -= 1)
      disturbances.push({
        run,
        step: chance.happens(0.2) ? 0 : chance.between(0, chance.pick([40, 200, 1_000])),
        ...drawDisturbance(chance),
      })
  // The first runs read everything, and print states on their way.
  const kills = chance.split('kills')
  const early = [0, 1, 2]
    .filter(() => kills.happens(0.4))
    .map((run) => ({ run, step: kills.between(50, 600), what: 'kill in a write' as const }))
  return {
    seed,
    program: chance.pick(['source-feedback', 'tap-feedback']),
    config: drawConfig(chance.split('config')),
    latency: chance.split('latency').pick([5, 5, 50, 3_000]),
    service: drawService(chance.split('service')),
    pauses: Array.from({ length: runs + quietRuns }, (_, i) =>
      i >= runs ? 60 * minute : chance.pick([1_000, 10 * minute, 60 * minute, 720 * minute]),
    ),
    disturbances: [...disturbances.sort((a, b) => a.run - b.run || a.step - b.step), ...early],
  }
}

const mayEndRun = (disturbance: Disturbance, hasFixedToken: boolean): boolean => {
  switch (disturbance.what) {
    case 'slow reader':
    case 'clock':
    case 'network':
      return false
    case 'slow network':
      return disturbance.most > 2_000
    case 'service':
      return disturbance.fault === 'long wait' || (hasFixedToken && disturbance.fault === '401')
    default:
      return true
  }
}

/**
 * Whether a run has to end well: its rows rest, and at most one answer or connection is to fail. `armedBefore`: the faults that the
 * runs before have left.
 */
export const mustComplete = ({ service, disturbances }: Scenario, run: number, armedBefore: number): boolean => {
  const own = disturbances.filter((each) => each.run === run)
  const faults = own.map((each) => (each.what === 'service' ? each.times : each.what === 'network' ? 1 : 0))
  const slow = disturbances.some((each) => each.run <= run && each.what === 'slow network' && each.most > 2_000)
  return (
    armedBefore === 0 &&
    !slow &&
    service.churn === 0 &&
    service.lag === 0 &&
    faults.reduce<number>((sum, count) => sum + count, 0) <= 1 &&
    !own.some((each) => (each.what === 'rows' ? each.step > 0 : mayEndRun(each, service.tokenSeconds === undefined)))
  )
}
