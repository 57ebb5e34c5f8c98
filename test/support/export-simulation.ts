import * as TE from 'fp-ts/TaskEither'
import { toInstant, toMillis } from '../../connector/api/model/scalar'
import type { CutRecord, FetchPage } from '../../connector/export/export-page'

/** Numbers in [0, 1) that follow from a seed (mulberry32). */
export const seededRandom = (seed: number): (() => number) => {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let t = state
    t = Math.imul(t ^ (t >>> 15), t | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296
  }
}

export type Order = 'ascending' | 'descending' | 'id' | 'ties' | 'random'

/** How a service behaves; times in milliseconds, activity in rows a request. */
export type ExportTraits = {
  readonly order: Order
  readonly clamp: number
  readonly rows: number
  /** How many rows carry the same modifiedTime, as after a bulk change. */
  readonly rowsPerTime: number
  readonly changes: number
  readonly deletions: number
  readonly additions: number
  readonly restorations: number
  /** Once in so many requests `burstSize` rows are changed, deleted or added at once. */
  readonly burstEvery: number
  readonly burstSize: number
  /** Deletes or changes the last rows of the page before, each time. */
  readonly attackSize: number
  /** How late a version becomes visible after its own modifiedTime, at most. */
  readonly lag: number
  /** The Date header against the clock that stamps rows; none: no header. */
  readonly clockSkew: number | undefined
  readonly latency: number
  readonly inclusive: boolean
  /** Serves fewer rows than asked for, now and then. */
  readonly shortPages: boolean
  /** The share of reviews that have no mention time. */
  readonly unmentioned: number
  /** Whether the filter in its answers tells the clamped limit. */
  readonly echo: boolean
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
}

type Row = {
  readonly id: number
  readonly modifiedTime: number
  readonly visible: number
  readonly mention: number | undefined
  readonly source: number
  readonly version: number
}

const createCutRecord = ({ id, modifiedTime, mention, source, version }: Row): CutRecord => {
  const raw = Buffer.from(
    JSON.stringify({
      id,
      modifiedTime: toInstant(modifiedTime),
      ...(mention === undefined ? {} : { mentionTime: toInstant(mention) }),
      source: { id: source },
      version,
    }),
  )
  return { id: String(id), modifiedTime, raw, json: raw }
}

/** Some answers lie here before they are wanted, some do not. */
const waitTurns = async (count: number): Promise<void> => {
  for (let n = 0; n < count; n += 1) await undefined
}

/** A service whose rows change between requests, and the truth about them. */
export type SimulatedExport = {
  readonly reviews: FetchPage
  readonly deletions: FetchPage
  readonly now: () => number
  readonly sleep: (millis: number) => void
  readonly calm: () => void
  readonly requests: () => number
  /** Live reviews: version by id. */
  readonly truth: () => ReadonlyMap<string, number>
  /** Deleted reviews by id, with the time. */
  readonly deleted: () => ReadonlyMap<string, number>
  readonly mostUnderWay: () => number
}

const start = Date.UTC(2026, 0, 1)

export const simulateExport = (weather: ExportTraits, seed: number): SimulatedExport => {
  const random = seededRandom(seed)
  const below = (n: number): number => Math.floor(random() * n)
  let clock = start + 30 * 86_400_000
  let requests = 0
  let underWay = 0
  let most = 0
  let busy = true
  let nextId = 1
  let version = 0
  let tail: readonly string[] = []
  /** All versions that may still be seen, the newest last. */
  const live = new Map<number, readonly Row[]>()
  const gone = new Map<number, { readonly time: number; readonly visible: number }>()
  const ids: number[] = []

  const stamp = (time: number): Pick<Row, 'modifiedTime' | 'visible'> => ({
    modifiedTime: time,
    visible: time + (weather.lag > 0 && random() < 0.5 ? below(weather.lag) : 0),
  })
  const put = (row: Row): void => {
    live.set(row.id, [...(live.get(row.id) ?? []).filter(({ visible }) => visible <= clock).slice(-1), row])
  }
  const add = (time: number): void => {
    const id = nextId++
    ids.push(id)
    put({
      id,
      ...stamp(time),
      mention: random() < weather.unmentioned ? undefined : start - below(300 * 86_400_000),
      source: 1 + below(6),
      version: version++,
    })
  }
  const change = (id: number): void => {
    const row = live.get(id)?.at(-1)
    if (row !== undefined) put({ ...row, ...stamp(clock), version: version++ })
  }
  const remove = (id: number): void => {
    if (!live.delete(id)) return
    gone.set(id, { time: clock, visible: stamp(clock).visible })
  }
  const restore = (id: number): void => {
    if (live.has(id) || !gone.delete(id)) return
    put({ id, ...stamp(clock), mention: start - below(300 * 86_400_000), source: 1 + below(6), version: version++ })
  }
  const any = (): number => ids[below(ids.length)] ?? 0
  const times = (n: number, act: () => void): void => {
    for (let i = Math.floor(n) + (random() < n % 1 ? 1 : 0); i > 0; i--) act()
  }

  for (let i = 0; i < weather.rows; i++) add(start + Math.floor(i / weather.rowsPerTime) * 60_000)

  const happen = (): void => {
    if (!busy) return
    for (const id of weather.attackSize === 0 ? [] : tail.slice(-weather.attackSize)) {
      if (random() < 0.5) remove(Number(id))
      else change(Number(id))
    }
    times(weather.changes, () => change(any()))
    times(weather.deletions, () => remove(any()))
    times(weather.additions, () => add(clock))
    times(weather.restorations, () => restore(any()))
    if (weather.burstEvery > 0 && random() < 1 / weather.burstEvery) {
      const kind = below(3)
      const from = below(ids.length)
      const size = kind === 2 ? Math.min(weather.burstSize, 30) : weather.burstSize
      for (let i = 0; i < size; i++) {
        const id = ids[(from + i) % ids.length] ?? 0
        if (kind === 0) remove(id)
        else if (kind === 1) change(id)
        else add(clock)
      }
    }
  }

  const served = (rows: readonly Row[]): readonly Row[] => {
    const key = rows.map((row) => ({ row, tie: random() }))
    const by = {
      ascending: (a: Row, b: Row) => a.modifiedTime - b.modifiedTime || a.id - b.id,
      descending: (a: Row, b: Row) => b.modifiedTime - a.modifiedTime || a.id - b.id,
      id: (a: Row, b: Row) => a.id - b.id,
      ties: (a: Row, b: Row) => a.modifiedTime - b.modifiedTime,
      random: () => 0,
    }[weather.order]
    return key.sort((a, b) => by(a.row, b.row) || a.tie - b.tie).map(({ row }) => row)
  }

  const answer =
    (all: () => readonly Row[], isReview: boolean): FetchPage =>
    (request) =>
    async () => {
      underWay += 1
      most = Math.max(most, underWay)
      for (let turns = 1 + below(4); turns > 0; turns--) await Promise.resolve()
      requests += 1
      clock += Math.floor(weather.latency / 2)
      happen()
      clock += Math.floor(weather.latency / 2)
      const from = toMillis(request.modifiedTimeFrom)
      const after = request.mentionTimeAfter === undefined ? undefined : toMillis(request.mentionTimeAfter)
      const before = request.mentionTimeBefore === undefined ? undefined : toMillis(request.mentionTimeBefore)
      const matching = all().filter(
        ({ modifiedTime, mention, source }) =>
          (weather.inclusive ? modifiedTime >= from : modifiedTime > from) &&
          (request.sources?.includes(source) ?? true) &&
          (after === undefined ||
            (mention !== undefined && (weather.inclusive ? mention >= after : mention > after))) &&
          (before === undefined || (mention !== undefined && mention < before)),
      )
      const limit = Math.min(request.limit, weather.clamp)
      const length = weather.shortPages && random() < 0.3 ? Math.ceil(limit * (0.4 + random() * 0.6)) : limit
      const rows = served(matching)
        .slice(request.offset, request.offset + length)
        .map(createCutRecord)
      if (isReview && rows.length > 0) tail = rows.map(({ id }) => id)
      await waitTurns((requests * 7) % 60)
      underWay -= 1
      return TE.right({
        rows,
        filter: { sources: request.sources ?? [1, 2, 3, 4, 5, 6], ...(weather.echo ? { limit } : {}) },
        unknownPaths: [],
        ...(weather.clockSkew === undefined ? {} : { servedAt: clock + weather.clockSkew }),
      })()
    }

  return {
    reviews: answer(
      () =>
        [...live.values()].flatMap((versions) => {
          const seen = versions.filter(({ visible }) => visible <= clock).at(-1)
          return seen === undefined ? [] : [seen]
        }),
      true,
    ),
    deletions: answer(
      () =>
        [...gone].flatMap(([id, { time, visible }]) =>
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
      busy = false
    },
    requests: () => requests,
    truth: () => new Map([...live].map(([id, versions]) => [String(id), versions.at(-1)?.version ?? -1])),
    deleted: () => new Map([...gone].map(([id, { time }]) => [String(id), time])),
    mostUnderWay: () => most,
  }
}
