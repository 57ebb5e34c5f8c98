import type { DiskFault } from './duckdb'
import type { FileFault } from './file-disk'
import type { ServiceFault } from './front'
import { type NetworkFault, networkFaults } from './network'
import { type Chance, createChance } from './random'
import { type Change, changes } from './rows'
import { exportFaults, type ServiceTraits } from './service'

/** Something that goes wrong, or changes, in a world. */
export type Disturbance =
  | { readonly what: 'kill' }
  | { readonly what: 'kill in a write' }
  | { readonly what: 'signal'; readonly signal: 'SIGTERM' | 'SIGINT' }
  | { readonly what: 'close output' }
  | { readonly what: 'slow reader'; readonly pause: number }
  | { readonly what: 'close input' }
  | { readonly what: 'slow input'; readonly pause: number }
  | { readonly what: 'network'; readonly fault: NetworkFault }
  | { readonly what: 'slow network'; readonly most: number }
  | { readonly what: 'service'; readonly fault: ServiceFault; readonly times: number }
  | { readonly what: 'rows'; readonly change: Change; readonly count: number }
  | { readonly what: 'lower limit'; readonly most: number }
  | { readonly what: 'disk'; readonly fault: DiskFault; readonly amount: number }
  | { readonly what: 'file'; readonly fault: FileFault; readonly amount: number }
  | { readonly what: 'clock'; readonly jump: number }

/**
 * A disturbance and its time: before a step of a run, both counted from 0. Rows may also change this many milliseconds
 * `before` a run starts; all of these come first.
 */
export type PlannedDisturbance = { readonly run: number; readonly step: number; readonly before?: number } & Disturbance

/**
 * A run in which one stream is not read together with the others: it is not selected, or gets the state of an earlier
 * run.
 */
export type ApartStream = {
  readonly run: number
  readonly stream: string
  /** The run whose first state it gets; none: it is not selected. */
  readonly stateOf?: number
}

/** A world before it begins: everything that its seed decides, apart from the numbers drawn while it runs. */
export type Scenario = {
  readonly seed: number
  readonly program: 'source-feedback' | 'tap-feedback' | 'destination-feedback' | 'target-feedback' | 'feedback'
  readonly config: Readonly<Record<string, unknown>>
  readonly service: ServiceTraits
  /** How long bytes take at most, milliseconds. */
  readonly latency: number
  /** The pause before each run, milliseconds; the last runs are quiet. */
  readonly pauses: ReadonlyArray<number>
  readonly disturbances: ReadonlyArray<PlannedDisturbance>
  readonly apart?: ReadonlyArray<ApartStream>
}

/** Milliseconds. */
const second = 1_000
export const minute = 60 * second
const hour = 60 * minute

/** The longest wait for the service that the configs allow, seconds. */
export const maxWaitSeconds = 600

/** How often each kind of disturbance happens. */
const weights = {
  kill: 8,
  'kill in a write': 12,
  signal: 5,
  'close output': 4,
  'slow reader': 5,
  network: 18,
  'slow network': 4,
  service: 25,
  rows: 17,
  'lower limit': 4,
  clock: 3,
}

type Kind = keyof typeof weights
type Kinds = ReadonlyArray<readonly [Kind, number]>

/** Each world has its own mix of kinds: some lack what hides a defect, and what reveals it is frequent. */
const drawKinds = (chance: Chance): Kinds =>
  Object.entries(weights).map(([what, weight]) => [what as Kind, weight * chance.pick([0, 1, 1, 4])])

const pickKind = (chance: Chance, kinds: Kinds): Kind => {
  let drawn = chance.next() * kinds.reduce((sum, [, weight]) => sum + weight, 0)
  for (const [what, weight] of kinds) {
    drawn -= weight
    if (drawn < 0) return what
  }
  return 'rows'
}

const drawChange = (chance: Chance, { hasShortPages }: ServiceTraits): Disturbance => ({
  what: 'rows',
  change: chance.pick(changes),
  // A page that is arbitrarily short, together with many deleted rows, looks like the end.
  count: hasShortPages ? 1 : chance.happens(0.15) ? 25 : chance.between(1, 8),
})

const drawDisturbance = (chance: Chance, what: Kind, service: ServiceTraits): Disturbance => {
  switch (what) {
    case 'signal':
      return { what, signal: chance.pick(['SIGTERM', 'SIGINT']) }
    case 'slow reader':
      return { what, pause: chance.pick([5, 300, 5_000]) }
    case 'network':
      return { what, fault: chance.pick(networkFaults) }
    case 'slow network':
      return { what, most: chance.pick([50, 2_000, 30_000]) }
    case 'service':
      return {
        what,
        fault: chance.happens(0.15) ? 'token expired' : chance.pick(exportFaults),
        times: chance.pick([1, 1, 1, 3, 12]),
      }
    case 'clock':
      return { what, jump: chance.pick([-hour, -5_000, 5_000, hour]) }
    case 'lower limit':
      return { what, most: chance.pick([5, 8, 15]) }
    case 'rows':
      return drawChange(chance, service)
    default:
      return { what }
  }
}

export const drawService = (chance: Chance, lookback = 10 * minute): ServiceTraits => {
  const order = chance.pick(['ascending', 'ascending', 'descending', 'id', 'ties', 'random'] as const)
  const keepsOrder = order !== 'ties' && order !== 'random'
  const hasShortPages = keepsOrder && chance.happens(0.15)
  return {
    reviews: chance.between(0, order === 'random' ? 30 : 100),
    order,
    rowsPerTime: chance.pick([1, 1, 3, 12]),
    lag: chance.pick([0, 0, 5 * second, lookback * 0.95]),
    unmentioned: chance.pick([0, 0, 0.1]),
    mentionFilter: chance.pick(['kept', 'kept', 'lenient', 'ignored']),
    isInclusive: chance.happens(0.5),
    futureDate: chance.pick([undefined, undefined, undefined, hour, 9_600 * hour]),
    clamp: chance.pick([1000, 1000, 7, 20]),
    tellsLimit: !keepsOrder || chance.happens(0.6),
    hasShortPages,
    refusesEnd: chance.happens(0.2),
    churn: hasShortPages ? chance.pick([0, 0.2]) : chance.pick([0, 0, 0.3, 0.8]),
    burst: hasShortPages ? 1 : chance.pick([1, 3, 15]),
    clockSkew: chance.pick([0, 0, 0, undefined, -90 * second, 20 * minute, 90 * minute, -90 * minute]),
    tokenSeconds: chance.pick([undefined, 3600, 120]),
    requestsPerMinute: chance.pick([undefined, undefined, undefined, 20]),
  }
}

export const drawConfig = (chance: Chance, lookbackMinutes = 10): Scenario['config'] => {
  const perMinute = chance.pick([undefined, undefined, 30, 120])
  return {
    start_date: '2010-01-01T00:00:00Z',
    page_size: chance.pick([10, 10, 25, 1000]),
    ...(lookbackMinutes === 10 ? {} : { lookback_minutes: lookbackMinutes }),
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
  const lookbackMinutes = chance.split('lookback').pick([10, 10, 1])
  const service = drawService(chance.split('service'), lookbackMinutes * minute)
  const config = drawConfig(chance.split('config'), lookbackMinutes)
  const kinds = drawKinds(chance.split('kinds'))
  const runs = chance.between(3, 8)
  const perRun = chance.pick([1, 2, 4])
  const pauses = Array.from({ length: runs }, () => chance.pick([second, 30 * second, 10 * minute, hour, 12 * hour]))
  const activity = chance.pick([0, 0.5, 1])
  const disturbances: PlannedDisturbance[] = []
  for (let run = 0; run < runs; run += 1) {
    if (chance.happens(activity))
      for (let i = chance.between(1, 3); i > 0; i -= 1)
        disturbances.push({
          run,
          step: 0,
          before: Math.floor(
            Math.min(pauses[run] ?? 0, chance.pick([10 * second, minute, 15 * minute])) * chance.next(),
          ),
          ...drawChange(chance, service),
        })
    for (let i = chance.between(0, perRun); i > 0; i -= 1)
      disturbances.push({
        run,
        step: chance.happens(0.2) ? 0 : chance.between(0, chance.pick([40, 200, 1_000])),
        ...drawDisturbance(chance, pickKind(chance, kinds), service),
      })
  }
  // The first runs read everything, and print states on their way.
  const kills = chance.split('kills')
  const early = [0, 1, 2]
    .filter(() => kills.happens(0.3))
    .map((run): PlannedDisturbance => ({ run, step: kills.between(50, 600), what: 'kill in a write' }))
  return {
    seed,
    program: chance.pick(['source-feedback', 'tap-feedback']),
    config,
    latency: chance.split('latency').pick([5, 5, 50, 3_000]),
    service,
    // Longer than the service's clock is behind.
    pauses: [...pauses, ...Array.from({ length: quietRuns }, () => 4 * hour)],
    disturbances: [...disturbances, ...early].sort(
      (a, b) => a.run - b.run || (b.before ?? 0) - (a.before ?? 0) || a.step - b.step,
    ),
  }
}

/** The same world with rows so long that a few pages are more than may wait for a slow reader of stdout. */
export const lengthenRows = (scenario: Scenario, chance: Chance): Scenario => ({
  ...scenario,
  config: { ...scenario.config, page_size: 10 },
  service: { ...scenario.service, reviews: chance.between(100, 130), padding: 40_000 },
  disturbances: [
    { run: 0, step: 0, what: 'slow reader', pause: 300 },
    // Each look at a full pipe is an event: a slower reader would make too many.
    ...scenario.disturbances.map((each) => (each.what === 'slow reader' ? { ...each, pause: 300 } : each)),
  ],
})

/**
 * The same world with a list of little more than a page, which the service cuts anywhere, and whose rows change while
 * its end is read.
 */
export const shortenList = (scenario: Scenario, chance: Chance): Scenario => ({
  ...scenario,
  config: { ...scenario.config, page_size: 10 },
  service: {
    ...scenario.service,
    reviews: chance.between(10, 16),
    order: 'ascending',
    hasShortPages: true,
    shortestPage: 0.1,
    churn: chance.pick([0.2, 0.5]),
    burst: 1,
  },
  disturbances: scenario.disturbances.map((each) => (each.what === 'rows' ? { ...each, count: 1 } : each)),
})

/** Streams that are added later, read less often, or given an older state, in runs before the quiet ones. */
export const drawApart = (chance: Chance, runs: number, streams: ReadonlyArray<string>): ReadonlyArray<ApartStream> => {
  const stream = chance.pick(streams)
  const added = chance.happens(0.5) ? chance.between(1, runs - 1) : 0
  const rest = Array.from({ length: runs - added }, (_, i) => added + i)
  return [
    ...Array.from({ length: added }, (_, run) => ({ run, stream })),
    ...rest.flatMap((run): ReadonlyArray<ApartStream> => {
      if (chance.happens(0.3)) return [{ run, stream }]
      return run > added && chance.happens(0.5) ? [{ run, stream, stateOf: chance.between(added, run - 1) }] : []
    }),
  ]
}

const mayEndRun = (disturbance: Disturbance, hasFixedToken: boolean): boolean => {
  switch (disturbance.what) {
    case 'slow reader':
    case 'slow input':
    case 'clock':
    case 'network':
      return false
    case 'slow network':
      return disturbance.most > 2_000
    case 'service':
      return (
        disturbance.fault === 'long wait' ||
        disturbance.fault === 'endless wait' ||
        (hasFixedToken && disturbance.fault.startsWith('401'))
      )
    default:
      return true
  }
}

/**
 * A run has to succeed: its rows do not change, and at most one answer or connection fails. `armedBefore`: faults left
 * over from earlier runs.
 */
export const mustComplete = ({ service, disturbances }: Scenario, run: number, armedBefore: number): boolean => {
  const own = disturbances.filter((each) => each.run === run && each.before === undefined)
  const faults = own.map((each) => (each.what === 'service' ? each.times : each.what === 'network' ? 1 : 0))
  const slow = disturbances.some((each) => each.run <= run && each.what === 'slow network' && each.most > 2_000)
  return (
    armedBefore === 0 &&
    !slow &&
    service.churn === 0 &&
    // A version that shows late moves the rows of a list: such a read may have to be made again. Where an order is
    // kept, seconds do no harm.
    service.lag <= (service.order === 'random' || service.order === 'ties' ? 0 : 5_000) &&
    faults.reduce<number>((sum, count) => sum + count, 0) <= 1 &&
    !own.some((each) => (each.what === 'rows' ? each.step > 0 : mayEndRun(each, service.tokenSeconds === undefined)))
  )
}
