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

/** An object of a record as one of its own: without some of its members, with `added` ones (latin1, no braces) at its end. */
export const carve = (
  json: Uint8Array,
  { from, to }: Place,
  without: ReadonlyArray<Place | undefined>,
  added: string,
): Uint8Array => {
  const isObject = json[from] === OPEN_OBJECT
  const out = Buffer.allocUnsafe((isObject ? to - from : 2) + added.length + 1)
  let end = 1
  out[0] = OPEN_OBJECT
  if (isObject) {
    let at = from + 1
    for (const member of inOrder(without)) {
      end = copied(json, at, member.key, out, end)
      at = afterComma(json, member.to)
    }
    end = copied(json, at, to - 1, out, end)
    while (isBlank(out[end - 1])) end--
  }
  if (end > 1 && out[end - 1] !== COMMA) out[end++] = COMMA
  end += out.write(added, end, 'latin1')
  out[end++] = CLOSE_OBJECT
  return end === out.length ? out : out.subarray(0, end)
}

const copied = (json: Uint8Array, from: number, to: number, out: Uint8Array, at: number): number => {
  if (to <= from) return at
  out.set(json.subarray(from, to), at)
  return at + to - from
}

const none: ReadonlyArray<Place> = []

const inOrder = (places: ReadonlyArray<Place | undefined>): ReadonlyArray<Place> => {
  if (places.findIndex((one) => one !== undefined) < 0) return none
  return places.filter((one) => one !== undefined).sort((a, b) => a.key - b.key)
}

const afterComma = (json: Uint8Array, to: number): number => {
  let p = to
  while (isBlank(json[p])) p++
  return json[p] === COMMA ? p + 1 : to
}

const isBlank = (byte: number | undefined): boolean => byte === 0x20 || byte === 0x09

const bufferOf = (json: Uint8Array): Buffer =>
  Buffer.isBuffer(json) ? json : Buffer.from(json.buffer, json.byteOffset, json.byteLength)
