import type { Row } from '../../cdk'
import { createCutState } from './edit'
import type { FieldOffset } from './offsets'
import {
  CLOSE_OBJECT,
  COMMA,
  decodeString,
  OPEN_OBJECT,
  QUOTE,
  skipColon,
  skipSpace,
  skipString,
  skipValue,
} from './tokens'

/** Is there anything but null at a place? */
export const hasField = <P extends FieldOffset>(json: Uint8Array, at: P | undefined): at is P =>
  at !== undefined && json[at.from] !== 0x6e

/** What stands at a place as its JSON text, a character a byte (latin1). */
export const rawFieldText = (json: Uint8Array, { from, to }: FieldOffset): string =>
  asBuffer(json).toString('latin1', from, to)

/** What stands at a place: a string decoded, all else as its text. */
export const fieldText = (json: Uint8Array, { from, to }: FieldOffset): string => {
  const text = asBuffer(json).toString('utf8', from, to)
  if (json[from] !== QUOTE) return text
  return text.includes('\\') ? JSON.parse(text) : text.slice(1, -1)
}

/** Parts are written one behind the other, since a buffer of its own is more work than most of them. */
const chunkSize = 1 << 16
let chunk = Buffer.alloc(0)
let chunkUsed = 0

/** An object of a record as a row of its own: without some of its members, with `added` ones (latin1, no braces) at its end. */
export const extractObject = (
  json: Uint8Array,
  object: FieldOffset,
  without: ReadonlyArray<FieldOffset | undefined>,
  added: string,
): Row => {
  const most = object.to - object.from + added.length + 3
  if (chunkUsed + most > chunk.length) {
    chunk = Buffer.allocUnsafeSlow(Math.max(chunkSize, most))
    chunkUsed = 0
  }
  const start = chunkUsed
  chunkUsed = writeObject(chunk, start, json, object, without, added)
  return new ExtractedRow(chunk, start, chunkUsed)
}

/** A view is larger than all else of a part: it is made when it is asked for. */
class ExtractedRow implements Row {
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

const writeObject = (
  out: Buffer,
  start: number,
  json: Uint8Array,
  { from, to }: FieldOffset,
  without: ReadonlyArray<FieldOffset | undefined>,
  added: string,
): number => {
  const isObject = json[from] === OPEN_OBJECT
  let end = start + 1
  out[start] = OPEN_OBJECT
  if (isObject) {
    let at = from + 1
    for (let next = nextExcluded(without, at); next !== undefined; next = nextExcluded(without, at)) {
      end = copyBytes(json, at, next.key, out, end)
      at = skipCommaAfter(json, next.to)
    }
    end = copyBytes(json, at, to - 1, out, end)
    while (isSpaceOrTab(out[end - 1])) end--
  }
  if (end > start + 1 && out[end - 1] !== COMMA) out[end++] = COMMA
  end += out.write(added, end, 'latin1')
  out[end++] = CLOSE_OBJECT
  return end
}

const copyBytes = (json: Uint8Array, from: number, to: number, out: Uint8Array, at: number): number => {
  if (to <= from) return at
  out.set(json.subarray(from, to), at)
  return at + to - from
}

/** The first of a few places that is not before `at`. */
const nextExcluded = (places: ReadonlyArray<FieldOffset | undefined>, at: number): FieldOffset | undefined => {
  let first: FieldOffset | undefined
  for (const place of places)
    if (place !== undefined && place.key >= at && (first === undefined || place.key < first.key)) first = place
  return first
}

const skipCommaAfter = (json: Uint8Array, to: number): number => {
  let p = to
  while (isSpaceOrTab(json[p])) p++
  return json[p] === COMMA ? p + 1 : to
}

const isSpaceOrTab = (byte: number | undefined): boolean => byte === 0x20 || byte === 0x09

const asBuffer = (json: Uint8Array): Buffer =>
  Buffer.isBuffer(json) ? json : Buffer.from(json.buffer, json.byteOffset, json.byteLength)

/** Leaves the wanted top-level attributes of a record, as they came; for the text of an object as it leaves a cutter. */
export const pickRecordAttributes =
  (wanted: ReadonlySet<string>) =>
  (json: Uint8Array): Uint8Array => {
    const bytes = Buffer.from(json.buffer, json.byteOffset, json.byteLength)
    const walk = createCutState(bytes, { undeclared: 'keep', list: '' }, 0, new Set())
    const members: string[] = []
    let p = skipSpace(walk, 1)
    while (bytes[p] === QUOTE) {
      const end = skipString(walk, p + 1)
      const next = skipValue(walk, skipColon(walk, end), 0)
      if (wanted.has(decodeString(walk, p, end))) members.push(bytes.toString('latin1', p, next))
      p = skipSpace(walk, next)
      if (bytes[p] === COMMA) p = skipSpace(walk, p + 1)
    }
    return Buffer.from(`{${members.join(',')}}`, 'latin1')
  }
