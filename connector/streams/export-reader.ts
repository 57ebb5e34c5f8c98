import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as O from 'fp-ts/Option'
import * as RA from 'fp-ts/ReadonlyArray'
import type { TaskEither } from 'fp-ts/TaskEither'
import * as TE from 'fp-ts/TaskEither'
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
import { type CutRecord, type ExportFilters, type FetchPage, toList } from '../export'
import {
  type Completion,
  digestFilters,
  filterFrom,
  isInRange,
  isResumable,
  leastAdvancedToken,
  matchesSentRow,
  type ReadEnv,
  type ReadItem,
  type ReadStart,
  read,
  type SentRange,
  type SentRows,
} from '../reading'
import { selectAttributes } from './attributes'
import type { CompleteScan } from './entity-index'
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
import {
  areMissing,
  joinMissing,
  type MissingRows,
  missingRowsFailure,
  missingRowsNote,
  missingRowsPause,
  missingRowsWarning,
  noneMissing,
  stillMissing,
  watchKnownRows,
  withoutMoved,
} from './known-rows'
import { partitionWindows } from './partition'
import type { SourceEnv } from './source-env'
import {
  futureCursorFailure,
  futureStartFailure,
  isAheadOfService,
  isStartMovedBack,
  movedBackNote,
  watchServiceTime,
} from './start-date'
import { reportScanEnd } from './sync-audit'
import { collectPageWarnings, stateWarnings, warningEvent } from './warnings'

/** An export operation, and how its records become the items of its streams. */
export type ExportDefinition<Item> = {
  readonly name: string
  /** Fetches pages cut for the streams with these names. */
  readonly fetch: (source: SourceEnv, streamNames: ReadonlyArray<string>) => FetchPage
  readonly filters: (source: SourceEnv) => ExportFilters
  readonly hasMentionTime: boolean
  /** The item that the streams' projections get for a record. */
  readonly toItem: (source: SourceEnv) => (record: CutRecord) => Item
  /** Called when a complete scan has ended. */
  readonly onScanEnd?: (source: SourceEnv, completeScan: CompleteScan) => void
  /** The export that lists the rows that have disappeared from this one. */
  readonly otherExport?: () => Pick<ExportDefinition<never>, 'name' | 'fetch' | 'filters' | 'hasMentionTime'>
}

/** A selected stream in a scan that it may share with others. */
type SharedStreamProgress<Item> = {
  readonly request: StreamRequest<Item>
  readonly state: ExportStreamState
  /** The record is after the stream's cursor and was not sent before. */
  readonly isNew: (record: CutRecord) => boolean
  readonly selectAttributes: (row: Row) => Row
  /** The start date of its state, if everything is read again because the config's is earlier; milliseconds. */
  readonly movedBackFrom?: number
  readonly again?: SecondScan
}

/** Why a stream is scanned again in the same run. `saved`: its state until that scan ends; its cursor has not moved. */
type SecondScan = {
  readonly saved: ExportStreamState
  /** Rows that the first scan held back and this one sends, since they differ from those sent before. */
  readonly overdue?: SentRange
  /** The rows that the first scan sent, if none of the rows known to its state came. */
  readonly sent?: SentRows
}

/** Reads an export once for all selected streams made of it. Each stream gets the records after its own cursor. */
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

/** If a stream's state cannot be decoded, only that stream fails. */
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
  again?: SecondScan,
): SharedStreamProgress<Item> => {
  const from = streamFrom(source, state)
  const [wasSent, wasSentNow] = [matchesSentRow(state.sentRows), matchesSentRow(again?.sent ?? [])]
  const heldBack = O.toUndefined(state.sentRange)
  return {
    request,
    state,
    isNew: (record) =>
      isInRange(record, again?.overdue) ||
      (record.modifiedTime >= from && !isInRange(record, heldBack) && !wasSent(record) && !wasSentNow(record)),
    selectAttributes: selectAttributes(request.attributes),
    ...defined({ again }),
  }
}

const streamFrom = ({ startDate, lookback }: SourceEnv, { cursor, slack }: ExportStreamState): number =>
  filterFrom(startDate, cursor, lookback + slack)

/** A stream after a scan. If its rows in a range differ from those sent, another scan must read and send them. */
const toNextProgress = <Item>(
  source: SourceEnv,
  { request, state }: SharedStreamProgress<Item>,
  completion: Completion,
): SharedStreamProgress<Item> => {
  const next = completeExportState(state, source, completion)
  if (O.isNone(state.sentRange) || !hasOverdueRows(state, completion)) return toStreamProgress(source, request, next)
  const again = { overdue: state.sentRange.value, saved: { ...state, resumeToken: O.none } }
  // Rows that arrive between the scans must not be held back, since no further scan would send them.
  return toStreamProgress(source, request, { ...next, sentRange: O.none }, again)
}

const hasOverdueRows = ({ sentRange }: ExportStreamState, { hasSameRows }: Completion): boolean =>
  O.isSome(sentRange) && !hasSameRows(sentRange.value)

/** How an operation's export is read; `fetch`: the operation's own, or one that watches its pages. */
export const toReadEnv = (
  operation: Pick<ExportDefinition<never>, 'name' | 'filters' | 'hasMentionTime'>,
  source: SourceEnv,
  fetch: FetchPage,
): ReadEnv<CutRecord> => ({
  list: toList({
    operation: operation.name,
    fetch,
    filters: operation.filters(source),
    hasMentionTime: operation.hasMentionTime,
  }),
  now: source.now,
  ...defined({ wait: source.wait }),
  concurrency: source.concurrency,
  limit: source.pageSize,
})

/** A scan that feeds several streams. */
type SharedScan<Item> = {
  readonly operation: ExportDefinition<Item>
  readonly source: SourceEnv
  /** A digest of the filters. */
  readonly digest: string
  readonly start: ReadStart
  readonly known: ReturnType<typeof watchKnownRows>
  readonly pages: ReturnType<typeof collectPageWarnings>
  readonly toItem: ReturnType<ExportDefinition<Item>['toItem']>
  /** The streams still being read: fewer once the service's time is known and some start in the future. */
  streams: ReadonlyArray<SharedStreamProgress<Item>>
  completion: Completion | undefined
}

const endOf = <Item>(scan: SharedScan<Item>, completion: Completion): EndedScan<Item> => {
  const { operation, source, digest, start, known, streams } = scan
  // Only a complete scan from a completed state shows what the filter lets through, and not while the rows of a range
  // are overdue.
  const isWhole = O.isNone(start.resumeToken) && start.windows === undefined
  return {
    operation,
    source,
    digest,
    streams,
    completion,
    isWhole,
    isResumed: O.isSome(start.resumeToken),
    completeScan: toCompleteScan(start, digest, completion),
    findMissing: ({ state, again }) =>
      isWhole && again?.overdue === undefined && O.getOrElse(() => digest)(state.filtersDigest) === digest
        ? known.findMissing(state, streamFrom(source, state))
        : noneMissing,
  }
}

function* toEvents<Item>(scan: SharedScan<Item>, item: ReadItem<CutRecord>): Iterable<ReaderEvent> {
  const { source, digest, streams, pages, toItem } = scan
  scan.completion = item.completion
  for (const message of pages.drain()) yield { _tag: 'Note', level: 'warn', message }
  for (const note of item.notes) yield { _tag: 'Note', ...note }
  yield* sharedRowEvents(
    streams.filter(({ request }) => request.derives),
    item.rows,
    pages.hasNested(),
    toItem,
  )
  yield* rowEvents(
    streams.filter(({ request }) => !request.derives),
    item.rows,
    toItem,
  )
  if (item.completion !== undefined) return yield* endEvents(endOf(scan, item.completion))
  for (const stream of streams) yield toOpenCheckpoint(source, digest, stream, item.resumeToken)
}

const readSharedScan = <Item>(
  operation: ExportDefinition<Item>,
  source: SourceEnv,
  streams: ReadonlyArray<SharedStreamProgress<Item>>,
): Feed<Failure, ReaderEvent> => {
  const projected = streams.flatMap(({ request }) => (request.derives ? [] : [request.stream]))
  const clock = watchServiceTime(operation.fetch(source, projected), source.now)
  const known = watchKnownRows(
    clock.fetch,
    streams.map(({ state }) => state),
  )
  const pages = collectPageWarnings(known.fetch)
  const scan: SharedScan<Item> = {
    operation,
    source,
    digest: digestFilters(operation.filters(source)),
    start: toScanStart(operation, source, streams),
    known,
    pages,
    toItem: operation.toItem(source),
    streams,
    completion: undefined,
  }
  let isTimeChecked = false
  const events = pipe(
    read(toReadEnv(operation, source, pages.fetch))(scan.start),
    flatMapFeedEither((item): E.Either<Failure, Iterable<ReaderEvent>> => {
      // A scan that has nothing to request ends without an answer.
      const time = clock.serviceTime() ?? (item.completion === undefined ? undefined : source.now())
      if (isTimeChecked) return E.right(toEvents(scan, item))
      if (time === undefined) return E.right(toEvents({ ...scan, streams: [] }, item))
      return pipe(
        refuseFuture(source, streams, time),
        E.map(({ refused, others }) => {
          isTimeChecked = true
          scan.streams = others
          return [...refused, ...toEvents(scan, item)]
        }),
      )
    }),
  )
  const readOn = (): Feed<Failure, ReaderEvent> =>
    scan.completion === undefined ? feedOf() : readUnfinished(endOf(scan, scan.completion))
  return concatFeed(readOn)(events)
}

/** A completed scan of these streams. */
type EndedScan<Item> = {
  readonly operation: ExportDefinition<Item>
  readonly source: SourceEnv
  readonly digest: string
  readonly streams: ReadonlyArray<SharedStreamProgress<Item>>
  readonly completion: Completion
  readonly completeScan: CompleteScan
  /** It resumed from a token; it read everything since its start. */
  readonly isResumed: boolean
  readonly isWhole: boolean
  /** The rows of a stream that should have come again but did not. */
  readonly findMissing: (stream: SharedStreamProgress<Item>) => MissingRows
}

/** The last states of streams that have all their rows. For the others, what is still missing after a second look. */
function* endEvents<Item>(end: EndedScan<Item>): Iterable<ReaderEvent> {
  const { operation, source, digest, streams, completion, isResumed, findMissing } = end
  for (const stream of streams) {
    const { request, state } = stream
    const missing = findMissing(stream)
    const isCertified = !areMissing(missing)
    yield* stateWarnings(request.stream, state, digest)
    reportScanEnd(source, [request.stream], { cutoff: completion.cutoff, isCertified, isResumed })
    if (!isCertified) yield* missingEvents(source, digest, stream, missing)
    else if (!hasOverdueRows(state, completion)) yield toLastCheckpoint(source, digest, stream, completion)
  }
  if (end.isWhole && !streams.some((stream) => areMissing(findMissing(stream))))
    operation.onScanEnd?.(source, end.completeScan)
}

/** Scans unfinished streams once more. */
async function* readUnfinished<Item>(end: EndedScan<Item>): Feed<Failure, ReaderEvent> {
  const { operation, source, digest, streams, completion, isResumed, findMissing } = end
  const missed = streams.filter((stream) => areMissing(findMissing(stream)))
  const found = streams.filter((stream) => !missed.includes(stream))
  const lacking = missed.filter(({ again }) => again?.sent === undefined)
  const rest = await findUnexplained(operation, source, lacking, joinMissing(lacking.map(findMissing)))()
  if (E.isLeft(rest)) yield* failEach(lacking, rest.left)
  const isLost = (stream: SharedStreamProgress<Item>): boolean =>
    E.isRight(rest) && areMissing(stillMissing(findMissing(stream), rest.right))
  const [lost, explained] = E.isLeft(rest) ? [[], []] : [lacking.filter(isLost), lacking.filter((it) => !isLost(it))]
  for (const stream of explained)
    if (!hasOverdueRows(stream.state, completion)) yield E.right(toLastCheckpoint(source, digest, stream, completion))
  if (lost.length > 0) {
    yield E.right({ _tag: 'Note', level: 'info', message: missingRowsNote(operation.name) })
    await source.wait?.(missingRowsPause)()
  }
  // A resumed scan is complete only up to its old cutoff. A second scan immediately reads what has changed since then.
  const next = [...found, ...explained]
    .map((stream) => toNextProgress(source, stream, completion))
    .filter(({ again }) => isResumed || again !== undefined)
    .concat(lost.map((stream) => toSecondLook(source, stream, completion)))
  if (next.length > 0) yield* failAlone(next)(readSharedScan(operation, source, next))
}

/** A stream of which no known row came, to be scanned once more without sending rows again. */
const toSecondLook = <Item>(
  source: SourceEnv,
  { request, state }: SharedStreamProgress<Item>,
  { sentRowsSince }: Completion,
): SharedStreamProgress<Item> =>
  toStreamProgress(source, request, state, { saved: state, sent: sentRowsSince(streamFrom(source, state)).rows })

/** After the second look, the cursor stays. The first run continues with a warning, the next one fails. */
function* missingEvents<Item>(
  source: SourceEnv,
  digest: string,
  { request: { stream }, state, again }: SharedStreamProgress<Item>,
  missing: MissingRows,
): Iterable<ReaderEvent> {
  if (again?.sent === undefined) return
  const from = streamFrom(source, state)
  if (state.areRowsMissing) return yield { _tag: 'Failed', stream, failure: missingRowsFailure(stream, missing, from) }
  yield warningEvent(missingRowsWarning(stream, missing, from))
  const marked = { ...state, areRowsMissing: true }
  yield { _tag: 'Checkpoint', stream, state: () => encodeExportState(marked, source.startDate, digest) }
}

/** The missing rows that the other export does not list. It is read only if rows are missing. */
const findUnexplained = <Item>(
  { otherExport }: ExportDefinition<Item>,
  source: SourceEnv,
  streams: ReadonlyArray<SharedStreamProgress<Item>>,
  missing: MissingRows,
): TaskEither<Failure, MissingRows> => {
  const other = otherExport?.()
  if (other === undefined || !areMissing(missing)) return TE.right(missing)
  const from = Math.min(...streams.map(({ state }) => streamFrom(source, state)))
  const readOther = (fetch: FetchPage) =>
    read(toReadEnv(other, source, fetch))({
      origin: { startDate: from, cursor: O.none, lookback: source.lookback },
      scope: '',
      resumeToken: O.none,
    })
  return withoutMoved(other.fetch(source, []), readOther)(missing)
}

/** Makes only these streams fail, since the others have ended. */
const failAlone = <Item>(streams: ReadonlyArray<SharedStreamProgress<Item>>) =>
  async function* (feed: Feed<Failure, ReaderEvent>): Feed<Failure, ReaderEvent> {
    for await (const event of feed)
      if (E.isRight(event)) yield event
      else yield* failEach(streams, event.left)
  }

function* failEach<Item>(
  streams: ReadonlyArray<SharedStreamProgress<Item>>,
  failure: Failure,
): Iterable<E.Either<never, ReaderEvent>> {
  for (const { request } of streams) yield E.right({ _tag: 'Failed', stream: request.stream, failure })
}

/**
 * Fails the streams whose cursor is ahead of the service's time. Left: nothing is read, since all of them are, or
 * start_date.
 */
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

/** A completed scan, independent of the streams for which it was read. */
const toCompleteScan = (
  { origin: { startDate, cursor, lookback } }: ReadStart,
  digest: string,
  completion: Completion,
): CompleteScan => ({
  from: filterFrom(startDate, cursor, lookback),
  state: encodeExportState(
    completeExportState({ ...emptyExportState, cursor }, { startDate, lookback }, completion),
    startDate,
    digest,
  ),
})

/**
 * One scan for all the streams, from the earliest of their cursors. Resumed only if all of them have a resume token for
 * it.
 */
const toScanStart = <Item>(
  operation: ExportDefinition<Item>,
  source: SourceEnv,
  streams: ReadonlyArray<SharedStreamProgress<Item>>,
): ReadStart => {
  const { startDate, lookback, partition } = source
  const filters = operation.filters(source)
  const cursor = streams
    .map(({ state, again }) =>
      pipe(
        state.cursor,
        O.map((time) => Math.min(time - state.slack, (again?.overdue?.from ?? time) + lookback)),
      ),
    )
    .reduce(earlierCursor)
  const share =
    operation.hasMentionTime && O.isSome(partition)
      ? { windows: partitionWindows(partition.value, startDate, source.now(), filters) }
      : {}
  const ranges = streams.flatMap(({ state }) => (O.isSome(state.sentRange) ? [state.sentRange.value.from] : []))
  const scope = digestFilters({ ...filters, ...share })
  const plan = { now: source.now(), from: filterFrom(startDate, cursor, lookback), filters: scope }
  const tokens = RA.compact(streams.map(({ state }) => state.resumeToken)).filter(isResumable(plan))
  return {
    ...share,
    scope,
    origin: { startDate, cursor, lookback, ...(ranges.length === 0 ? {} : { rangeFrom: Math.min(...ranges) }) },
    resumeToken: tokens.length === streams.length ? leastAdvancedToken(tokens) : O.none,
  }
}

const earlierCursor = (a: O.Option<number>, b: O.Option<number>): O.Option<number> =>
  O.isNone(a) || O.isNone(b) ? O.none : O.some(Math.min(a.value, b.value))

/** The rows of the records, grouped by the streams that have not sent them yet. */
function* sharedRowEvents<Item>(
  streams: ReadonlyArray<SharedStreamProgress<Item>>,
  records: ReadonlyArray<CutRecord>,
  hasUndeclared: boolean,
  toItem: (record: CutRecord) => Item,
): Iterable<ReaderEvent> {
  if (streams.length === 0) return
  const groups = new Map<string, { readonly streams: ReadonlyArray<string>; readonly rows: Row[] }>()
  for (const record of records) {
    // Also notes which entities the record names.
    toItem(record)
    const names = streams.filter(({ isNew }) => isNew(record)).map(({ request }) => request.stream)
    const key = names.join()
    const group = groups.get(key) ?? { streams: names, rows: [] }
    groups.set(key, group)
    group.rows.push(record)
  }
  for (const { streams: names, rows } of groups.values())
    if (names.length > 0) yield { _tag: 'SharedRows', streams: names, rows, hasUndeclared }
}

/** How many records go to every stream at a time. Their rows are consumed before the next records are processed. */
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

const toOpenCheckpoint = <Item>(
  source: SourceEnv,
  digest: string,
  { request, state, again }: SharedStreamProgress<Item>,
  resumeToken: ReadItem<CutRecord>['resumeToken'],
): ReaderEvent => ({
  _tag: 'Checkpoint',
  stream: request.stream,
  state:
    again === undefined
      ? () => encodeOpenScan(state, source.startDate, digest, resumeToken())
      : () => encodeExportState(again.saved, source.startDate, digest),
})

const toLastCheckpoint = <Item>(
  source: SourceEnv,
  digest: string,
  { request, state }: SharedStreamProgress<Item>,
  completion: Completion,
): ReaderEvent => ({
  _tag: 'Checkpoint',
  stream: request.stream,
  state: () => encodeExportState(completeExportState(state, source, completion), source.startDate, digest),
})
