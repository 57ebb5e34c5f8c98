import * as TE from 'fp-ts/TaskEither'
import { toInstant, toMillis } from '../../connector/cdk/scalar'
import type { CutRecord } from '../../connector/export/cut/record'
import type { FetchPage } from '../../connector/export/fetch-page'
import { random } from './random'

export type Order = 'ascending' | 'descending' | 'id' | 'ties' | 'random'

/**
 * In which order rows with the same modifiedTime come: by id; in another of two orders with each request, as from two replicas;
 * with some blocks in another place from some request on, as after a merge of segments; or each time from another row on.
 */
export type TieOrder = 'stable' | 'replicas' | 'merged' | 'rotated'

/** How a simulated service behaves; times in milliseconds, activity in rows per request. */
export type ExportTraits = {
  readonly order: Order
  /** The most rows of a page, whatever is asked for. */
  readonly clamp: number
  readonly rows: number
  /** How many rows have the same modifiedTime, as after a bulk change. */
  readonly rowsPerTime: number
  readonly changes: number
  readonly deletions: number
  readonly additions: number
  readonly restorations: number
  /** On average once in so many requests `burstSize` rows are changed, deleted or added at once; 0: never. */
  readonly burstEvery: number
  readonly burstSize: number
  /** How many of the last rows of the page before are deleted or changed with each request. */
  readonly attackSize: number
  /** The longest time between a version's modifiedTime and the moment it becomes visible. */
  readonly lag: number
  /** How far `Date` is ahead of the clock that stamps rows; `undefined`: there is no such header. */
  readonly clockSkew: number | undefined
  /** How long an answer takes. */
  readonly latency: number
  /** Whether bounds of filters are inclusive. */
  readonly inclusive: boolean
  /** Whether pages at times have fewer rows than asked for. */
  readonly shortPages: boolean
  /** The share of reviews that have no mention time. */
  readonly unmentioned: number
  /** Whether the echo in its answers tells the clamped limit. */
  readonly echo: boolean
  /** Rows that never change and are dated, by mistake, this long after the moment at which the simulation begins. */
  readonly futureDates: ReadonlyArray<number>
  readonly ties: TieOrder
  /** How many rows an answer to offset 0 of the whole export lacks, as from a replica that is behind. */
  readonly lackingRows: number
  /** On average once in so many requests all answers are empty for up to `outageTime` milliseconds; 0: never. */
  readonly outageEvery: number
  readonly outageTime: number
  /** From which request on a page has at most `lowerLimit` rows; 0: never. */
  readonly lowerAfter: number
  readonly lowerLimit: number
  /** What the service makes of filters by mention time: reviews without one match none, match any, or all reviews match. */
  readonly mentionFilter: 'kept' | 'lenient' | 'ignored'
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
}

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
  readonly requests: () => number
  /** How many rows a page has at least if so many are asked for and more follow. */
  readonly shortestPage: (limit: number) => number
  /** Live reviews: version by id. */
  readonly truth: () => ReadonlyMap<string, number>
  /** The ids of the rows that are dated in the future. */
  readonly futureIds: ReadonlySet<string>
  /** Deleted reviews by id, with the time. */
  readonly deleted: () => ReadonlyMap<string, number>
  /** The most requests that were pending at one time. */
  readonly mostPending: () => number
}

const start = Date.UTC(2026, 0, 1)

export const simulateExport = (traits: ExportTraits, seed: number): SimulatedExport => {
  const draw = random(seed)
  const below = (n: number): number => Math.floor(draw() * n)
  let clock = start + 30 * 86_400_000
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
      mention: draw() < traits.unmentioned ? undefined : start - below(300 * 86_400_000),
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
      mention: start - below(300 * 86_400_000),
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
      mention: start - below(300 * 86_400_000),
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

  const mergeAt = 3 + below(8)
  /** Where a row stands among those with its modifiedTime. */
  const tieOf = (id: number): number => {
    if (traits.ties === 'replicas') return random(id * 2 + (requests % 2))()
    if (traits.ties === 'merged') {
      // Blocks of seven; the second of four stands behind the others after the merge.
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

  const answer =
    (all: () => readonly Row[], isReview: boolean): FetchPage =>
    (request) =>
    async () => {
      pending += 1
      mostPending = Math.max(mostPending, pending)
      for (let turns = 1 + below(4); turns > 0; turns--) await Promise.resolve()
      requests += 1
      clock += Math.floor(traits.latency / 2)
      changeRows()
      clock += Math.floor(traits.latency / 2)
      const from = toMillis(request.modifiedTimeFrom)
      const after = request.mentionTimeAfter === undefined ? undefined : toMillis(request.mentionTimeAfter)
      const before = request.mentionTimeBefore === undefined ? undefined : toMillis(request.mentionTimeBefore)
      const matching = all().filter(
        ({ modifiedTime, mention, source }) =>
          (traits.inclusive ? modifiedTime >= from : modifiedTime > from) &&
          (request.sources?.includes(source) ?? true) &&
          (traits.mentionFilter === 'ignored' ||
            (mention === undefined
              ? (after === undefined && before === undefined) || traits.mentionFilter === 'lenient'
              : (after === undefined || (traits.inclusive ? mention >= after : mention > after)) &&
                (before === undefined || mention < before))),
      )
      if (isBusy && traits.outageEvery > 0 && clock >= outageEnd && draw() < 1 / traits.outageEvery)
        outageEnd = clock + below(traits.outageTime)
      const isOut = isBusy && clock < outageEnd
      const isLacking =
        traits.lackingRows > 0 &&
        request.offset === 0 &&
        after === undefined &&
        before === undefined &&
        matching.length > 20
      const lackingFrom = below(12)
      const isLowered = traits.lowerAfter > 0 && requests >= traits.lowerAfter
      const limit = Math.min(request.limit, traits.clamp, isLowered ? traits.lowerLimit : traits.clamp)
      const length = traits.shortPages && draw() < 0.3 ? Math.ceil(limit * (0.4 + draw() * 0.6)) : limit
      const rows = (isOut ? [] : sortRows(matching))
        .filter((_, i) => !isLacking || i < lackingFrom || i >= lackingFrom + Math.min(traits.lackingRows, 8))
        .slice(request.offset, request.offset + length)
        .map(createCutRecord)
      if (isReview && rows.length > 0) lastPageIds = rows.map(({ id }) => id)
      await waitTurns((requests * 7) % 60)
      pending -= 1
      return TE.right({
        rows,
        filter: { sources: request.sources ?? [1, 2, 3, 4, 5, 6], ...(traits.echo ? { limit } : {}) },
        unknownPaths: [],
        ...(traits.clockSkew === undefined ? {} : { servedAt: clock + traits.clockSkew }),
      })()
    }

  return {
    reviews: answer(
      () =>
        [...liveRows.values()].flatMap((versions) => {
          const visibleVersion = versions.filter(({ visible }) => visible <= clock).at(-1)
          return visibleVersion === undefined ? [] : [visibleVersion]
        }),
      true,
    ),
    deletions: answer(
      () =>
        [...deletedRows].flatMap(([id, { time, visible }]) =>
          visible <= clock
            ? [{ id, modifiedTime: time, visible, mention: undefined, source: 1 + (id % 6), version: 0 }]
            : [],
        ),
      false,
    ),
    now: () => clock,
    sleep: (millis) => {
      clock += millis
    },
    calm: () => {
      isBusy = false
    },
    requests: () => requests,
    shortestPage: (limit) => {
      const lowest = Math.min(limit, traits.clamp, traits.lowerAfter > 0 ? traits.lowerLimit : limit)
      return Math.ceil(traits.shortPages ? lowest * 0.4 : lowest)
    },
    truth: () => new Map([...liveRows].map(([id, versions]) => [String(id), versions.at(-1)?.version ?? -1])),
    futureIds,
    deleted: () => new Map([...deletedRows].map(([id, { time }]) => [String(id), time])),
    mostPending: () => mostPending,
  }
}
