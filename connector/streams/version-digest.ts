import { createVersionHash, hashText, type VersionHash } from './version-hash'

/** A sum of hashes, each counted once for every row. */
const createHashSum = () => {
  let total = 0n
  let [high, low] = [0, 0]
  const flush = () => {
    total += (BigInt(high) << 28n) + BigInt(low)
    high = 0
    low = 0
  }
  return {
    add: (hash: VersionHash, rows: number): void => {
      // Sums below 2^53 are exact, and 2^32 times 2^16 rows still fit above 2^52.
      if (high > 2 ** 52) flush()
      high += hash.high * rows
      low += hash.low * rows
    },
    total: (): bigint => {
      flush()
      return total
    },
  }
}

/**
 * What a stream has sent: for each key the newest version, its number of rows and the sum of their hashes. An audit
 * computes the same over the rows of each bucket.
 */
export type StreamDigest = { readonly rows: number; readonly digest: bigint }

/** The most review versions kept, in at most 115 MB, and the most keys of other streams. */
const maxVersions = 2 ** 21
const maxKeys = 200_000

/** The most rows that a review may have in a stream. */
const maxRows = 65_535

/**
 * The review versions that the streams of one scan have sent, each with its number of rows by stream. For each stream,
 * only the newest version with rows counts, whenever it came. A hash of `id:version` is computed once for all streams.
 * Each entry is a version; its members are stored in columns, which are replaced by longer ones as it grows.
 */
type SentVersions = {
  readonly streams: number
  readonly limit: number
  readonly hash: ReturnType<typeof createVersionHash>
  size: number
  /** There were more versions, or more rows of a version, than can be kept. */
  isFull: boolean
  ids: Float64Array
  /** The last nine digits of an id that does not fit into a double. */
  idEnds: Uint32Array
  versions: Float64Array
  highs: Uint32Array
  lows: Uint32Array
  /** By entry and stream. */
  rowCounts: Uint16Array
  /** By hash of the id: the number of its newest entry, from 1. 0 means free. */
  slots: Int32Array
  /** The previous entry of the same review. Few reviews change while they are read. */
  readonly earlier: Map<number, number>
  /** The entry requested last; `isOnly`: no other version of its review was sent. */
  readonly last: { id: string; version: number; entry: number; isOnly: boolean }
}

const firstCapacity = 1024

export const createSentVersions = (streams: number, limit = maxVersions): SentVersions => ({
  streams,
  limit,
  hash: createVersionHash(),
  size: 0,
  isFull: false,
  ids: new Float64Array(firstCapacity),
  idEnds: new Uint32Array(firstCapacity),
  versions: new Float64Array(firstCapacity),
  highs: new Uint32Array(firstCapacity),
  lows: new Uint32Array(firstCapacity),
  rowCounts: new Uint16Array(firstCapacity * streams),
  slots: new Int32Array(firstCapacity * 2),
  earlier: new Map(),
  last: { id: '', version: 0, entry: -1, isOnly: true },
})

/** The slot of an id: the one with its newest entry, or a free one. */
const slotOf = ({ slots, ids, idEnds }: SentVersions, id: number, idEnd: number): number => {
  const mask = slots.length - 1
  // Ids are often consecutive or differ by a power of two, so all their bits must affect the lowest.
  let slot = Math.imul((id / 2 ** 32) | 0, 0x85ebca6b) ^ Math.imul(idEnd, 0xc2b2ae35) ^ (id | 0)
  slot = Math.imul(slot ^ (slot >>> 16), 0x85ebca6b)
  slot = Math.imul(slot ^ (slot >>> 13), 0xc2b2ae35)
  slot = (slot ^ (slot >>> 16)) & mask
  for (;;) {
    const entry = (slots[slot] as number) - 1
    if (entry < 0 || ((ids[entry] as number) === id && (idEnds[entry] as number) === idEnd)) return slot
    slot = (slot + 1) & mask
  }
}

/** Ids of up to 15 digits are exact as doubles. */
const endOf = (id: string): number => (id.length <= 15 ? 0 : Number(id.slice(-9)))

const findSlot = (sent: SentVersions, id: string): number => slotOf(sent, Number(id), endOf(id))

/** Doubles the length of the columns. */
const grow = (sent: SentVersions): void => {
  const capacity = 2 * sent.ids.length
  const { ids, idEnds, versions, highs, lows, rowCounts } = sent
  sent.ids = new Float64Array(capacity)
  sent.ids.set(ids)
  sent.idEnds = new Uint32Array(capacity)
  sent.idEnds.set(idEnds)
  sent.versions = new Float64Array(capacity)
  sent.versions.set(versions)
  sent.highs = new Uint32Array(capacity)
  sent.highs.set(highs)
  sent.lows = new Uint32Array(capacity)
  sent.lows.set(lows)
  sent.rowCounts = new Uint16Array(capacity * sent.streams)
  sent.rowCounts.set(rowCounts)
  sent.slots = new Int32Array(capacity * 2)
  // The newest entry of an id has the highest number, so it comes last and stays in the slot.
  for (let entry = 0; entry < sent.size; entry += 1)
    sent.slots[slotOf(sent, ids[entry] as number, idEnds[entry] as number)] = entry + 1
}

/** Adds an entry, the newest of the review in this slot. Returns -1 if there is no more room. */
const addEntry = (sent: SentVersions, id: string, version: number, slot: number): number => {
  if (sent.size === sent.limit) {
    sent.isFull = true
    return -1
  }
  const entry = sent.size
  const newest = (sent.slots[slot] as number) - 1
  const mustGrow = entry === sent.ids.length
  if (mustGrow) grow(sent)
  sent.slots[mustGrow ? findSlot(sent, id) : slot] = entry + 1
  sent.size += 1
  sent.ids[entry] = Number(id)
  sent.idEnds[entry] = endOf(id)
  sent.versions[entry] = version
  const { high, low } = sent.hash(id, version)
  sent.highs[entry] = high
  sent.lows[entry] = low
  if (newest >= 0) sent.earlier.set(entry, newest)
  return entry
}

/** The entry of a version, added if needed; -1 if there is no more room. */
const entryOf = (sent: SentVersions, id: string, version: number): number => {
  const { last, versions, earlier } = sent
  if (last.entry >= 0 && last.version === version && last.id === id) return last.entry
  const slot = findSlot(sent, id)
  const newest = (sent.slots[slot] as number) - 1
  let entry = newest
  while (entry >= 0 && (versions[entry] as number) !== version) entry = earlier.get(entry) ?? -1
  if (entry < 0) entry = addEntry(sent, id, version, slot)
  if (entry < 0) return entry
  last.id = id
  last.version = version
  last.entry = entry
  last.isOnly = newest < 0 || (newest === entry && !earlier.has(entry))
  return entry
}

/** A later version of the review has rows in the stream. Drops the rows of earlier versions. */
const isOutdated = (sent: SentVersions, stream: number, id: string, version: number): boolean => {
  const { streams, slots, versions, rowCounts, earlier } = sent
  let isFound = false
  for (let entry = (slots[findSlot(sent, id)] as number) - 1; entry >= 0; entry = earlier.get(entry) ?? -1) {
    if ((versions[entry] as number) < version) rowCounts[entry * streams + stream] = 0
    else if ((versions[entry] as number) > version) isFound ||= (rowCounts[entry * streams + stream] as number) > 0
  }
  return isFound
}

/** Records that a stream, by its number from 0, has sent rows of a version (milliseconds). */
export const addVersion = (sent: SentVersions, stream: number, id: string, version: number, rows: number): void => {
  if (rows === 0) return
  if (rows > maxRows) sent.isFull = true
  const entry = entryOf(sent, id, version)
  if (entry < 0 || (!sent.last.isOnly && isOutdated(sent, stream, id, version))) return
  sent.rowCounts[entry * sent.streams + stream] = rows
}

/** Records that a review is deleted in a stream: its versions up to this one no longer count. */
export const removeVersions = (sent: SentVersions, stream: number, id: string, version: number): void => {
  const { streams, slots, versions, rowCounts, earlier } = sent
  for (let entry = (slots[findSlot(sent, id)] as number) - 1; entry >= 0; entry = earlier.get(entry) ?? -1)
    if ((versions[entry] as number) <= version) rowCounts[entry * streams + stream] = 0
}

const digestStream = ({ streams, size, rowCounts, highs, lows }: SentVersions, stream: number): StreamDigest => {
  const sum = createHashSum()
  let rows = 0
  for (let entry = 0; entry < size; entry += 1) {
    const count = rowCounts[entry * streams + stream] as number
    if (count === 0) continue
    rows += count
    sum.add({ high: highs[entry] as number, low: lows[entry] as number }, count)
  }
  return { rows, digest: sum.total() }
}

/** The digests by stream; undefined if there were more versions than can be kept. */
export const digestVersions = (sent: SentVersions): ReadonlyArray<StreamDigest> | undefined =>
  sent.isFull ? undefined : Array.from({ length: sent.streams }, (_, stream) => digestStream(sent, stream))

/** The same for a stream whose rows have an arbitrary text as key, with a version (milliseconds) if it has a cursor. */
export const createKeyDigest = (limit = maxKeys) => {
  const newest = new Map<string, number>()
  return {
    add: (key: string, version = 0): void => {
      if (newest.size <= limit) newest.set(key, Math.max(version, newest.get(key) ?? Number.NEGATIVE_INFINITY))
    },
    /**
     * `hasVersions`: hashes are of `key:version` instead of the key alone. Undefined if there were more keys than can
     * be kept.
     */
    digest: (hasVersions: boolean): StreamDigest | undefined => {
      if (newest.size > limit) return undefined
      const sum = createHashSum()
      for (const [key, version] of newest) sum.add(hashText(hasVersions ? `${key}:${version}` : key), 1)
      return { rows: newest.size, digest: sum.total() }
    },
  }
}
