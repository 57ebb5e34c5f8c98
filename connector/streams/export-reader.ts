import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as O from 'fp-ts/Option'
import * as RA from 'fp-ts/ReadonlyArray'
import {
  concatFeed,
  type Failure,
  type Feed,
  feedOf,
  flatMapFeed,
  type Reader,
  type ReaderEvent,
  type Row,
  type StreamRequest,
} from '../cdk'
import {
  type CutRecord,
  digestFilters,
  type FetchPage,
  filterFrom,
  isResumable,
  leastAdvancedToken,
  matchesSentRow,
  type ScanFilters,
  type ScanItem,
  type ScanStart,
  scan,
  scanScope,
} from '../export'
import {
  completeExportState,
  decodeExportState,
  type ExportStreamState,
  emptyExportState,
  encodeExportState,
  encodeOpenScan,
} from './export-state'
import { partitionWindows } from './partition'
import { selectAttributes } from './record'
import type { CompleteScan, SourceEnv } from './source'
import { collectPageWarnings, scanWarnings } from './warnings'

/** What tells the two exports apart. */
export type ExportDefinition<Item> = {
  readonly name: string
  /** `streams`: those that it is read for. */
  readonly fetch: (source: SourceEnv, streams: ReadonlyArray<string>) => FetchPage
  readonly filters: (source: SourceEnv) => ScanFilters
  readonly hasMentionTime: boolean
  /** What the streams' projections are given of a record. */
  readonly toItem: (source: SourceEnv) => (cut: CutRecord) => Item
  /** All that changed since a time has been read. */
  readonly onScanEnd?: (source: SourceEnv, scanned: CompleteScan) => void
}

/** One selected stream in a scan it may share: what it still wants of each page. */
type SharedStreamProgress<Item> = {
  readonly demand: StreamRequest<Item>
  readonly standing: ExportStreamState
  readonly isWanted: (cut: CutRecord) => boolean
  readonly selectAttributes: (row: Row) => Row
}

/** Reads an export once for all the streams that want something of it; each gets what lies after its own cursor. */
export const createExportReader = <Item>(operation: ExportDefinition<Item>): Reader<SourceEnv, Item> => ({
  name: operation.name,
  read: (source) => (demands) => {
    const { left: failed, right: legs } = RA.separate(demands.map((demand) => toStreamProgress(source, demand)))
    const told = feedOf<Failure, ReaderEvent>(...failed.map((reading) => E.right(reading)))
    return legs.length === 0 ? told : concatFeed(() => readSharedScan(operation, source, legs))(told)
  },
})

/** A stream whose state cannot be read fails alone. */
const toStreamProgress = <Item>(
  source: SourceEnv,
  demand: StreamRequest<Item>,
): E.Either<ReaderEvent, SharedStreamProgress<Item>> =>
  pipe(
    decodeExportState(demand.stream, demand.state),
    E.bimap(
      (failure) => ({ _tag: 'Failed', stream: demand.stream, failure }),
      (held) =>
        newStreamProgress(
          source,
          demand,
          demand.syncMode === 'full_refresh' ? { ...emptyExportState, resumeToken: held.resumeToken } : held,
        ),
    ),
  )

const newStreamProgress = <Item>(
  source: SourceEnv,
  demand: StreamRequest<Item>,
  standing: ExportStreamState,
): SharedStreamProgress<Item> => {
  const from = filterFrom(source.startDate, standing.cursor, source.lookback + standing.slack)
  const sent = matchesSentRow(standing.sentRows)
  return {
    demand,
    standing,
    isWanted: (cut) => cut.modifiedTime >= from && !sent(cut),
    selectAttributes: selectAttributes(demand.attributes),
  }
}

const readSharedScan = <Item>(
  operation: ExportDefinition<Item>,
  source: SourceEnv,
  legs: ReadonlyArray<SharedStreamProgress<Item>>,
): Feed<Failure, ReaderEvent> => {
  const digest = digestFilters(operation.filters(source))
  const streams = legs.map(({ demand }) => demand.stream)
  const noticed = collectPageWarnings(operation.fetch(source, streams))
  const start = toScanStart(operation, source, legs)
  const toItem = operation.toItem(source)
  let ended: ScanItem['completion']
  const readings = pipe(
    scan({
      operation: operation.name,
      fetch: noticed.fetch,
      now: source.now,
      concurrency: source.concurrency,
      limit: source.pageSize,
      order: source.order,
      hasMentionTime: operation.hasMentionTime,
    })(start),
    flatMapFeed(function* (item): Iterable<ReaderEvent> {
      ended = item.completion
      if (item.completion !== undefined && O.isNone(start.resumeToken) && start.windows === undefined)
        operation.onScanEnd?.(source, toCompleteScan(start, digest, item.completion))
      for (const message of noticed.drain()) yield { _tag: 'Note', level: 'warn', message }
      for (const note of item.notes) yield { _tag: 'Note', ...note }
      for (const leg of legs) yield* scanWarnings(leg, digest, item)
      yield* rowsOf(legs, item.rows, toItem)
      for (const leg of legs) yield toCheckpoint(source, digest, leg, item)
    }),
  )
  const later = (): ReadonlyArray<SharedStreamProgress<Item>> =>
    legs.map((leg) =>
      newStreamProgress(
        source,
        leg.demand,
        ended === undefined ? leg.standing : completeExportState(leg.standing, source, ended),
      ),
    )
  // A scan that was resumed ends as of its old signpost: what changed since then is read at once, by one of its own.
  return O.isNone(start.resumeToken) ? readings : concatFeed(() => readSharedScan(operation, source, later()))(readings)
}

/** A whole scan, whoever wanted it. */
const toCompleteScan = (
  { from: { startDate, cursor, lookback } }: ScanStart,
  digest: string,
  last: NonNullable<ScanItem['completion']>,
): CompleteScan => ({
  from: filterFrom(startDate, cursor, lookback),
  state: encodeExportState(
    completeExportState({ ...emptyExportState, cursor }, { startDate, lookback }, last),
    startDate,
    digest,
  ),
})

const toScanStart = <Item>(
  operation: ExportDefinition<Item>,
  source: SourceEnv,
  legs: ReadonlyArray<SharedStreamProgress<Item>>,
): ScanStart => {
  const { startDate, lookback, partition } = source
  const filters = operation.filters(source)
  const cursor = legs
    .map(({ standing }) => O.map((at: number) => at - standing.slack)(standing.cursor))
    .reduce(earlierCursor)
  const scope =
    operation.hasMentionTime && O.isSome(partition)
      ? { filters, windows: partitionWindows(partition.value, startDate, source.now(), filters) }
      : { filters }
  const wanted = { now: source.now(), from: filterFrom(startDate, cursor, lookback), filters: scanScope(scope) }
  const markers = RA.compact(legs.map(({ standing }) => standing.resumeToken)).filter(isResumable(wanted))
  return {
    ...scope,
    from: { startDate, cursor, lookback },
    resumeToken: markers.length === legs.length ? leastAdvancedToken(markers) : O.none,
  }
}

const earlierCursor = (a: O.Option<number>, b: O.Option<number>): O.Option<number> =>
  O.isNone(a) || O.isNone(b) ? O.none : O.some(Math.min(a.value, b.value))

/** So many records at a time go to every stream: what is made of them is gone before the next are looked into. */
const rowsPerGroup = 64

function* rowsOf<Item>(
  legs: ReadonlyArray<SharedStreamProgress<Item>>,
  page: ReadonlyArray<CutRecord>,
  toItem: (cut: CutRecord) => Item,
): Iterable<ReaderEvent> {
  for (let from = 0; from < page.length; from += rowsPerGroup) {
    const groups = legs.map((leg) => ({ ...leg, rows: [] as Row[] }))
    for (const cut of page.slice(from, from + rowsPerGroup)) {
      const item = toItem(cut)
      for (const { demand, isWanted, selectAttributes: select, rows } of groups)
        if (isWanted(cut)) for (const row of demand.project(item)) rows.push(select(row))
    }
    for (const { demand, rows } of groups) if (rows.length > 0) yield { _tag: 'Rows', stream: demand.stream, rows }
  }
}

const toCheckpoint = <Item>(
  source: SourceEnv,
  digest: string,
  leg: SharedStreamProgress<Item>,
  { completion, resumeToken }: ScanItem,
): ReaderEvent => ({
  _tag: 'Checkpoint',
  stream: leg.demand.stream,
  state:
    completion === undefined
      ? () => encodeOpenScan(leg.standing, source.startDate, digest, resumeToken())
      : () => encodeExportState(completeExportState(leg.standing, source, completion), source.startDate, digest),
})
