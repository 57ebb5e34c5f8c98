import { createHash } from 'node:crypto'

/** The first 60 bits of an MD5, as the numbers that its first 8 and its next 7 hexadecimal digits stand for. */
type HashParts = { high: number; low: number }

const constants = Int32Array.from({ length: 64 }, (_, step) => Math.floor(Math.abs(Math.sin(step + 1)) * 2 ** 32))

const factors = Uint8Array.of(1, 5, 3, 7)
const offsets = Uint8Array.of(0, 1, 5, 0)
const shifts = Uint8Array.of(7, 12, 17, 22, 5, 9, 14, 20, 4, 11, 16, 23, 6, 10, 15, 21)

const constant = (step: number): number => constants[step] as number
const shift = (index: number): number => shifts[index] as number
const word = (block: Int32Array, place: number): number => block[place & 15] as number
const mix = (round: number, b: number, c: number, d: number): number =>
  round === 0 ? d ^ (b & (c ^ d)) : round === 1 ? c ^ (d & (b ^ c)) : round === 2 ? b ^ c ^ d : c ^ (b | ~d)

const rotateAdd = (sum: number, bits: number, b: number): number =>
  (b + ((sum << bits) | ((sum | 0) >>> (32 - bits)))) | 0

const swapBytes = (word: number): number =>
  ((word << 24) | ((word & 0xff00) << 8) | ((word >>> 8) & 0xff00) | (word >>> 24)) >>> 0

/** The longest text that one block of MD5 holds, in bytes. */
const maxBlockText = 55

/** Times from 2001 to 2286 have 13 digits. */
const [leastTime, greatestTime] = [1e12, 1e13]

/**
 * The hash of `id:version`, both digits, in a third of the time that node:crypto takes: reading a review costs 20
 * microseconds, and an audit may add little. The result lasts until the next call.
 */
export const createVersionHash = (): ((id: string, version: number) => Readonly<HashParts>) => {
  const block = new Int32Array(16)
  const result: HashParts = { high: 0, low: 0 }
  let length = 0
  const put = (code: number): void => {
    block[length >> 2] = word(block, length >> 2) | (code << ((length & 3) << 3))
    length += 1
  }
  const putText = (text: string): void => {
    for (let i = 0; i < text.length; i += 1) put(text.charCodeAt(i))
  }
  /** A whole number of 32 bits, less than ten times `unit`, with all digits from that of `unit` on. */
  const putDigits = (number: number, unit: number): void => {
    for (let [rest, power] = [number | 0, unit]; power >= 1; power = (power / 10) | 0) {
      const digit = (rest / power) | 0
      put(48 + digit)
      rest -= digit * power
    }
  }
  return (id, version) => {
    block.fill(0)
    length = 0
    putText(id)
    put(58)
    if (version >= leastTime && version < greatestTime) {
      const start = Math.floor(version / 1e6)
      putDigits(start, 1e6)
      putDigits(version - start * 1e6, 1e5)
    } else putText(String(version))
    if (length > maxBlockText) throw new RangeError(`${id}:${version} is longer than a block`)
    const bits = length * 8
    put(0x80)
    block[14] = bits
    let a = 0x67452301
    let b = -0x10325477
    let c = -0x67452302
    let d = 0x10325476
    for (let step = 0; step < 64; step += 4) {
      const round = step >> 4
      const factor = factors[round] as number
      const offset = offsets[round] as number
      const place = factor * step + offset
      const from = round << 2
      a = rotateAdd(a + mix(round, b, c, d) + word(block, place) + constant(step), shift(from), b)
      d = rotateAdd(d + mix(round, a, b, c) + word(block, place + factor) + constant(step + 1), shift(from + 1), a)
      c = rotateAdd(c + mix(round, d, a, b) + word(block, place + 2 * factor) + constant(step + 2), shift(from + 2), d)
      b = rotateAdd(b + mix(round, c, d, a) + word(block, place + 3 * factor) + constant(step + 3), shift(from + 3), c)
    }
    result.high = swapBytes(a + 0x67452301)
    result.low = swapBytes(b - 0x10325477) >>> 4
    return result
  }
}

const hashText = (text: string): HashParts => {
  const digits = createHash('md5').update(text).digest('hex')
  return { high: Number.parseInt(digits.slice(0, 8), 16), low: Number.parseInt(digits.slice(8, 15), 16) }
}

/** A sum of hashes, each as often as it has rows. */
const createHashSum = () => {
  let total = 0n
  let [high, low] = [0, 0]
  const flush = () => {
    total += (BigInt(high) << 28n) + BigInt(low)
    high = 0
    low = 0
  }
  return {
    add: (hash: HashParts, rows: number): void => {
      // Below 2^53 sums are exact: 2^32 times 2^16 rows fit above 2^52 as well.
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

/** What a stream has sent: of each key the newest version, its number of rows and the sum of their hashes. */
export type StreamDigest = { readonly rows: number; readonly digest: bigint }

/** The most versions of reviews that are kept, in at most 115 MB, and the most keys of other streams. */
const maxVersions = 2 ** 21
const maxKeys = 200_000

/** The most rows that a review has in a stream. */
const maxRows = 65_535

/**
 * The versions of reviews that streams of one scan have sent, each with its number of rows by stream: only the newest
 * version that has rows counts for a stream, whenever it came. A hash is of `id:version`, and is made once for all
 * streams.
 */
export const createVersionDigests = (streams: number, limit = maxVersions) => {
  const hash = createVersionHash()
  let capacity = 1024
  let size = 0
  let isFull = false
  let ids = new Float64Array(capacity)
  /** The last nine digits of an id that a double cannot hold. */
  let idEnds = new Uint32Array(capacity)
  let versions = new Float64Array(capacity)
  let highs = new Uint32Array(capacity)
  let lows = new Uint32Array(capacity)
  let rowCounts = new Uint16Array(capacity * streams)
  /** By hash of the id: the number of its newest entry, from 1; 0 is free. */
  let slots = new Int32Array(capacity * 2)
  /** The entry before, of the same review; few reviews change while they are read. */
  const earlier = new Map<number, number>()
  const last = { id: '', version: 0, entry: -1, isOnly: true }

  const slotOf = (id: number, idEnd: number): number => {
    const mask = slots.length - 1
    // Ids often follow each other, or differ by a power of two: all their bits must reach the lowest.
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
  const grow = (): void => {
    capacity *= 2
    const [oldIds, oldEnds, oldVersions, oldHighs, oldLows, oldCounts] = [ids, idEnds, versions, highs, lows, rowCounts]
    ids = new Float64Array(capacity)
    ids.set(oldIds)
    idEnds = new Uint32Array(capacity)
    idEnds.set(oldEnds)
    versions = new Float64Array(capacity)
    versions.set(oldVersions)
    highs = new Uint32Array(capacity)
    highs.set(oldHighs)
    lows = new Uint32Array(capacity)
    lows.set(oldLows)
    rowCounts = new Uint16Array(capacity * streams)
    rowCounts.set(oldCounts)
    slots = new Int32Array(capacity * 2)
    // The newest entry of an id has the greatest number: it comes last and stays in the slot.
    for (let entry = 0; entry < size; entry += 1)
      slots[slotOf(ids[entry] as number, idEnds[entry] as number)] = entry + 1
  }
  /** The number in the slot of an id, and the slot; ids of up to 15 digits are exact as doubles. */
  const findSlot = (id: string): number => slotOf(Number(id), id.length <= 15 ? 0 : Number(id.slice(-9)))
  /** The entry of a version, a new one if need be; -1 if there is no more room. */
  const entryOf = (id: string, version: number): number => {
    if (last.entry >= 0 && last.version === version && last.id === id) return last.entry
    let slot = findSlot(id)
    const newest = (slots[slot] as number) - 1
    let entry = newest
    while (entry >= 0 && (versions[entry] as number) !== version) entry = earlier.get(entry) ?? -1
    if (entry < 0) {
      if (size === limit) {
        isFull = true
        return -1
      }
      if (size === capacity) {
        grow()
        slot = findSlot(id)
      }
      entry = size
      size += 1
      ids[entry] = Number(id)
      idEnds[entry] = id.length <= 15 ? 0 : Number(id.slice(-9))
      versions[entry] = version
      const { high, low } = hash(id, version)
      highs[entry] = high
      lows[entry] = low
      if (newest >= 0) earlier.set(entry, newest)
      slots[slot] = entry + 1
    }
    last.id = id
    last.version = version
    last.entry = entry
    last.isOnly = newest < 0 || (newest === entry && !earlier.has(entry))
    return entry
  }
  /** Whether a later version of the review has rows in the stream; those of earlier versions are dropped. */
  const isOutdated = (stream: number, id: string, version: number): boolean => {
    let isFound = false
    for (let entry = (slots[findSlot(id)] as number) - 1; entry >= 0; entry = earlier.get(entry) ?? -1) {
      if ((versions[entry] as number) < version) rowCounts[entry * streams + stream] = 0
      else if ((versions[entry] as number) > version) isFound ||= (rowCounts[entry * streams + stream] as number) > 0
    }
    return isFound
  }
  return {
    /** `stream`: its number, from 0. `version`: milliseconds. */
    add: (stream: number, id: string, version: number, rows: number): void => {
      if (rows === 0) return
      if (rows > maxRows) isFull = true
      const entry = entryOf(id, version)
      if (entry < 0 || (!last.isOnly && isOutdated(stream, id, version))) return
      rowCounts[entry * streams + stream] = rows
    },
    /** A review is deleted in a stream: its versions up to this one no longer count. */
    remove: (stream: number, id: string, version: number): void => {
      for (let entry = (slots[findSlot(id)] as number) - 1; entry >= 0; entry = earlier.get(entry) ?? -1)
        if ((versions[entry] as number) <= version) rowCounts[entry * streams + stream] = 0
    },
    /** By stream; undefined if there were more versions than are kept. */
    digests: (): ReadonlyArray<StreamDigest> | undefined =>
      isFull
        ? undefined
        : Array.from({ length: streams }, (_, stream) => {
            const sum = createHashSum()
            let rows = 0
            for (let entry = 0; entry < size; entry += 1) {
              const count = rowCounts[entry * streams + stream] as number
              if (count === 0) continue
              rows += count
              sum.add({ high: highs[entry] as number, low: lows[entry] as number }, count)
            }
            return { rows, digest: sum.total() }
          }),
  }
}

/**
 * The same for a stream whose rows have a key of any text each, with a version (milliseconds) where the stream has a
 * cursor.
 */
export const createKeyDigest = (limit = maxKeys) => {
  const newest = new Map<string, number>()
  return {
    add: (key: string, version = 0): void => {
      if (newest.size <= limit) newest.set(key, Math.max(version, newest.get(key) ?? Number.NEGATIVE_INFINITY))
    },
    /**
     * `hasVersions`: whether a hash is of `key:version`, or of the key alone. Undefined if there were more keys than
     * are kept.
     */
    digest: (hasVersions: boolean): StreamDigest | undefined => {
      if (newest.size > limit) return undefined
      const sum = createHashSum()
      for (const [key, version] of newest) sum.add(hashText(hasVersions ? `${key}:${version}` : key), 1)
      return { rows: newest.size, digest: sum.total() }
    },
  }
}
