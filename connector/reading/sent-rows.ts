import { createHash } from 'node:crypto'
import * as t from 'io-ts'
import { Integer } from '../cdk'
import { type ListRow, putNewestLast, type RowVersion } from './list'

/** Rows already sent that the next filter serves again: `[id, modifiedTime in milliseconds, digest of the text as it left]`. */
export const SentRows = t.readonlyArray(t.tuple([t.string, t.number, t.string]))
export type SentRows = t.TypeOf<typeof SentRows>

/**
 * All rows with a modifiedTime from `from` to `until` (milliseconds, both included) that were sent, where there are too many to list:
 * their number, and the sum of their hashes.
 */
export const SentRange = t.readonly(t.type({ from: t.number, until: t.number, count: Integer, digest: t.string }))
export type SentRange = t.TypeOf<typeof SentRange>

/** The rows already sent that the next filter serves again: those that are listed, and all those of the range. */
export type SentBefore = { readonly rows: SentRows; readonly range?: SentRange }

/** How many rows are listed, and of how many more a digest is made: in memory, each takes about 100 bytes. */
const maxListedRows = 1000
const maxDigestedRows = 1_000_000

/** Of the text as it leaves: a state must not reveal what privacy removes. */
const digestRow = (json: Uint8Array): string => createHash('sha256').update(json).digest('base64url').slice(0, 11)

const hashVersion = (id: string, modifiedTime: number, text: string): bigint =>
  createHash('sha256').update(`${id} ${modifiedTime} ${text}`).digest().readBigUInt64BE()

export const isInRange = (
  { modifiedTime }: Pick<RowVersion, 'modifiedTime'>,
  range: Pick<SentRange, 'from' | 'until'> | undefined,
): boolean => range !== undefined && modifiedTime >= range.from && modifiedTime <= range.until

/**
 * Whether this row need not be sent, since the run that left `sentRows` has sent exactly these bytes. Of an id that the service lists in several versions,
 * an older one that comes now would be the last: it is left out behind the version that was sent, and that one is sent again behind an older one. An older
 * version alone is what the service has now, whatever its clocks say.
 */
export const matchesSentRow = (sentRows: SentRows): ((row: ListRow) => boolean) => {
  const byId = new Map(
    sentRows.map(([id, modifiedTime, hash]) => [id, { modifiedTime, hash, isMet: false, hasOlder: false }]),
  )
  return (row) => {
    const sent = byId.get(row.id)
    if (sent === undefined || sent.modifiedTime < row.modifiedTime) return false
    if (sent.modifiedTime > row.modifiedTime) {
      sent.hasOlder ||= !sent.isMet
      return sent.isMet
    }
    sent.isMet = true
    return !sent.hasOlder && sent.hash === digestRow(row.json)
  }
}

/** `text`: the digest, or the bytes until the next page is added. */
type SentRow = { readonly modifiedTime: number; readonly text: string | Uint8Array }

/** The rows of a scan that are too many to list: the newest version of each. Changed in place. */
const createDigestedRows = () => {
  const places = new Map<string, number>()
  let used = 0
  let times = new Float64Array(1024)
  let hashes = new BigUint64Array(1024)
  /** Moves the rows since `from` together, and makes room for as many more. */
  const makeRoom = (from: number): void => {
    const kept = [...places].filter(([, place]) => (times[place] ?? from) >= from)
    const [oldTimes, oldHashes] = [times, hashes]
    times = new Float64Array(Math.max(1024, 2 * kept.length))
    hashes = new BigUint64Array(times.length)
    places.clear()
    used = 0
    for (const [id, place] of kept) {
      times[used] = oldTimes[place] ?? 0
      hashes[used] = oldHashes[place] ?? 0n
      places.set(id, used)
      used += 1
    }
  }
  const forget = (id: string): void => {
    const place = places.get(id)
    if (place !== undefined) times[place] = Number.NaN
    places.delete(id)
  }
  return {
    timeOf: (id: string): number | undefined => times[places.get(id) ?? -1],
    forget,
    /** Rows before `from` may be forgotten. */
    put: (id: string, { modifiedTime, text }: SentRow, from: number): void => {
      forget(id)
      if (used === times.length) makeRoom(from)
      times[used] = modifiedTime
      hashes[used] = hashVersion(id, modifiedTime, toText(text))
      places.set(id, used)
      used += 1
    },
    /** Whether there are more than `most` rows since `from`. */
    isOver: (most: number, from: number): boolean => {
      if (places.size > most) makeRoom(from)
      return places.size > most
    },
    sum: (from: number, until: number): readonly [count: number, sum: bigint] => {
      let [count, sum] = [0, 0n]
      for (let place = 0; place < used; place += 1) {
        const time = times[place] ?? Number.NaN
        if (!(time >= from && time <= until)) continue
        count += 1
        sum += hashes[place] ?? 0n
      }
      return [count, sum]
    },
  }
}

/** What is known of the rows of a scan while it reads. Rows up to `horizon` are not known; those up to `listedAfter` are digested. */
export type SentRowCollector = {
  readonly horizon: number
  readonly rows: ReadonlyMap<string, SentRow>
  readonly listedAfter: number
  readonly digested?: ReturnType<typeof createDigestedRows>
}

/** The collector that a resume token describes: it knows these rows, and none up to `horizon`. */
export const restoreCollector = (horizon: number, rows: SentRows): SentRowCollector => ({
  horizon,
  rows: new Map(rows.map(([id, modifiedTime, text]) => [id, { modifiedTime, text }])),
  listedAfter: horizon,
})

export const emptyCollector: SentRowCollector = restoreCollector(Number.NEGATIVE_INFINITY, [])

const toText = (text: SentRow['text']): string => (typeof text === 'string' ? text : digestRow(text))

type Listed = readonly [id: string, row: SentRow]

/**
 * Adds a page. `from`: the next run's filter if the scan ended now, milliseconds. Rows are copied, because a view would keep the
 * whole page in memory, and hashed only when the next page is added, because a backfill drops most of them by then.
 */
export const collectSentRows = (
  collector: SentRowCollector,
  page: ReadonlyArray<ListRow>,
  from: number,
  mostDigested = maxDigestedRows,
): SentRowCollector => {
  const { horizon, rows, listedAfter, digested } = collector
  const listed = new Map<string, SentRow>()
  for (const [id, row] of rows)
    if (row.modifiedTime >= from)
      listed.set(id, typeof row.text === 'string' ? row : { ...row, text: digestRow(row.text) })
  for (const { id, modifiedTime, json } of putNewestLast(page)) {
    const known = rows.get(id)?.modifiedTime ?? digested?.timeOf(id) ?? Number.NEGATIVE_INFINITY
    if (modifiedTime < from || modifiedTime <= horizon || known >= modifiedTime) continue
    listed.delete(id)
    digested?.forget(id)
    if (modifiedTime > listedAfter) listed.set(id, { modifiedTime, text: Buffer.from(json) })
    else digested?.put(id, { modifiedTime, text: json }, from)
  }
  return toBounded({ ...collector, rows: listed }, from, mostDigested)
}

/** Digests all but the newest rows, those of one time together, once there are many; forgets them where they are too many for that. */
const toBounded = (collector: SentRowCollector, from: number, mostDigested: number): SentRowCollector => {
  const { rows, horizon, digested } = collector
  const isFull = rows.size > 2 * maxListedRows
  if (!isFull && digested?.isOver(mostDigested, from) !== true) return collector
  const [newest, older, until] = isFull ? splitRows([...rows]) : [[...rows], [], collector.listedAfter]
  const [kept, listedAfter] = [new Map(newest), Math.max(until, collector.listedAfter)]
  const more = digested ?? createDigestedRows()
  for (const [id, row] of older) more.put(id, row, from)
  return more.isOver(mostDigested, from)
    ? { rows: kept, listedAfter, horizon: listedAfter }
    : { rows: kept, listedAfter, horizon, digested: more }
}

/** The newest rows, at most `maxListedRows` of them; all others; and the time up to which those are. */
const splitRows = (
  rows: ReadonlyArray<Listed>,
): readonly [newest: ReadonlyArray<Listed>, older: ReadonlyArray<Listed>, until: number] => {
  const times = Float64Array.from(rows, ([, { modifiedTime }]) => modifiedTime).sort()
  const until = times[times.length - maxListedRows - 1] ?? Number.NEGATIVE_INFINITY
  return [
    rows.filter(([, { modifiedTime }]) => modifiedTime > until),
    rows.filter(([, { modifiedTime }]) => modifiedTime <= until),
    until,
  ]
}

/** The newest of the rows that the filter `from` serves again. `horizon`: of those up to this time, none is among them. */
export const listSentRows = (
  { horizon, rows, listedAfter }: SentRowCollector,
  from: number,
): { readonly rows: SentRows; readonly horizon: number } => {
  const [newest, , until] = splitRows([...rows].filter(([, { modifiedTime }]) => modifiedTime >= from))
  return {
    rows: newest.map(([id, { modifiedTime, text }]) => [id, modifiedTime, toText(text)]),
    horizon: Math.max(horizon, listedAfter, until),
  }
}

/** What is known of the rows that the filter `from` serves again: of all of them, or nothing. */
export const sentRowsSince = (collector: SentRowCollector, from: number): SentBefore => {
  if (collector.horizon >= from) return { rows: [] }
  const { rows, horizon: until } = listSentRows(collector, from)
  return until < from ? { rows } : { rows, range: { from, until, ...digestRange(collector, from, until) } }
}

const digestRange = (
  { rows, digested }: SentRowCollector,
  from: number,
  until: number,
): Pick<SentRange, 'count' | 'digest'> => {
  let [count, sum] = digested?.sum(from, until) ?? [0, 0n]
  for (const [id, { modifiedTime, text }] of rows) {
    if (modifiedTime < from || modifiedTime > until) continue
    count += 1
    sum += hashVersion(id, modifiedTime, toText(text))
  }
  return { count, digest: BigInt.asUintN(64, sum).toString(36) }
}

/** Whether the scan, which has read everything since `range.from`, has met exactly the rows that an earlier one has sent. */
export const hasSameRows = (collector: SentRowCollector, { from, until, count, digest }: SentRange): boolean => {
  if (collector.horizon >= from) return false
  const found = digestRange(collector, from, until)
  return found.count === count && found.digest === digest
}
