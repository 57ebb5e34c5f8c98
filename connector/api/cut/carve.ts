import type { Row } from '../../cdk/message'
import type { Place } from './outline'
import { CLOSE_OBJECT, COMMA, OPEN_OBJECT, QUOTE } from './token'

/** Is there anything but null at a place? */
export const isThere = <P extends Place>(json: Uint8Array, at: P | undefined): at is P =>
  at !== undefined && json[at.from] !== 0x6e

/** What stands at a place as its JSON text, a character a byte (latin1). */
export const rawAt = (json: Uint8Array, { from, to }: Place): string => bufferOf(json).toString('latin1', from, to)

/** What stands at a place: a string decoded, all else as its text. */
export const textAt = (json: Uint8Array, { from, to }: Place): string => {
  const text = bufferOf(json).toString('utf8', from, to)
  if (json[from] !== QUOTE) return text
  return text.includes('\\') ? JSON.parse(text) : text.slice(1, -1)
}

/** Parts are written one behind the other, since a buffer of its own is more work than most of them. */
const slabSize = 1 << 16
let slab = Buffer.alloc(0)
let used = 0

/** An object of a record as a row of its own: without some of its members, with `added` ones (latin1, no braces) at its end. */
export const carve = (
  json: Uint8Array,
  object: Place,
  without: ReadonlyArray<Place | undefined>,
  added: string,
): Row => {
  const most = object.to - object.from + added.length + 3
  if (used + most > slab.length) {
    slab = Buffer.allocUnsafeSlow(Math.max(slabSize, most))
    used = 0
  }
  const start = used
  used = carveInto(slab, start, json, object, without, added)
  return new Part(slab, start, used)
}

/** A view is larger than all else of a part: it is made when it is asked for. */
class Part implements Row {
  declare private readonly slab: Buffer
  declare private readonly from: number
  declare private readonly to: number

  constructor(slab: Buffer, from: number, to: number) {
    this.slab = slab
    this.from = from
    this.to = to
  }

  get json(): Uint8Array {
    return this.slab.subarray(this.from, this.to)
  }
}

const carveInto = (
  out: Buffer,
  start: number,
  json: Uint8Array,
  { from, to }: Place,
  without: ReadonlyArray<Place | undefined>,
  added: string,
): number => {
  const isObject = json[from] === OPEN_OBJECT
  let end = start + 1
  out[start] = OPEN_OBJECT
  if (isObject) {
    let at = from + 1
    for (let next = firstFrom(without, at); next !== undefined; next = firstFrom(without, at)) {
      end = copied(json, at, next.key, out, end)
      at = afterComma(json, next.to)
    }
    end = copied(json, at, to - 1, out, end)
    while (isBlank(out[end - 1])) end--
  }
  if (end > start + 1 && out[end - 1] !== COMMA) out[end++] = COMMA
  end += out.write(added, end, 'latin1')
  out[end++] = CLOSE_OBJECT
  return end
}

const copied = (json: Uint8Array, from: number, to: number, out: Uint8Array, at: number): number => {
  if (to <= from) return at
  out.set(json.subarray(from, to), at)
  return at + to - from
}

/** The first of a few places that is not before `at`. */
const firstFrom = (places: ReadonlyArray<Place | undefined>, at: number): Place | undefined => {
  let first: Place | undefined
  for (const place of places)
    if (place !== undefined && place.key >= at && (first === undefined || place.key < first.key)) first = place
  return first
}

const afterComma = (json: Uint8Array, to: number): number => {
  let p = to
  while (isBlank(json[p])) p++
  return json[p] === COMMA ? p + 1 : to
}

const isBlank = (byte: number | undefined): boolean => byte === 0x20 || byte === 0x09

const bufferOf = (json: Uint8Array): Buffer =>
  Buffer.isBuffer(json) ? json : Buffer.from(json.buffer, json.byteOffset, json.byteLength)
