import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as O from 'fp-ts/Option'
import * as TE from 'fp-ts/TaskEither'
import type { FetchPage } from '../../connector/api/page'
import { type ScanEnv, type ScanItem, scan } from '../../connector/api/scan'
import { cursorSlack, filterFrom, nextCursor } from '../../connector/api/scan/cursor'
import { decodeResumeToken, isResumable } from '../../connector/api/scan/marker'
import { allScanRules, type ScanRules } from '../../connector/api/scan/pass'
import { matchesSentRow, type SentRows } from '../../connector/api/scan/recent'
import { type Failure, transientFailure } from '../../connector/cdk/failure'
import type { SimulatedExport } from './simulation'

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
    from: { startDate, cursor: anchor, lookback },
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
        const next = nextCursor(cursor, item.completion.newest)
        const slack =
          settings.slack === false ? 0 : cursorSlack(next, nextCursor(cursor, item.completion.certain), lookback)
        current = {
          cursor: O.toUndefined(next),
          slack,
          recent: JSON.parse(JSON.stringify(item.completion.recent(filterFrom(startDate, next, lookback + slack)))),
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
