import * as TE from 'fp-ts/TaskEither'
import type { ApiError } from '../../connector/api/error'
import type { ExportFilter } from '../../connector/api/model/review'
import { toInstant, toMillis } from '../../connector/cdk/scalar'
import type { CutRecord } from '../../connector/export/cut/record'
import type { ExportPageRequest, FetchPage } from '../../connector/export/fetch-page'
import { random } from './random'

export type Order = 'ascending' | 'descending' | 'id' | 'ties' | 'random'

/**
 * In which order rows with the same modifiedTime come: by id; in another of two orders with each request, as from two
 * replicas; with some blocks in another place from some request on, as after a merge of segments; or each time from
 * another row on.
 */
export type TieOrder = 'stable' | 'replicas' | 'merged' | 'rotated'

/** How a simulated service behaves; times in milliseconds, activity in rows per request. */
export type ExportTraits = {
  readonly order: Order
  /** The most rows on a page, whatever is requested. */
  readonly clamp: number
  readonly rows: number
  /** How many rows have the same modifiedTime, as after a bulk change. */
  readonly rowsPerTime: number
  readonly changes: number
  readonly deletions: number
  readonly additions: number
  readonly restorations: number
  /** On average once in this many requests, `burstSize` rows are changed, deleted or added together; 0: never. */
  readonly burstEvery: number
  readonly burstSize: number
  /** How many of the last rows of the page before are deleted or changed with each request. */
  readonly attackSize: number
  /** The longest time between a version's modifiedTime and the moment it becomes visible. */
  readonly lag: number
  /** How far `Date` is ahead of the clock that stamps rows; `undefined`: the header is missing. */
  readonly clockSkew: number | undefined
  /** How long an answer takes. */
  readonly latency: number
  /** The bounds of filters are inclusive. */
  readonly inclusive: boolean
  /** Some pages have fewer rows than requested: at least this share of them. */
  readonly shortPages: boolean
  readonly shortestPage: number
  /** The fewest rows on a full page; their number is drawn for each answer, from this to `clamp`. 0: always `clamp`. */
  readonly leastClamp: number
  /** The share of reviews that have no mention time. */
  readonly unmentioned: number
  /** The limit in its answers' echo: the clamped one, or the requested one. */
  readonly echo: boolean | 'asked'
  /** Rows that never change and are dated, by mistake, this long after the moment at which the simulation begins. */
  readonly futureDates: ReadonlyArray<number>
  readonly ties: TieOrder
  /** How many rows an answer to offset 0 of the whole export lacks, as from an outdated replica. */
  readonly lackingRows: number
  /** On average once in this many requests, all answers are empty for up to `outageTime` milliseconds; 0: never. */
  readonly outageEvery: number
  readonly outageTime: number
  /** From which request on a page has at most `lowerLimit` rows; 0: never. */
  readonly lowerAfter: number
  readonly lowerLimit: number
  /**
   * What the service makes of filters by mention time: reviews without one match none, match any, or all reviews match.
   */
  readonly mentionFilter: 'kept' | 'lenient' | 'ignored'
  /** Over how many successive seconds the mention times are spread; 0: over 300 days, to the millisecond. */
  readonly mentionSeconds: number
  /**
   * Only reviews of the last 90 days are listed unless the request bounds the mention time; the echo says so or not.
   */
  readonly defaultRange: 'none' | 'told' | 'untold'
  /** It refuses an offset after the last row. */
  readonly refusesEnd: boolean
  /** Every second answer shows the rows as they were this long ago, as from an outdated replica. */
  readonly replicaLag: number
  /** Every second answer has at most this many rows; 0: as many as the others. */
  readonly replicaClamp: number
  /** From this request on all answers are empty for `outageTime` milliseconds; 0: never. */
  readonly outageAt: number
  /** How much later than it is the service takes `modifiedTimeFrom` to be. */
  readonly filterShift: number
}

export const stableTraits: ExportTraits = {
  order: 'ascending',
  clamp: 1000,
  rows: 300,
  rowsPerTime: 1,
  changes: 0,
  deletions: 0,
  additions: 0,
  restorations: 0,
  burstEvery: 0,
  burstSize: 0,
  attackSize: 0,
  lag: 0,
  clockSkew: 0,
  latency: 200,
  inclusive: false,
  shortPages: false,
  shortestPage: 0.4,
  leastClamp: 0,
  unmentioned: 0,
  echo: false,
  futureDates: [],
  ties: 'stable',
  lackingRows: 0,
  outageEvery: 0,
  outageTime: 0,
  lowerAfter: 0,
  lowerLimit: 0,
  mentionFilter: 'kept',
  mentionSeconds: 0,
  defaultRange: 'none',
  refusesEnd: false,
  replicaLag: 0,
  replicaClamp: 0,
  outageAt: 0,
  filterShift: 0,
}

const day = 86_400_000

type Row = {
  readonly id: number
  readonly modifiedTime: number
  readonly visible: number
  readonly mention: number | undefined
  readonly source: number
  readonly version: number
}

const toText = ({ id, modifiedTime, mention, source, version }: Row): string =>
  JSON.stringify({
    id,
    modifiedTime: toInstant(modifiedTime),
    ...(mention === undefined ? {} : { mentionTime: toInstant(mention) }),
    source: { id: source },
    version,
  })

const texts = new WeakMap<Row, string>()

const createCutRecord = (row: Row): CutRecord => {
  const text = texts.get(row) ?? toText(row)
  texts.set(row, text)
  const raw = Buffer.from(text)
  return { id: String(row.id), modifiedTime: row.modifiedTime, raw, json: raw }
}

/** Some prefetched answers arrive before they are taken, some after. */
const waitTurns = async (count: number): Promise<void> => {
  for (let n = 0; n < count; n += 1) await undefined
}

/** A service whose rows change with each request, and the truth about them. */
export type SimulatedExport = {
  readonly reviews: FetchPage
  readonly deletions: FetchPage
  readonly now: () => number
  readonly sleep: (millis: number) => void
  /** Stops all activity. */
  readonly calm: () => void
  readonly isBusy: () => boolean
  readonly requests: () => number
  /** The fewest rows on a page if this many are requested and more follow. */
  readonly shortestPage: (limit: number) => number
  /** Live reviews: version by id. */
  readonly truth: () => ReadonlyMap<string, number>
  /** The ids of the rows that are dated in the future. */
  readonly futureIds: ReadonlySet<string>
  /**
   * Live reviews whose last version has a modifiedTime before this time, without those dated in the future: version by
   * id.
   */
  readonly restedBefore: (time: number) => ReadonlyMap<string, number>
  /** Deleted reviews by id, with the time. */
  readonly deleted: () => ReadonlyMap<string, number>
  /** The most requests that were pending at one time. */
  readonly mostPending: () => number
}

const start = Date.UTC(2026, 0, 1)

/**
 * What a service holds at one time: by id the versions that may still be served, the newest last, and the deletions.
 */
type Holdings = {
  readonly live: ReadonlyMap<number, readonly Row[]>
  readonly deleted: ReadonlyMap<number, { readonly time: number; readonly visible: number }>
}

const listReviews = ({ live }: Holdings, time: number): readonly Row[] =>
  [...live.values()].flatMap((versions) => {
    const visibleVersion = versions.filter(({ visible }) => visible <= time).at(-1)
    return visibleVersion === undefined ? [] : [visibleVersion]
  })

const listDeletions = ({ deleted }: Holdings, now: number): readonly Row[] =>
  [...deleted].flatMap(([id, { time, visible }]) =>
    visible <= now ? [{ id, modifiedTime: time, visible, mention: undefined, source: 1 + (id % 6), version: 0 }] : [],
  )

const offsetRefused: ApiError = { _tag: 'Http', status: 400, message: 'the offset is too large' }

export const simulateExport = (traits: ExportTraits, seed: number): SimulatedExport => {
  const draw = random(seed)
  const below = (n: number): number => Math.floor(draw() * n)
  let clock = start + 30 * day
  let requests = 0
  let pending = 0
  let mostPending = 0
  let isBusy = true
  let nextId = 1
  let version = 0
  let outageEnd = 0
  let lastPageIds: readonly string[] = []
  /** By id the versions that may still be served, the newest last. */
  const liveRows = new Map<number, readonly Row[]>()
  const deletedRows = new Map<number, { readonly time: number; readonly visible: number }>()
  const ids: number[] = []
  const futureIds = new Set<string>()
  /** What it held after each request that a replica may still show, by time; only if a replica is outdated. */
  const earlier: { readonly time: number; readonly holdings: Holdings }[] = []

  const drawMention = (): number =>
    traits.mentionSeconds === 0 ? start - below(300 * day) : start - 60 * day - below(traits.mentionSeconds) * 1000
  const stamp = (time: number): Pick<Row, 'modifiedTime' | 'visible'> => ({
    modifiedTime: time,
    visible: time + (traits.lag > 0 && draw() < 0.5 ? below(traits.lag) : 0),
  })
  const storeVersion = (row: Row): void => {
    liveRows.set(row.id, [...(liveRows.get(row.id) ?? []).filter(({ visible }) => visible <= clock).slice(-1), row])
  }
  const addRow = (time: number): void => {
    const id = nextId++
    ids.push(id)
    storeVersion({
      id,
      ...stamp(time),
      mention: draw() < traits.unmentioned ? undefined : drawMention(),
      source: 1 + below(6),
      version: version++,
    })
  }
  const changeRow = (id: number): void => {
    const row = liveRows.get(id)?.at(-1)
    if (row !== undefined && !futureIds.has(String(id))) storeVersion({ ...row, ...stamp(clock), version: version++ })
  }
  const deleteRow = (id: number): void => {
    if (futureIds.has(String(id)) || !liveRows.delete(id)) return
    deletedRows.set(id, { time: clock, visible: stamp(clock).visible })
  }
  const restoreRow = (id: number): void => {
    if (liveRows.has(id) || !deletedRows.delete(id)) return
    storeVersion({
      id,
      ...stamp(clock),
      mention: drawMention(),
      source: 1 + below(6),
      version: version++,
    })
  }
  const anyId = (): number => ids[below(ids.length)] ?? 0
  const repeat = (n: number, act: () => void): void => {
    for (let i = Math.floor(n) + (draw() < n % 1 ? 1 : 0); i > 0; i--) act()
  }

  for (let i = 0; i < traits.rows; i++) addRow(start + Math.floor(i / traits.rowsPerTime) * 60_000)

  for (const future of traits.futureDates) {
    const id = nextId++
    futureIds.add(String(id))
    storeVersion({
      id,
      modifiedTime: clock + future,
      visible: clock,
      mention: drawMention(),
      source: 1 + below(6),
      version: version++,
    })
  }

  const changeRows = (): void => {
    if (!isBusy) return
    for (const id of traits.attackSize === 0 ? [] : lastPageIds.slice(-traits.attackSize)) {
      if (draw() < 0.5) deleteRow(Number(id))
      else changeRow(Number(id))
    }
    repeat(traits.changes, () => changeRow(anyId()))
    repeat(traits.deletions, () => deleteRow(anyId()))
    repeat(traits.additions, () => addRow(clock))
    repeat(traits.restorations, () => restoreRow(anyId()))
    if (traits.burstEvery > 0 && draw() < 1 / traits.burstEvery) {
      const kind = below(3)
      const from = below(ids.length)
      const size = kind === 2 ? Math.min(traits.burstSize, 30) : traits.burstSize
      for (let i = 0; i < size; i++) {
        const id = ids[(from + i) % ids.length] ?? 0
        if (kind === 0) deleteRow(id)
        else if (kind === 1) changeRow(id)
        else addRow(clock)
      }
    }
  }

  const isReplica = (): boolean => requests % 2 === 1
  const noteHoldings = (): void => {
    if (traits.replicaLag === 0) return
    earlier.push({ time: clock, holdings: { live: new Map(liveRows), deleted: new Map(deletedRows) } })
    while ((earlier[1]?.time ?? clock) < clock - traits.replicaLag) earlier.shift()
  }
  noteHoldings()
  /** What the answer shows, and the time at which it was so. */
  const served = (): readonly [Holdings, number] => {
    const now: Holdings = { live: liveRows, deleted: deletedRows }
    if (traits.replicaLag === 0 || !isReplica()) return [now, clock]
    const time = clock - traits.replicaLag
    return [earlier.findLast((one) => one.time <= time)?.holdings ?? earlier[0]?.holdings ?? now, time]
  }

  const mergeAt = 3 + below(8)
  /** The place of a row among those with its modifiedTime. */
  const tieOf = (id: number): number => {
    if (traits.ties === 'replicas') return random(id * 2 + (requests % 2))()
    if (traits.ties === 'merged') {
      // Blocks of seven; the second of four comes after the others once merged.
      const block = Math.floor(id / 7) % 4
      return (requests >= mergeAt && block === 1 ? 4 : block) * 1e6 + id
    }
    return id
  }
  const rotate = (rows: readonly Row[]): readonly Row[] => {
    const turn = draw()
    const groups = new Map<number, Row[]>()
    for (const row of rows) groups.set(row.modifiedTime, [...(groups.get(row.modifiedTime) ?? []), row])
    return [...groups.values()].flatMap((group) => {
      const first = Math.floor(turn * group.length)
      return [...group.slice(first), ...group.slice(0, first)]
    })
  }

  const sortRows = (rows: readonly Row[]): readonly Row[] => {
    const keys = {
      ascending: ({ id, modifiedTime }: Row) => [modifiedTime, tieOf(id)],
      descending: ({ id, modifiedTime }: Row) => [-modifiedTime, tieOf(id)],
      id: ({ id }: Row) => [id, 0],
      ties: ({ modifiedTime }: Row) => [modifiedTime, 0],
      random: () => [0, 0],
    }[traits.order]
    const sorted = rows
      .map((row) => {
        const [first = 0, second = 0] = keys(row)
        return { row, first, second, third: draw() }
      })
      .sort((a, b) => a.first - b.first || a.second - b.second || a.third - b.third)
      .map(({ row }) => row)
    return traits.ties === 'rotated' && (traits.order === 'ascending' || traits.order === 'descending')
      ? rotate(sorted)
      : sorted
  }

  const createFilter = (request: ExportPageRequest): ((row: Row) => boolean) => {
    const from = toMillis(request.modifiedTimeFrom) + traits.filterShift
    const after = request.mentionTimeAfter === undefined ? undefined : toMillis(request.mentionTimeAfter)
    const before = request.mentionTimeBefore === undefined ? undefined : toMillis(request.mentionTimeBefore)
    const hasDefault = traits.defaultRange !== 'none' && after === undefined && before === undefined
    return ({ modifiedTime, mention, source }) =>
      (traits.inclusive ? modifiedTime >= from : modifiedTime > from) &&
      (request.sources?.includes(source) ?? true) &&
      (!hasDefault || mention === undefined || mention >= clock - 90 * day) &&
      (traits.mentionFilter === 'ignored' ||
        (mention === undefined
          ? (after === undefined && before === undefined) || traits.mentionFilter === 'lenient'
          : (after === undefined || (traits.inclusive ? mention >= after : mention > after)) &&
            (before === undefined || mention < before)))
  }

  const isOut = (): boolean => {
    if (isBusy && traits.outageEvery > 0 && clock >= outageEnd && draw() < 1 / traits.outageEvery)
      outageEnd = clock + below(traits.outageTime)
    if (isBusy && traits.outageAt > 0 && requests === traits.outageAt) outageEnd = clock + traits.outageTime
    return isBusy && clock < outageEnd
  }

  /** The limit of an answer, and its number of rows if that many follow. */
  const drawLength = (asked: number): readonly [limit: number, length: number] => {
    const isLowered = traits.lowerAfter > 0 && requests >= traits.lowerAfter
    const clamp =
      traits.leastClamp === 0 ? traits.clamp : traits.leastClamp + below(1 + traits.clamp - traits.leastClamp)
    const limit = Math.min(
      asked,
      clamp,
      isLowered ? traits.lowerLimit : clamp,
      traits.replicaClamp > 0 && isReplica() ? traits.replicaClamp : clamp,
    )
    const isShort = traits.shortPages && draw() < 0.3
    return [limit, isShort ? Math.ceil(limit * (traits.shortestPage + draw() * (1 - traits.shortestPage))) : limit]
  }

  const toEcho = (request: ExportPageRequest, limit: number, isReview: boolean): ExportFilter => ({
    sources: request.sources ?? [1, 2, 3, 4, 5, 6],
    ...(traits.echo === false ? {} : { limit: traits.echo === 'asked' ? request.limit : limit }),
    ...(traits.defaultRange === 'told' && isReview
      ? { mentionTimeAfter: request.mentionTimeAfter ?? toInstant(clock - 90 * day) }
      : {}),
  })

  const answer =
    (list: (holdings: Holdings, time: number) => readonly Row[], isReview: boolean): FetchPage =>
    (request) =>
    async () => {
      pending += 1
      mostPending = Math.max(mostPending, pending)
      for (let turns = 1 + below(4); turns > 0; turns--) await Promise.resolve()
      requests += 1
      clock += Math.floor(traits.latency / 2)
      changeRows()
      clock += Math.floor(traits.latency / 2)
      noteHoldings()
      const matching = list(...served()).filter(createFilter(request))
      const isEmpty = isOut()
      const isLacking =
        traits.lackingRows > 0 &&
        request.offset === 0 &&
        request.mentionTimeAfter === undefined &&
        request.mentionTimeBefore === undefined &&
        matching.length > 20
      const lackingFrom = below(12)
      const [limit, length] = drawLength(request.limit)
      const rows = (isEmpty ? [] : sortRows(matching))
        .filter((_, i) => !isLacking || i < lackingFrom || i >= lackingFrom + Math.min(traits.lackingRows, 8))
        .slice(request.offset, request.offset + length)
        .map(createCutRecord)
      if (isReview && rows.length > 0) lastPageIds = rows.map(({ id }) => id)
      await waitTurns((requests * 7) % 60)
      pending -= 1
      if (traits.refusesEnd && request.offset > 0 && request.offset >= matching.length) return TE.left(offsetRefused)()
      return TE.right({
        rows,
        filter: toEcho(request, limit, isReview),
        unknownPaths: [],
        ...(traits.clockSkew === undefined ? {} : { servedAt: clock + traits.clockSkew }),
      })()
    }

  return {
    reviews: answer(listReviews, true),
    deletions: answer(listDeletions, false),
    now: () => clock,
    sleep: (millis) => {
      clock += millis
    },
    calm: () => {
      isBusy = false
    },
    isBusy: () => isBusy,
    requests: () => requests,
    shortestPage: (limit) => {
      const lowest = Math.min(
        limit,
        traits.clamp,
        traits.leastClamp || limit,
        traits.replicaClamp || limit,
        traits.lowerAfter > 0 ? traits.lowerLimit : limit,
      )
      return Math.ceil(traits.shortPages ? lowest * traits.shortestPage : lowest)
    },
    truth: () => new Map([...liveRows].map(([id, versions]) => [String(id), versions.at(-1)?.version ?? -1])),
    restedBefore: (time) =>
      new Map(
        [...liveRows].flatMap(([id, versions]) => {
          const last = versions.at(-1)
          const isRested = last !== undefined && last.modifiedTime < time && !futureIds.has(String(id))
          return isRested ? [[String(id), last.version]] : []
        }),
      ),
    futureIds,
    deleted: () => new Map([...deletedRows].map(([id, { time }]) => [String(id), time])),
    mostPending: () => mostPending,
  }
}
