import type { ScanItem } from '../../connector/api/scan'
import type { ScanRules } from '../../connector/api/scan/pass'
import { compareWithTruth, emptyDestination, noState, type RunResult, runStream } from './destination'
import { type ExportTraits, type SimulatedExport, seededRandom, simulateExport } from './simulation'

/** How a service is read over time. */
export type SimulationPlan = {
  readonly seed: number
  readonly limit: number
  readonly concurrency: number
  /** The operator knows that the service serves by modifiedTime, where it does. */
  readonly sorted: boolean
  readonly runs: number
  readonly crashes: boolean
  readonly rules?: ScanRules
  readonly lookback?: number
  /** Whether the cursor's slack is kept. */
  readonly slack?: boolean
  readonly watch?: (item: ScanItem, service: SimulatedExport) => void
}

export type SimulationOutcome = {
  readonly differences: ReadonlyArray<string>
  readonly requests: number
  /** Runs of the busy time that ended in a failure. */
  readonly failures: number
  /** What the last, quiet runs failed of; empty if all is well. */
  readonly unfinished: ReadonlyArray<string>
  readonly messages: ReadonlyArray<string>
  readonly warnings: ReadonlyArray<string>
  /** What a further run over an unchanged service sends. */
  readonly repeated: ReadonlyArray<string>
}

const startDate = Date.UTC(2025, 11, 31)
const minute = 60_000

/** Busy runs, some of them killed, then a quiet one: what the destination holds against the truth. */
export const runSimulation = async (weather: ExportTraits, plan: SimulationPlan): Promise<SimulationOutcome> => {
  const service = simulateExport(weather, plan.seed)
  const random = seededRandom(plan.seed ^ 0x5555)
  const destination = emptyDestination()
  const warnings: string[] = []
  const settings = {
    service,
    destination,
    limit: plan.limit,
    concurrency: plan.concurrency,
    order: plan.sorted && weather.order === 'ascending' ? ('modified_time' as const) : ('unspecified' as const),
    startDate,
    lookback: plan.lookback ?? 10 * minute,
    slack: plan.slack ?? true,
    ...(plan.rules === undefined ? {} : { rules: plan.rules }),
    watch: (item: ScanItem) => {
      plan.watch?.(item, service)
      warnings.push(...item.notes.filter(({ level }) => level === 'warn').map(({ message }) => message))
    },
  }
  const crash = (): object =>
    plan.crashes && random() < 0.6 ? { crash: { items: 1 + Math.floor(random() * 15), stateKept: random() < 0.5 } } : {}
  const both = async (
    states: readonly [RunResult['state'], RunResult['state']],
    extra: () => object,
  ): Promise<readonly [RunResult, RunResult]> => {
    const deletions = await runStream('deletions', { ...settings, ...extra() }, states[0])
    const reviews = await runStream('reviews', { ...settings, ...extra() }, states[1])
    service.sleep(Math.floor(random() * 30 * minute))
    return [deletions, reviews]
  }
  const quietly = (): object => ({})

  let states: readonly [RunResult['state'], RunResult['state']] = [noState, noState]
  let failures = 0
  const messages: string[] = []
  for (let i = 0; i < plan.runs; i++) {
    const done = await both(states, crash)
    failures += done.filter(({ failure }) => failure !== undefined).length
    messages.push(...done.flatMap(({ failure }) => (failure === undefined ? [] : [failure.message])))
    states = [done[0].state, done[1].state]
  }
  service.calm()
  service.sleep(4 * 60 * minute)
  const resumed = await both(states, quietly)
  const last = await both([resumed[0].state, resumed[1].state], quietly)
  const requests = service.requests()
  const again = await both([last[0].state, last[1].state], quietly)
  return {
    differences: compareWithTruth(settings),
    requests,
    messages,
    failures,
    unfinished: last.flatMap(({ failure }) => (failure === undefined ? [] : [failure.message])),
    warnings,
    repeated: again.flatMap(({ sent }) => sent),
  }
}
