import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as O from 'fp-ts/Option'
import * as RA from 'fp-ts/ReadonlyArray'
import type { Cut, FetchPage } from '../api/page'
import { type ScanItem, type ScanStart, scan, scopeOf } from '../api/scan'
import { filterFrom } from '../api/scan/cursor'
import { earliest, filtersDigest, isResumable } from '../api/scan/marker'
import { holds } from '../api/scan/recent'
import type { Filters } from '../api/scan/window'
import type { Failure } from '../cdk/failure'
import { andThen, chain, type Feed, items } from '../cdk/feed'
import type { Row } from '../cdk/message'
import type { Demand, Reader, Reading } from '../cdk/stream'
import type { Scanned } from './entities/seen'
import { noticing, warnings } from './export-notes'
import { completed, fresh, type Standing, settled, standingOf, underWay } from './export-state'
import { partitionWindows } from './partition'
import { selecting } from './selecting'
import type { Source } from './source'

/** What tells the two exports apart. */
export type Export<Item> = {
  readonly name: string
  /** `streams`: those that it is read for. */
  readonly fetch: (source: Source, streams: ReadonlyArray<string>) => FetchPage
  readonly filters: (source: Source) => Filters
  readonly hasMentionTime: boolean
  /** What the streams' projections are given of a record. */
  readonly item: (source: Source) => (cut: Cut) => Item
  /** All that changed since a time has been read. */
  readonly ended?: (source: Source, scanned: Scanned) => void
}

/** One selected stream in a scan it may share: what it still wants of each page. */
type Leg<Item> = {
  readonly demand: Demand<Item>
  readonly standing: Standing
  readonly wants: (cut: Cut) => boolean
  readonly select: (row: Row) => Row
}

/** Reads an export once for all the streams that want something of it; each gets what lies after its own cursor. */
export const exportReader = <Item>(operation: Export<Item>): Reader<Source, Item> => ({
  name: operation.name,
  read: (source) => (demands) => {
    const { left: failed, right: legs } = RA.separate(demands.map((demand) => legOf(source, demand)))
    const told = items<Failure, Reading>(...failed.map((reading) => E.right(reading)))
    return legs.length === 0 ? told : andThen(() => readLegs(operation, source, legs))(told)
  },
})

/** A stream whose state cannot be read fails alone. */
const legOf = <Item>(source: Source, demand: Demand<Item>): E.Either<Reading, Leg<Item>> =>
  pipe(
    standingOf(demand.stream, demand.state),
    E.bimap(
      (failure) => ({ _tag: 'Failed', stream: demand.stream, failure }),
      (held) => legFrom(source, demand, demand.syncMode === 'full_refresh' ? { ...fresh, marker: held.marker } : held),
    ),
  )

const legFrom = <Item>(source: Source, demand: Demand<Item>, standing: Standing): Leg<Item> => {
  const from = filterFrom(source.startDate, standing.cursor, source.lookback + standing.slack)
  const sent = holds(standing.recent)
  return {
    demand,
    standing,
    wants: (cut) => cut.modifiedTime >= from && !sent(cut),
    select: selecting(demand.attributes),
  }
}

const readLegs = <Item>(
  operation: Export<Item>,
  source: Source,
  legs: ReadonlyArray<Leg<Item>>,
): Feed<Failure, Reading> => {
  const digest = filtersDigest(operation.filters(source))
  const streams = legs.map(({ demand }) => demand.stream)
  const noticed = noticing(operation.fetch(source, streams))
  const start = startOf(operation, source, legs)
  const toItem = operation.item(source)
  let ended: ScanItem['last']
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
    chain(function* (item): Iterable<Reading> {
      ended = item.last
      if (item.last !== undefined && O.isNone(start.marker) && start.windows === undefined)
        operation.ended?.(source, scannedSince(start, digest, item.last))
      for (const message of noticed.drain()) yield { _tag: 'Note', level: 'warn', message }
      for (const note of item.notes) yield { _tag: 'Note', ...note }
      for (const leg of legs) yield* warnings(leg, digest, item)
      yield* rowsOf(legs, item.rows, toItem)
      for (const leg of legs) yield checkpoint(source, digest, leg, item)
    }),
  )
  const later = (): ReadonlyArray<Leg<Item>> =>
    legs.map((leg) =>
      legFrom(source, leg.demand, ended === undefined ? leg.standing : completed(leg.standing, source, ended)),
    )
  // A scan that was resumed ends as of its old signpost: what changed since then is read at once, by one of its own.
  return O.isNone(start.marker) ? readings : andThen(() => readLegs(operation, source, later()))(readings)
}

/** A whole scan, whoever wanted it. */
const scannedSince = (
  { from: { startDate, cursor, lookback } }: ScanStart,
  digest: string,
  last: NonNullable<ScanItem['last']>,
): Scanned => ({
  from: filterFrom(startDate, cursor, lookback),
  state: settled(completed({ ...fresh, cursor }, { startDate, lookback }, last), startDate, digest),
})

const startOf = <Item>(operation: Export<Item>, source: Source, legs: ReadonlyArray<Leg<Item>>): ScanStart => {
  const { startDate, lookback, partition } = source
  const filters = operation.filters(source)
  const cursor = legs.map(({ standing }) => O.map((at: number) => at - standing.slack)(standing.cursor)).reduce(earlier)
  const scope =
    operation.hasMentionTime && O.isSome(partition)
      ? { filters, windows: partitionWindows(partition.value, startDate, source.now(), filters) }
      : { filters }
  const wanted = { now: source.now(), from: filterFrom(startDate, cursor, lookback), filters: scopeOf(scope) }
  const markers = RA.compact(legs.map(({ standing }) => standing.marker)).filter(isResumable(wanted))
  return {
    ...scope,
    from: { startDate, cursor, lookback },
    marker: markers.length === legs.length ? earliest(markers) : O.none,
  }
}

const earlier = (a: O.Option<number>, b: O.Option<number>): O.Option<number> =>
  O.isNone(a) || O.isNone(b) ? O.none : O.some(Math.min(a.value, b.value))

/** So many records at a time go to every stream: what is made of them is gone before the next are looked into. */
const atOnce = 64

function* rowsOf<Item>(
  legs: ReadonlyArray<Leg<Item>>,
  page: ReadonlyArray<Cut>,
  toItem: (cut: Cut) => Item,
): Iterable<Reading> {
  for (let from = 0; from < page.length; from += atOnce) {
    const groups = legs.map((leg) => ({ ...leg, rows: [] as Row[] }))
    for (const cut of page.slice(from, from + atOnce)) {
      const item = toItem(cut)
      for (const { demand, wants, select, rows } of groups)
        if (wants(cut)) for (const row of demand.project(item)) rows.push(select(row))
    }
    for (const { demand, rows } of groups) if (rows.length > 0) yield { _tag: 'Rows', stream: demand.stream, rows }
  }
}

const checkpoint = <Item>(source: Source, digest: string, leg: Leg<Item>, { last, marker }: ScanItem): Reading => ({
  _tag: 'Checkpoint',
  stream: leg.demand.stream,
  state:
    last === undefined
      ? () => underWay(leg.standing, source.startDate, digest, marker())
      : () => settled(completed(leg.standing, source, last), source.startDate, digest),
})
