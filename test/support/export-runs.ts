import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as O from 'fp-ts/Option'
import * as TE from 'fp-ts/TaskEither'
import type { Failure } from '../../connector/cdk/failure'
import type { Feed } from '../../connector/cdk/feed'
import type { CutRecord } from '../../connector/export/cut/record'
import type { FetchPage } from '../../connector/export/fetch-page'
import { type ExportListing, toList } from '../../connector/export/list'
import { cursorSlack, filterFrom, nextCursor } from '../../connector/reading/clock'
import type { ReadItem } from '../../connector/reading/item'
import { read } from '../../connector/reading/read'
import { decodeResumeToken, digestFilters, isResumable } from '../../connector/reading/resume-token'
import { matchesSentRow, type SentRows } from '../../connector/reading/sent-rows'
import type { ReadEnv } from '../../connector/reading/session'
import { type ExportTraits, type SimulatedExport, simulateExport } from './export-simulation'
import { random } from './random'

/** The state of a stream between runs. */
export type StreamState = {
  readonly cursor: number | undefined
  readonly slack: number
  readonly recent: SentRows
  readonly scan: unknown
}

export const noState: StreamState = { cursor: undefined, slack: 0, recent: [], scan: undefined }

/** A table to which rows and deletions are applied as in a snapshot: for each id the later event wins. */
export type TestDestination = {
  readonly rows: Map<string, { readonly modifiedTime: number; readonly version: number }>
  readonly deleted: Map<string, number>
}

export const emptyDestination = (): TestDestination => ({ rows: new Map(), deleted: new Map() })

/** What a reader brings; tests store its token and never look into it. */
export type ReaderItem = Omit<ReadItem<CutRecord>, 'resumeToken'> & { readonly resumeToken: () => unknown }

/** What a run reads, and how; times in milliseconds. */
export type ListToRead = Omit<ReadEnv<CutRecord>, 'list'> &
  Omit<ExportListing, 'filters'> & {
    readonly startDate: number
    readonly cursor: O.Option<number>
    readonly lookback: number
    /** The token of the previous run, as stored; undefined: there is none. */
    readonly token: unknown
  }

/** A way to read a list that changes. Every simulated service can be read with each of them. */
export type ListReader = (list: ListToRead) => Feed<Failure, ReaderItem>

/** connector/reading. */
export const readList: ListReader = ({ startDate, cursor, lookback, token, ...env }) => {
  const scope = digestFilters({})
  const plan = { now: env.now(), from: filterFrom(startDate, cursor, lookback), filters: scope }
  return read({ ...env, list: toList({ ...env, filters: {} }) })({
    origin: { startDate, cursor, lookback },
    scope,
    resumeToken: O.filter(isResumable(plan))(decodeResumeToken(token)),
  })
}

type RunSettings = {
  readonly service: SimulatedExport
  readonly destination: TestDestination
  readonly limit: number
  readonly concurrency: number
  readonly startDate: number
  readonly lookback: number
  /** connector/reading, unless another is to read. */
  readonly reader?: ListReader
  /** The state keeps its slack. */
  readonly slack?: boolean
  /** Stop after this many items, before or after storing the state that covers the last of them. */
  readonly crash?: { readonly items: number; readonly stateKept: boolean }
  readonly watch?: (item: ReaderItem) => void
}

export type RunResult = {
  readonly state: StreamState
  readonly sent: ReadonlyArray<string>
  readonly failure: Failure | undefined
  readonly finished: boolean
  /** How many rows it was given. */
  readonly read: number
  /** Up to when a run that has finished has read everything. */
  readonly cutoff?: number
}

/** One run of one stream, as the stream's reader does it. */
export const runStream = async (
  stream: 'reviews' | 'deletions',
  settings: RunSettings,
  state: StreamState,
): Promise<RunResult> => {
  const { service, destination, startDate, lookback } = settings
  const cursor = O.fromNullable(state.cursor)
  const scanCursor = O.map((time: number) => time - state.slack)(cursor)
  const feed = (settings.reader ?? readList)({
    operation: stream,
    fetch: limitRequests(
      overwriteReleased(service[stream]),
      settings,
      // Reviews that are deleted meanwhile lengthen the list of deletions.
      service.truth().size + (stream === 'reviews' ? 0 : service.deleted().size),
    ),
    now: service.now,
    wait: (millis) => async () => service.sleep(millis),
    concurrency: settings.concurrency,
    limit: settings.limit,
    hasMentionTime: stream === 'reviews',
    startDate,
    cursor: scanCursor,
    lookback,
    token: state.scan,
  })
  const isSentRow = matchesSentRow(state.recent)
  const sent: string[] = []
  let current = state
  let end: Pick<RunResult, 'read' | 'cutoff'> = { read: 0 }
  /** Makes the token of the last item that was stored; only a run that is stopped needs it. */
  let makeToken: ReaderItem['resumeToken'] | undefined
  let items = 0
  for await (const answer of feed) {
    if (E.isLeft(answer))
      return { state: { ...current, scan: undefined }, sent, failure: answer.left, finished: false, ...end }
    const item = answer.right
    settings.watch?.(item)
    for (const row of item.rows.filter((one) => !isSentRow(one))) {
      sent.push(row.id)
      if (stream === 'reviews') upsert(destination, row.id, row.modifiedTime, row.raw)
      else deleteRow(destination, row.id, row.modifiedTime)
    }
    end = { read: end.read + item.rows.length, ...(item.completion && { cutoff: item.completion.cutoff }) }
    items += 1
    const isCrash = settings.crash !== undefined && items >= settings.crash.items
    if (!isCrash || settings.crash?.stateKept) {
      makeToken = item.completion === undefined ? item.resumeToken : undefined
      if (item.completion !== undefined) {
        const next = nextCursor(cursor, item.completion.newestRowTime)
        const slack =
          settings.slack === false
            ? 0
            : cursorSlack(next, nextCursor(scanCursor, item.completion.certainTime), startDate)
        current = {
          cursor: O.toUndefined(next),
          slack,
          recent: JSON.parse(
            JSON.stringify(item.completion.sentRowsSince(filterFrom(startDate, next, lookback + slack)).rows),
          ),
          scan: undefined,
        }
      }
    }
    if (isCrash) {
      const token = makeToken === undefined ? {} : { scan: JSON.parse(JSON.stringify(makeToken())) }
      return {
        state: { ...current, ...token },
        sent,
        failure: undefined,
        finished: item.completion !== undefined,
        ...end,
      }
    }
  }
  return { state: current, sent, failure: undefined, finished: true, ...end }
}

/**
 * How many times the fewest requests a scan may take: rounds over a list without order ask for each page four times, up
 * to 30 rounds.
 */
const maxRequestsPerPage = 130

/** Counts a scan as endless, and throws, once it has asked for more pages than the rows at its beginning allow. */
const limitRequests = (
  fetch: FetchPage,
  { service, limit }: Pick<RunSettings, 'service' | 'limit'>,
  rowCount: number,
): FetchPage => {
  const first = service.requests()
  const most = maxRequestsPerPage * (Math.ceil(rowCount / service.shortestPage(limit)) + 5)
  return (request) => {
    if (service.requests() - first > most)
      throw new Error(`the scan does not end: ${most} requests for ${rowCount} rows`)
    return fetch(request)
  }
}

/** Overwrites the bytes of a page once it is released, as the next answer does. */
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

/** The rows in which the destination differs from the service. */
export const compareWithTruth = ({ service, destination }: RunSettings): ReadonlyArray<string> => {
  // A row dated in the future is read once its time has come; it is not compared when.
  const isDue = ([id]: readonly [string, unknown]): boolean => !service.futureIds.has(id)
  const truth = new Map([...service.truth()].filter(isDue))
  return [
    ...[...truth].filter(([id]) => !destination.rows.has(id)).map(([id]) => `missing ${id}`),
    ...[...truth]
      .filter(([id, version]) => (destination.rows.get(id)?.version ?? version) !== version)
      .map(([id]) => `stale ${id}`),
    ...[...destination.rows].filter((row) => isDue(row) && !truth.has(row[0])).map(([id]) => `extra ${id}`),
  ]
}

/** How a run of a stream ended. */
export type RunEnd = {
  readonly stream: 'reviews' | 'deletions'
  readonly run: number
  /** Nothing changed any more. */
  readonly isQuiet: boolean
  readonly end: 'COMPLETE' | 'INCOMPLETE' | 'stopped'
  readonly message?: string
  readonly requests: number
  /** How many rows it was given. */
  readonly read: number
  /** The rows that a complete run lacks, though nothing has touched them since it began. */
  readonly lacking: ReadonlyArray<string>
}

/** The rows before `time` that nothing has touched since and the destination lacks. */
const findLacking = (
  stream: RunEnd['stream'],
  { service, destination }: Pick<RunSettings, 'service' | 'destination'>,
  time: number,
): ReadonlyArray<string> =>
  stream === 'reviews'
    ? [...service.restedBefore(time)]
        .filter(([id, version]) => destination.rows.get(id)?.version !== version)
        .map(([id]) => id)
    : [...service.deleted()].filter(([id, at]) => at < time && !destination.deleted.has(id)).map(([id]) => id)

/** How a service is read in several runs. */
export type SimulationPlan = {
  readonly seed: number
  readonly limit: number
  readonly concurrency: number
  readonly runs: number
  readonly crashes: boolean
  /** connector/reading, unless another is to read. */
  readonly reader?: ListReader
  readonly lookback?: number
  /** The state keeps its slack. */
  readonly slack?: boolean
  readonly watch?: (item: ReaderItem, service: SimulatedExport) => void
}

export type SimulationOutcome = {
  readonly differences: ReadonlyArray<string>
  readonly requests: number
  /** Runs that failed while the service was busy. */
  readonly failures: number
  /** The failures of the last runs, when nothing changes any more. */
  readonly unfinished: ReadonlyArray<string>
  readonly messages: ReadonlyArray<string>
  readonly ends: ReadonlyArray<RunEnd>
  readonly warnings: ReadonlyArray<string>
  /** The rows that one more run of an unchanged service sends. */
  readonly repeated: ReadonlyArray<string>
}

const startDate = Date.UTC(2025, 11, 31)
const minute = 60_000

/**
 * Runs a service while it is busy, some runs killed, then while it is quiet, and compares the destination with the
 * truth.
 */
export const runSimulation = async (traits: ExportTraits, plan: SimulationPlan): Promise<SimulationOutcome> => {
  const service = simulateExport(traits, plan.seed)
  const draw = random(plan.seed ^ 0x5555)
  const destination = emptyDestination()
  const warnings: string[] = []
  const settings = {
    service,
    destination,
    limit: plan.limit,
    concurrency: plan.concurrency,
    startDate,
    lookback: plan.lookback ?? 10 * minute,
    slack: plan.slack ?? true,
    ...(plan.reader === undefined ? {} : { reader: plan.reader }),
    watch: (item: ReaderItem) => {
      plan.watch?.(item, service)
      warnings.push(...item.notes.filter(({ level }) => level === 'warn').map(({ message }) => message))
    },
  }
  const crash = (): object =>
    plan.crashes && draw() < 0.6 ? { crash: { items: 1 + Math.floor(draw() * 15), stateKept: draw() < 0.5 } } : {}
  const ends: RunEnd[] = []
  let runCount = 0
  /** When the read began that the next run of a stream continues. */
  const begun = new Map<RunEnd['stream'], number>()
  const runOne = async (stream: RunEnd['stream'], state: StreamState, crashPlan: () => object): Promise<RunResult> => {
    const before = service.requests()
    const begin = Math.min(service.now(), begun.get(stream) ?? service.now())
    begun.set(stream, begin)
    const done = await runStream(stream, { ...settings, ...crashPlan() }, state)
    const { failure, finished, cutoff } = done
    // A run that was stopped before it stored its last state continues from the token of the previous one.
    if (done.state.scan === undefined) begun.delete(stream)
    ends.push({
      stream,
      run: runCount,
      isQuiet: !service.isBusy(),
      end: finished ? 'COMPLETE' : failure === undefined ? 'stopped' : 'INCOMPLETE',
      ...(failure === undefined ? {} : { message: failure.message }),
      requests: service.requests() - before,
      read: done.read,
      lacking:
        cutoff === undefined
          ? []
          : findLacking(stream, settings, Math.min(cutoff, begin - traits.lag - traits.replicaLag)),
    })
    return done
  }
  const runBoth = async (
    states: readonly [RunResult['state'], RunResult['state']],
    crashPlan: () => object,
  ): Promise<readonly [RunResult, RunResult]> => {
    const deletions = await runOne('deletions', states[0], crashPlan)
    const reviews = await runOne('reviews', states[1], crashPlan)
    runCount += 1
    service.sleep(Math.floor(draw() * 30 * minute))
    return [deletions, reviews]
  }
  const noCrash = (): object => ({})

  let states: readonly [RunResult['state'], RunResult['state']] = [noState, noState]
  let failures = 0
  const messages: string[] = []
  for (let i = 0; i < plan.runs; i++) {
    const done = await runBoth(states, crash)
    failures += done.filter(({ failure }) => failure !== undefined).length
    messages.push(...done.flatMap(({ failure }) => (failure === undefined ? [] : [failure.message])))
    states = [done[0].state, done[1].state]
  }
  service.calm()
  service.sleep(4 * 60 * minute)
  const quiet = await runBoth(states, noCrash)
  const last = await runBoth([quiet[0].state, quiet[1].state], noCrash)
  const requests = service.requests()
  const repeated = await runBoth([last[0].state, last[1].state], noCrash)
  return {
    differences: compareWithTruth(settings),
    requests,
    messages,
    ends,
    failures,
    unfinished: last.flatMap(({ failure }) => (failure === undefined ? [] : [failure.message])),
    warnings,
    repeated: repeated.flatMap(({ sent }) => sent),
  }
}
