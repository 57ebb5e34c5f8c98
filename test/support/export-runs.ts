import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as O from 'fp-ts/Option'
import * as TE from 'fp-ts/TaskEither'
import { type Failure, transientFailure } from '../../connector/cdk/failure'
import type { FetchPage } from '../../connector/export/export-page'
import { cursorSlack, filterFrom, nextCursor } from '../../connector/export/scan/cutoff'
import { allScanRules, type ScanRules } from '../../connector/export/scan/pass'
import { decodeResumeToken, isResumable } from '../../connector/export/scan/resume-token'
import { type ScanEnv, type ScanItem, scan } from '../../connector/export/scan/scan'
import { matchesSentRow, type SentRows } from '../../connector/export/scan/sent-rows'
import { type ExportTraits, type SimulatedExport, seededRandom, simulateExport } from './export-simulation'

/** What a stream's state says between runs. */
export type StreamState = {
  readonly cursor: number | undefined
  readonly slack: number
  readonly recent: SentRows
  readonly scan: unknown
}

export const noState: StreamState = { cursor: undefined, slack: 0, recent: [], scan: undefined }

/** A table that applies rows and deletions as a snapshot does: per id the later event wins. */
export type TestDestination = {
  readonly rows: Map<string, { readonly modifiedTime: number; readonly version: number }>
  readonly deleted: Map<string, number>
}

export const emptyDestination = (): TestDestination => ({ rows: new Map(), deleted: new Map() })

type RunSettings = {
  readonly service: SimulatedExport
  readonly destination: TestDestination
  readonly limit: number
  readonly concurrency: number
  readonly order: ScanEnv['order']
  readonly startDate: number
  readonly lookback: number
  readonly rules?: ScanRules
  /** Whether the cursor's slack is kept. */
  readonly slack?: boolean
  /** Stop after so many items, before or after the state that covers the last of them is kept. */
  readonly crash?: { readonly items: number; readonly stateKept: boolean }
  /** A scan longer than this is taken to be endless. */
  readonly mostItems?: number
  readonly watch?: (item: ScanItem) => void
}

export type RunResult = {
  readonly state: StreamState
  readonly sent: ReadonlyArray<string>
  readonly failure: Failure | undefined
  readonly finished: boolean
}

/** One run of one stream, as a reader would do it. */
export const runStream = async (
  stream: 'reviews' | 'deletions',
  settings: RunSettings,
  state: StreamState,
): Promise<RunResult> => {
  const { service, destination, startDate, lookback } = settings
  const cursor = O.fromNullable(state.cursor)
  const filters = {}
  const anchor = O.map((time: number) => time - state.slack)(cursor)
  const wanted = { now: service.now(), from: filterFrom(startDate, anchor, lookback), filters }
  const feed = scan(
    {
      operation: stream,
      fetch: overwriteReleased(service[stream]),
      now: service.now,
      concurrency: settings.concurrency,
      limit: settings.limit,
      order: settings.order,
      hasMentionTime: stream === 'reviews',
    },
    settings.rules ?? allScanRules,
  )({
    origin: { startDate, cursor: anchor, lookback },
    filters,
    resumeToken: O.filter(isResumable(wanted))(decodeResumeToken(state.scan)),
  })
  const isOld = matchesSentRow(state.recent)
  const sent: string[] = []
  let current = state
  let items = 0
  for await (const answer of feed) {
    if (E.isLeft(answer)) return { state: { ...current, scan: undefined }, sent, failure: answer.left, finished: false }
    const item = answer.right
    settings.watch?.(item)
    for (const row of item.rows.filter((one) => !isOld(one))) {
      sent.push(row.id)
      if (stream === 'reviews') upsert(destination, row.id, row.modifiedTime, row.raw)
      else deleteRow(destination, row.id, row.modifiedTime)
    }
    items += 1
    if (items > (settings.mostItems ?? 1000))
      return {
        state: { ...current, scan: undefined },
        sent,
        failure: transientFailure('the scan does not end'),
        finished: false,
      }
    const over = settings.crash !== undefined && items >= settings.crash.items
    if (!over || settings.crash?.stateKept) {
      if (item.completion === undefined) current = { ...current, scan: JSON.parse(JSON.stringify(item.resumeToken())) }
      else {
        const next = nextCursor(cursor, item.completion.newestRowTime)
        const slack =
          settings.slack === false ? 0 : cursorSlack(next, nextCursor(cursor, item.completion.certainTime), lookback)
        current = {
          cursor: O.toUndefined(next),
          slack,
          recent: JSON.parse(
            JSON.stringify(item.completion.sentRowsSince(filterFrom(startDate, next, lookback + slack))),
          ),
          scan: undefined,
        }
      }
    }
    if (over) return { state: current, sent, failure: undefined, finished: item.completion !== undefined }
  }
  return { state: current, sent, failure: undefined, finished: true }
}

/** Pages whose bytes are overwritten once they are given back, as the next answer would. */
const overwriteReleased =
  (fetch: FetchPage): FetchPage =>
  (request) =>
    pipe(
      fetch(request),
      TE.map((page) => ({ ...page, release: () => page.rows.forEach(({ raw }) => void (raw as Buffer).fill(0)) })),
    )

const upsert = ({ rows, deleted }: TestDestination, id: string, modifiedTime: number, raw: Uint8Array): void => {
  if ((deleted.get(id) ?? -1) >= modifiedTime) return
  const { version } = JSON.parse(Buffer.from(raw).toString('utf8')) as { version: number }
  if ((rows.get(id)?.modifiedTime ?? -1) <= modifiedTime) rows.set(id, { modifiedTime, version })
}

const deleteRow = ({ rows, deleted }: TestDestination, id: string, time: number): void => {
  deleted.set(id, Math.max(time, deleted.get(id) ?? time))
  if ((rows.get(id)?.modifiedTime ?? time + 1) <= time) rows.delete(id)
}

/** Rows in which the destination differs from the service. */
export const compareWithTruth = ({ service, destination }: RunSettings): ReadonlyArray<string> => {
  const truth = service.truth()
  return [
    ...[...truth].filter(([id]) => !destination.rows.has(id)).map(([id]) => `missing ${id}`),
    ...[...truth]
      .filter(([id, version]) => (destination.rows.get(id)?.version ?? version) !== version)
      .map(([id]) => `stale ${id}`),
    ...[...destination.rows.keys()].filter((id) => !truth.has(id)).map((id) => `extra ${id}`),
  ]
}

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
