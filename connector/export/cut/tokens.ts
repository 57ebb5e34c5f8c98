import { addEdit, type CutState, createCutError, createSyntaxError } from './edit'

export const QUOTE = 0x22
export const COMMA = 0x2c
export const MINUS = 0x2d
export const COLON = 0x3a
export const OPEN_ARRAY = 0x5b
export const BACKSLASH = 0x5c
export const CLOSE_ARRAY = 0x5d
export const OPEN_OBJECT = 0x7b
export const CLOSE_OBJECT = 0x7d

/** 1 for the bytes that stand for themselves in a string. */
const plainBytes = new Uint8Array(256).map((_, byte) => (byte < 0x20 || byte === QUOTE || byte === BACKSLASH ? 0 : 1))

/**
 * Of the four bytes of a word those that do not stand for themselves in a string, each by its highest bit; exact up to the
 * first of them. Flipping bit 1 puts the quote among the control characters.
 */
const markSpecialBytes = (word: number): number => {
  const low = word ^ 0x02020202
  const slash = word ^ 0x5c5c5c5c
  return (((low - 0x21212121) & ~low) | ((slash - 0x01010101) & ~slash)) & 0x80808080
}

/** Which of four bytes the lowest bit set lies in. */
const firstMarkedByte = (bits: number): number => (31 - Math.clz32(bits & -bits)) >> 3

/** The position of the next byte that is no white space. */
export const skipSpace = (walk: CutState, at: number): number =>
  (walk.bytes[at] ?? 0) > 0x20 ? at : skipBlanks(walk, at)

const skipBlanks = (walk: CutState, at: number): number => {
  const { bytes } = walk
  for (let p = at; ; p++) {
    const byte = bytes[p] ?? 0xff
    if (byte > 0x20) return p
    if (byte === 0x0a || byte === 0x0d) walk.hasLineBreaks = true
    else if (byte !== 0x20 && byte !== 0x09) throw createSyntaxError(walk, p)
  }
}

/** The position after the colon, and the white space around it. */
export const skipColon = (walk: CutState, at: number): number => {
  const p = skipSpace(walk, at)
  if (walk.bytes[p] !== COLON) throw createSyntaxError(walk, p)
  return skipSpace(walk, p + 1)
}

/** The position after a string that starts (after its quote) at `at`. Half a surrogate pair leaves as U+FFFD: no UTF-8 can say it. */
export const skipString = (walk: CutState, at: number): number => {
  const { bytes, view } = walk
  const last = bytes.length - 4
  let p = at
  for (;;) {
    let found = 0
    while (p <= last && found === 0) {
      found = markSpecialBytes(view.getInt32(p, true))
      p += found === 0 ? 4 : firstMarkedByte(found)
    }
    if (found === 0) while (plainBytes[bytes[p] ?? 0] === 1) p++
    if (bytes[p] === QUOTE) return p + 1
    if (bytes[p] !== BACKSLASH) throw createSyntaxError(walk, p)
    p = skipEscape(walk, p)
  }
}

const skipEscape = (walk: CutState, at: number): number => {
  const letter = walk.bytes[at + 1] ?? 0
  if (letter !== 0x75) {
    if ('"\\/bfnrt'.includes(String.fromCharCode(letter))) return at + 2
    throw createSyntaxError(walk, at + 1)
  }
  const unit = readHex(walk, at + 2)
  if (unit < 0xd800 || unit > 0xdfff) return at + 6
  if (unit < 0xdc00 && walk.bytes[at + 6] === BACKSLASH && walk.bytes[at + 7] === 0x75) {
    const low = readHex(walk, at + 8)
    if (low >= 0xdc00 && low <= 0xdfff) return at + 12
  }
  addEdit(walk, at, at + 6, '\\ufffd')
  return at + 6
}

const readHex = (walk: CutState, at: number): number => {
  const digits = walk.bytes.toString('latin1', at, Math.min(at + 4, walk.bytes.length))
  if (!/^[\da-f]{4}$/i.test(digits)) throw createSyntaxError(walk, at)
  return Number.parseInt(digits, 16)
}

const isDigit = (byte: number | undefined): boolean => byte !== undefined && byte >= 0x30 && byte <= 0x39

const skipDigits = (walk: CutState, at: number): number => {
  const { bytes } = walk
  if (!isDigit(bytes[at])) throw createSyntaxError(walk, at)
  let p = at + 1
  while (isDigit(bytes[p])) p++
  return p
}

/** The position after a number; its form goes into `walk.form`. */
export const skipNumber = (walk: CutState, at: number): number => {
  const { bytes } = walk
  const first = bytes[at] === MINUS ? at + 1 : at
  let p = bytes[first] === 0x30 ? first + 1 : skipDigits(walk, first)
  walk.numberForm = 'plain'
  if (bytes[p] === 0x2e) {
    p = skipDigits(walk, p + 1)
    walk.numberForm = 'decimal'
  }
  if (bytes[p] === 0x65 || bytes[p] === 0x45) {
    const sign = bytes[p + 1]
    p = skipDigits(walk, sign === 0x2b || sign === MINUS ? p + 2 : p + 1)
    walk.numberForm = 'exponent'
  }
  return p
}

const literals = ['true', 'false', 'null'].map((word) => Buffer.from(word))

/** The position after `true`, `false` or `null`. */
export const skipLiteral = (walk: CutState, at: number): number => {
  const found = literals.find((one) => hasBytesAt(walk.bytes, at, one))
  if (found === undefined) throw createSyntaxError(walk, at)
  return at + found.length
}

const hasBytesAt = (bytes: Uint8Array, at: number, token: Uint8Array): boolean => {
  for (let i = 0; i < token.length; i++) if (bytes[at + i] !== token[i]) return false
  return true
}

/** The text of a string token, quotes included in the span. */
export const decodeString = ({ bytes }: CutState, from: number, to: number): string => {
  const text = bytes.toString('utf8', from, to)
  return text.includes('\\') ? JSON.parse(text) : text.slice(1, -1)
}

/** Deeper than any answer of the service, shallower than any reader's stack behind us. */
export const maxJsonDepth = 500

/** The position after any value; a key that one of its objects may repeat goes into `walk.repeated`. */
export const skipValue = (walk: CutState, at: number, depth: number): number => {
  switch (walk.bytes[at]) {
    case QUOTE:
      return skipString(walk, at + 1)
    case OPEN_OBJECT:
      return skipObject(walk, at + 1, nextDepth(depth))
    case OPEN_ARRAY:
      return skipArray(walk, at + 1, nextDepth(depth))
    case 0x66:
    case 0x6e:
    case 0x74:
      return skipLiteral(walk, at)
    default:
      return skipNumber(walk, at)
  }
}

const nextDepth = (depth: number): number => {
  if (depth >= maxJsonDepth) throw createCutError('$', `nested more than ${maxJsonDepth} levels deep`)
  return depth + 1
}

const skipArray = (walk: CutState, at: number, depth: number): number => {
  let p = skipSpace(walk, at)
  if (walk.bytes[p] === CLOSE_ARRAY) return p + 1
  for (;;) {
    p = skipSpace(walk, skipValue(walk, p, depth))
    const byte = walk.bytes[p]
    if (byte === CLOSE_ARRAY) return p + 1
    if (byte !== COMMA) throw createSyntaxError(walk, p)
    p = skipSpace(walk, p + 1)
  }
}

const skipObject = (walk: CutState, at: number, depth: number): number => {
  let p = skipSpace(walk, at)
  if (walk.bytes[p] === CLOSE_OBJECT) return p + 1
  const keys = new Set<string>()
  for (let count = 1; ; count++) {
    if (walk.bytes[p] !== QUOTE) throw createSyntaxError(walk, p)
    const end = skipString(walk, p + 1)
    const key = walk.bytes.toString('latin1', p, end)
    // A key with an escape may be any other; where there is one the record is printed anew.
    if (keys.add(key).size < count || key.includes('\\')) walk.hasDuplicateKeys = true
    p = skipSpace(walk, skipValue(walk, skipColon(walk, end), depth))
    const byte = walk.bytes[p]
    if (byte === CLOSE_OBJECT) return p + 1
    if (byte !== COMMA) throw createSyntaxError(walk, p)
    p = skipSpace(walk, p + 1)
  }
}
