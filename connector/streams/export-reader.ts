import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as O from 'fp-ts/Option'
import * as RA from 'fp-ts/ReadonlyArray'
import {
  concatFeed,
  defined,
  type Failure,
  type Feed,
  feedOf,
  flatMapFeedEither,
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
  isInRange,
  isResumable,
  leastAdvancedToken,
  matchesSentRow,
  type ScanCompletion,
  type ScanEnv,
  type ScanFilters,
  type ScanItem,
  type ScanStart,
  type SentRange,
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
  openExportState,
  readsOnFrom,
} from './export-state'
import { type CompleteScan, partitionWindows, type SourceEnv } from './source-env'
import {
  futureCursorFailure,
  futureStartFailure,
  isAheadOfService,
  isStartMovedBack,
  movedBackNote,
  watchServiceTime,
} from './start-date'
import { reportScanEnd } from './sync-audit'
import { collectPageWarnings, selectAttributes, stateWarnings } from './warnings'

/** An export operation, and how its records become the items of its streams. */
export type ExportDefinition<Item> = {
  readonly name: string
  /** Fetches a page for the streams of these names. */
  readonly fetch: (source: SourceEnv, streamNames: ReadonlyArray<string>) => FetchPage
  readonly filters: (source: SourceEnv) => ScanFilters
  readonly hasMentionTime: boolean
  /** The item that the projections of the streams get for a record. */
  readonly toItem: (source: SourceEnv) => (record: CutRecord) => Item
  /** Called when a scan of everything since its start has ended. */
  readonly onScanEnd?: (source: SourceEnv, completeScan: CompleteScan) => void
}

/** A selected stream in a scan that it may share with others. */
type SharedStreamProgress<Item> = {
  readonly request: StreamRequest<Item>
  readonly state: ExportStreamState
  /** Whether the record lies after the stream's cursor and has not been sent before. */
  readonly isNew: (record: CutRecord) => boolean
  readonly selectAttributes: (row: Row) => Row
  /** The start date of its state, if it is read again because the config's is earlier; milliseconds. */
  readonly movedBackFrom?: number
  /** Rows that the scan before has held back, and this one sends. */
  readonly overdue?: Overdue
}

/** `range`: its rows are not the ones that were sent. `saved`: the state until they are; the cursor has not moved. */
type Overdue = { readonly range: SentRange; readonly saved: ExportStreamState }

/** Reads an export once for all selected streams that are made of it; each gets the records after its own cursor. */
export const createExportReader = <Item>(operation: ExportDefinition<Item>): Reader<SourceEnv, Item> => ({
  name: operation.name,
  read: (source) => (requests) => {
    const { left: failures, right: streams } = RA.separate(requests.map((request) => startStream(source, request)))
    return pipe(
      feedOf<Failure, ReaderEvent>(...[...failures, ...movedBackNotes(source, streams)].map((event) => E.right(event))),
      concatFeed(() => (streams.length === 0 ? feedOf() : readSharedScan(operation, source, streams))),
    )
  },
})

/** A stream whose state cannot be decoded fails alone. */
const startStream = <Item>(
  source: SourceEnv,
  request: StreamRequest<Item>,
): E.Either<ReaderEvent, SharedStreamProgress<Item>> =>
  pipe(
    decodeExportState(request.stream, request.state),
    E.bimap(
      (failure) => ({ _tag: 'Failed', stream: request.stream, failure }),
      (state): SharedStreamProgress<Item> => {
        if (request.syncMode === 'full_refresh')
          return toStreamProgress(source, request, { ...emptyExportState, resumeToken: state.resumeToken })
        const progress = toStreamProgress(source, request, openExportState(state, source.startDate))
        const { readSince } = state
        return O.isSome(readSince) && isStartMovedBack(readSince, source.startDate)
          ? { ...progress, movedBackFrom: readSince.value }
          : progress
      },
    ),
  )

/** One note for all streams that were read from the same start. */
const movedBackNotes = <Item>(
  { startDate }: SourceEnv,
  streams: ReadonlyArray<SharedStreamProgress<Item>>,
): ReadonlyArray<ReaderEvent> => {
  const starts = new Set(streams.flatMap(({ movedBackFrom }) => movedBackFrom ?? []))
  return [...starts].map((start) =>
    movedBackNote(
      streams.filter(({ movedBackFrom }) => movedBackFrom === start).map(({ request }) => request.stream),
      start,
      startDate,
    ),
  )
}

const toStreamProgress = <Item>(
  source: SourceEnv,
  request: StreamRequest<Item>,
  state: ExportStreamState,
  overdue?: Overdue,
): SharedStreamProgress<Item> => {
  const from = filterFrom(source.startDate, state.cursor, source.lookback + state.slack)
  const wasSent = matchesSentRow(state.sentRows)
  const heldBack = O.toUndefined(state.sentRange)
  return {
    request,
    state,
    isNew: (record) =>
      isInRange(record, overdue?.range) ||
      (record.modifiedTime >= from && !isInRange(record, heldBack) && !wasSent(record)),
    selectAttributes: selectAttributes(request.attributes),
    ...defined({ overdue }),
  }
}

/** A stream after a scan of it: its rows of a range that differ from those sent are not read yet, so that another scan has to send them. */
const toNextProgress = <Item>(
  source: SourceEnv,
  { request, state }: SharedStreamProgress<Item>,
  completion: ScanCompletion,
): SharedStreamProgress<Item> => {
  const next = completeExportState(state, source, completion)
  if (O.isNone(state.sentRange) || !hasOverdueRows(state, completion)) return toStreamProgress(source, request, next)
  const overdue = { range: state.sentRange.value, saved: { ...state, resumeToken: O.none } }
  // What comes between the scans must not be held back: no further scan would send it.
  return toStreamProgress(source, request, { ...next, sentRange: O.none }, overdue)
}

const hasOverdueRows = ({ sentRange }: ExportStreamState, { hasSameRows }: ScanCompletion): boolean =>
  O.isSome(sentRange) && !hasSameRows(sentRange.value)

/** What a scan of an operation works with; `fetch`: that of the operation, or one that watches its pages. */
export const toScanEnv = <Item>(operation: ExportDefinition<Item>, source: SourceEnv, fetch: FetchPage): ScanEnv => ({
  operation: operation.name,
  fetch,
  now: source.now,
  ...defined({ wait: source.wait }),
  concurrency: source.concurrency,
  limit: source.pageSize,
  hasMentionTime: operation.hasMentionTime,
})

const readSharedScan = <Item>(
  operation: ExportDefinition<Item>,
  source: SourceEnv,
  streams: ReadonlyArray<SharedStreamProgress<Item>>,
): Feed<Failure, ReaderEvent> => {
  const digest = digestFilters(operation.filters(source))
  const names = streams.map(({ request }) => request.stream)
  const clock = watchServiceTime(operation.fetch(source, names), source.now)
  const pages = collectPageWarnings(operation, clock.fetch, source.now)
  const start = toScanStart(operation, source, streams)
  const toItem = operation.toItem(source)
  let completion: ScanCompletion | undefined
  /** Those that are still read; known once the service's time is. */
  let active: ReadonlyArray<SharedStreamProgress<Item>> | undefined
  const toEvents = function* (item: ScanItem, read: ReadonlyArray<SharedStreamProgress<Item>>): Iterable<ReaderEvent> {
    completion = item.completion
    if (completion !== undefined && O.isNone(start.resumeToken) && start.windows === undefined)
      operation.onScanEnd?.(source, toCompleteScan(start, digest, completion))
    for (const message of pages.drain()) yield { _tag: 'Note', level: 'warn', message }
    for (const note of item.notes) yield { _tag: 'Note', ...note }
    if (completion !== undefined) {
      for (const { request, state } of read) yield* stateWarnings(request.stream, state, digest)
      const { cutoff } = completion
      const ended = read.map(({ request }) => request.stream)
      reportScanEnd(source, ended, { cutoff, isCertified: true, isResumed: O.isSome(start.resumeToken) })
    }
    yield* rowEvents(read, item.rows, toItem)
    for (const stream of read)
      if (completion === undefined || !hasOverdueRows(stream.state, completion))
        yield toCheckpoint(source, digest, stream, item)
  }
  const events = pipe(
    scan(toScanEnv(operation, source, pages.fetch))(start),
    flatMapFeedEither((item): E.Either<Failure, Iterable<ReaderEvent>> => {
      // A scan that has nothing to ask for ends without an answer.
      const time = clock.serviceTime() ?? (item.completion === undefined ? undefined : source.now())
      if (active !== undefined || time === undefined) return E.right(toEvents(item, active ?? []))
      return pipe(
        refuseFuture(source, streams, time),
        E.map(({ refused, others }) => {
          active = others
          return [...refused, ...toEvents(item, others)]
        }),
      )
    }),
  )
  // A resumed scan is complete only up to its old cutoff: a second scan reads at once what has changed since then.
  const listUnfinished = (): ReadonlyArray<SharedStreamProgress<Item>> => {
    const end = completion
    const next = end === undefined ? [] : (active ?? streams).map((stream) => toNextProgress(source, stream, end))
    return O.isSome(start.resumeToken) ? next : next.filter(({ overdue }) => overdue !== undefined)
  }
  const readUnfinished = (): Feed<Failure, ReaderEvent> => {
    const unfinished = listUnfinished()
    return unfinished.length === 0 ? feedOf() : failAlone(unfinished)(readSharedScan(operation, source, unfinished))
  }
  return concatFeed(readUnfinished)(events)
}

/** A failure is one of these streams: the others have ended. */
const failAlone = <Item>(streams: ReadonlyArray<SharedStreamProgress<Item>>) =>
  async function* (feed: Feed<Failure, ReaderEvent>): Feed<Failure, ReaderEvent> {
    for await (const event of feed)
      if (E.isRight(event)) yield event
      else
        for (const { request } of streams)
          yield E.right({ _tag: 'Failed', stream: request.stream, failure: event.left })
  }

/** The streams whose cursor lies ahead of the service's time fail. Left: nothing is to be read, since all of them do, or start_date. */
const refuseFuture = <Item>(
  { startDate, lookback }: SourceEnv,
  streams: ReadonlyArray<SharedStreamProgress<Item>>,
  serviceTime: number,
): E.Either<
  Failure,
  { readonly refused: ReadonlyArray<ReaderEvent>; readonly others: ReadonlyArray<SharedStreamProgress<Item>> }
> => {
  const futureStart = futureStartFailure(startDate, serviceTime)
  if (futureStart !== undefined) return E.left(futureStart)
  const { left: others, right: ahead } = pipe(
    streams,
    RA.partition(({ state }) => isAheadOfService(readsOnFrom(state, lookback), serviceTime)),
  )
  const failureOf = ({ state: { cursor } }: SharedStreamProgress<Item>): Failure =>
    futureCursorFailure(O.getOrElse(() => startDate)(cursor), serviceTime)
  const [first] = ahead
  return first !== undefined && others.length === 0
    ? E.left(failureOf(first))
    : E.right({
        refused: ahead.map((each) => ({ _tag: 'Failed', stream: each.request.stream, failure: failureOf(each) })),
        others,
      })
}

/** A scan that was read to its end, independent of the streams that it was read for. */
const toCompleteScan = (
  { origin: { startDate, cursor, lookback } }: ScanStart,
  digest: string,
  completion: ScanCompletion,
): CompleteScan => ({
  from: filterFrom(startDate, cursor, lookback),
  state: encodeExportState(
    completeExportState({ ...emptyExportState, cursor }, { startDate, lookback }, completion),
    startDate,
    digest,
  ),
})

/** One scan for all the streams: from the earliest of their cursors, resumed only if all of them have a resume token for it. */
const toScanStart = <Item>(
  operation: ExportDefinition<Item>,
  source: SourceEnv,
  streams: ReadonlyArray<SharedStreamProgress<Item>>,
): ScanStart => {
  const { startDate, lookback, partition } = source
  const filters = operation.filters(source)
  const cursor = streams
    .map(({ state, overdue }) =>
      pipe(
        state.cursor,
        O.map((time) => Math.min(time - state.slack, (overdue?.range.from ?? time) + lookback)),
      ),
    )
    .reduce(earlierCursor)
  const scope =
    operation.hasMentionTime && O.isSome(partition)
      ? { filters, windows: partitionWindows(partition.value, startDate, source.now(), filters) }
      : { filters }
  const ranges = streams.flatMap(({ state }) => (O.isSome(state.sentRange) ? [state.sentRange.value.from] : []))
  const plan = { now: source.now(), from: filterFrom(startDate, cursor, lookback), filters: scanScope(scope) }
  const tokens = RA.compact(streams.map(({ state }) => state.resumeToken)).filter(isResumable(plan))
  return {
    ...scope,
    origin: { startDate, cursor, lookback, ...(ranges.length === 0 ? {} : { rangeFrom: Math.min(...ranges) }) },
    resumeToken: tokens.length === streams.length ? leastAdvancedToken(tokens) : O.none,
  }
}

const earlierCursor = (a: O.Option<number>, b: O.Option<number>): O.Option<number> =>
  O.isNone(a) || O.isNone(b) ? O.none : O.some(Math.min(a.value, b.value))

/** How many records go to every stream at a time: the rows made of them are consumed before the next are looked into. */
const recordsPerGroup = 64

function* rowEvents<Item>(
  streams: ReadonlyArray<SharedStreamProgress<Item>>,
  records: ReadonlyArray<CutRecord>,
  toItem: (record: CutRecord) => Item,
): Iterable<ReaderEvent> {
  for (let from = 0; from < records.length; from += recordsPerGroup) {
    const groups = streams.map((stream) => ({ ...stream, rows: [] as Row[] }))
    for (const record of records.slice(from, from + recordsPerGroup)) {
      const item = toItem(record)
      for (const { request, isNew, selectAttributes: select, rows } of groups)
        if (isNew(record)) for (const row of request.project(item)) rows.push(select(row))
    }
    for (const { request, rows } of groups) if (rows.length > 0) yield { _tag: 'Rows', stream: request.stream, rows }
  }
}

const toCheckpoint = <Item>(
  source: SourceEnv,
  digest: string,
  { request, state, overdue }: SharedStreamProgress<Item>,
  { completion, resumeToken }: ScanItem,
): ReaderEvent => ({
  _tag: 'Checkpoint',
  stream: request.stream,
  state:
    completion === undefined
      ? overdue === undefined
        ? () => encodeOpenScan(state, source.startDate, digest, resumeToken())
        : () => encodeExportState(overdue.saved, source.startDate, digest)
      : () => encodeExportState(completeExportState(state, source, completion), source.startDate, digest),
})
