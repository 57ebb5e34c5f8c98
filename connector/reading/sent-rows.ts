import { hash } from 'node:crypto'
import * as t from 'io-ts'
import { Integer } from '../cdk'
import type { ListRow, RowVersion } from './list'

/**
 * Rows already sent that the next filter returns again: `[id, modifiedTime in milliseconds, digest of the text as
 * sent]`.
 */
export const SentRows = t.readonlyArray(t.tuple([t.string, t.number, t.string]))
export type SentRows = t.TypeOf<typeof SentRows>

/**
 * All rows sent with a modifiedTime from `from` to `until` (milliseconds, inclusive), if too many to list: their number
 * and the sum of their digests.
 */
export const SentRange = t.readonly(t.type({ from: t.number, until: t.number, count: Integer, digest: t.string }))
export type SentRange = t.TypeOf<typeof SentRange>

/** Rows already sent that the next filter returns again: the listed ones, and all those in the range. */
export type SentBefore = { readonly rows: SentRows; readonly range?: SentRange }

/** The most rows listed, and the most rows kept in memory, at about 100 bytes each. */
const maxListedRows = 1000
const maxKnownRows = 1_000_000

const digestBytes = (json: Uint8Array): Buffer => hash('sha256', json, 'buffer').subarray(0, 8)

/** Digests the text as sent, which includes the id and modifiedTime: a state must not reveal what privacy removes. */
const digestRow = (json: Uint8Array): string => digestBytes(json).toString('base64url')

export const isInRange = (
  { modifiedTime }: Pick<RowVersion, 'modifiedTime'>,
  range: Pick<SentRange, 'from' | 'until'> | undefined,
): boolean => range !== undefined && modifiedTime >= range.from && modifiedTime <= range.until

/**
 * Returns a check that is true for a row that need not be sent, because the run that left `sentRows` sent exactly these
 * bytes. If the service lists an id in several versions, the newest must be sent last: an older version after the one
 * that was sent is skipped, and the sent one is repeated after an older one. If only an older version comes, it is what
 * the service has now, whatever its clocks say.
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

/**
 * The rows that a read has met and the next one will meet again, the newest version of each. Changed in place, since a
 * bulk change can make it as long as the list.
 */
export type RowsSent = {
  /** Rows with a modifiedTime up to this one (milliseconds) are not known. */
  horizon: number
  /** Rows up to this modifiedTime are not listed, since there were too many. */
  listedAfter: number
  /** Number of used places in the columns. A place whose time is NaN is free. */
  used: number
  ids: string[]
  times: Float64Array
  digests: BigUint64Array
  places: Map<string, number>
}

/**
 * Rebuilds what a resume token describes: these rows are known, and none up to `horizon`. Without arguments it is
 * empty.
 */
export const createRowsSent = (horizon = Number.NEGATIVE_INFINITY, rows: SentRows = []): RowsSent => {
  const sent = { horizon, listedAfter: horizon, used: 0, places: new Map(), ...emptyColumns(rows.length) }
  for (const [id, modifiedTime, text] of rows)
    put(sent, id, modifiedTime, Buffer.concat([Buffer.from(text, 'base64url'), Buffer.alloc(8)]))
  return sent
}

const emptyColumns = (size: number): Pick<RowsSent, 'ids' | 'times' | 'digests'> => {
  const length = Math.max(1024, size)
  return { ids: new Array(length), times: new Float64Array(length), digests: new BigUint64Array(length) }
}

const put = (sent: RowsSent, id: string, modifiedTime: number, digest: Buffer): void => {
  sent.ids[sent.used] = id
  sent.times[sent.used] = modifiedTime
  sent.digests[sent.used] = digest.readBigUInt64BE()
  sent.places.set(id, sent.used)
  sent.used += 1
}

/** Compacts the rows since `from`, and makes room for half as many more. */
const makeRoom = (sent: RowsSent, from: number): void => {
  const { ids, times, digests, places, used } = sent
  let kept = 0
  for (let place = 0; place < used; place += 1) if ((times[place] ?? 0) >= from) kept += 1
  const columns = emptyColumns(Math.ceil(1.5 * kept))
  let next = 0
  for (let place = 0; place < used; place += 1) {
    const [id = '', time = Number.NaN] = [ids[place], times[place]]
    if (Number.isNaN(time)) continue
    if (time < from) places.delete(id)
    else {
      columns.ids[next] = id
      columns.times[next] = time
      columns.digests[next] = digests[place] ?? 0n
      places.set(id, next)
      next += 1
    }
  }
  Object.assign(sent, columns, { used: next })
}

/**
 * Adds a page. `from`: the next run's filter if the read ended now, milliseconds; older rows are not returned again.
 */
export const addRowsSent = (
  sent: RowsSent,
  page: ReadonlyArray<ListRow>,
  from: number,
  mostKnown = maxKnownRows,
): void => {
  for (const { id, modifiedTime, json } of page) {
    if (modifiedTime < from || modifiedTime <= sent.horizon) continue
    const known = sent.places.get(id)
    if (known !== undefined) {
      if ((sent.times[known] ?? 0) >= modifiedTime) continue
      sent.times[known] = Number.NaN
    }
    if (sent.used === sent.times.length) makeRoom(sent, from)
    put(sent, id, modifiedTime, digestBytes(json))
  }
  if (sent.places.size > mostKnown) makeRoom(sent, from)
  if (sent.places.size > mostKnown) forgetUnlisted(sent, from)
}

const forgetUnlisted = (sent: RowsSent, from: number): void => {
  const { rows, horizon } = listRowsSent(sent, from)
  Object.assign(sent, createRowsSent(horizon, rows))
}

/** The newest rows that the filter `from` returns again. `horizon`: rows up to this time are not listed. */
export const listRowsSent = (sent: RowsSent, from: number): { readonly rows: SentRows; readonly horizon: number } => {
  const newest = placesOfNewest(sent, from)
  return {
    rows: newest.map((place) => [sent.ids[place] ?? '', sent.times[place] ?? 0, textOf(sent.digests[place] ?? 0n)]),
    horizon: Math.max(sent.horizon, sent.listedAfter),
  }
}

/** At most `maxListedRows`; rows with the same time stay together. */
const placesOfNewest = (sent: RowsSent, from: number): ReadonlyArray<number> => {
  const { times, used } = sent
  const found: number[] = []
  for (let place = 0; place < used; place += 1) {
    const time = times[place] ?? Number.NaN
    if (time >= from && time > sent.listedAfter) found.push(place)
  }
  if (found.length <= maxListedRows) return found
  const inOrder = Float64Array.from(found, (place) => times[place] ?? 0).sort()
  sent.listedAfter = inOrder[found.length - maxListedRows - 1] ?? sent.listedAfter
  return found.filter((place) => (times[place] ?? 0) > sent.listedAfter)
}

const textOf = (digest: bigint): string => {
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64BE(digest)
  return bytes.toString('base64url')
}

/** What is known about the rows that the filter `from` returns again: all of them, or nothing. */
export const sentRowsSince = (sent: RowsSent, from: number): SentBefore => {
  if (sent.horizon >= from) return { rows: [] }
  const { rows, horizon: until } = listRowsSent(sent, from)
  return until < from ? { rows } : { rows, range: { from, until, ...digestRange(sent, from, until) } }
}

const digestRange = (
  { times, digests, used }: RowsSent,
  from: number,
  until: number,
): Pick<SentRange, 'count' | 'digest'> => {
  let [count, sum] = [0, 0n]
  for (let place = 0; place < used; place += 1) {
    const time = times[place] ?? Number.NaN
    if (!(time >= from && time <= until)) continue
    count += 1
    sum += digests[place] ?? 0n
  }
  return { count, digest: BigInt.asUintN(64, sum).toString(36) }
}

/** True if the read, which covered everything since `range.from`, met exactly the rows that an earlier one sent. */
export const hasSameRows = (sent: RowsSent, { from, until, count, digest }: SentRange): boolean => {
  if (sent.horizon >= from) return false
  const found = digestRange(sent, from, until)
  return found.count === count && found.digest === digest
}
