export const QUOTE = 0x22
export const COMMA = 0x2c
const MINUS = 0x2d
const COLON = 0x3a
export const OPEN_ARRAY = 0x5b
export const BACKSLASH = 0x5c
export const CLOSE_ARRAY = 0x5d
export const OPEN_OBJECT = 0x7b
export const CLOSE_OBJECT = 0x7d

/** What a reader wants to know besides positions. Undefined members are not looked for. */
type JsonObserver = {
  /** An escape such as \ud83d without the other half of its pair, which UTF-8 cannot express. */
  readonly onLoneSurrogate?: (from: number, to: number) => void
  /** An object passed by `skipValue` may hold a key twice. */
  readonly onDuplicateKey?: () => void
  /** Whitespace holds a line feed or a carriage return. */
  readonly onLineBreak?: () => void
}

/**
 * The bytes of a JSON text. The functions below take a scanner and a start position (a byte index) and return the
 * position after what they read. They throw a JsonSyntaxError if the text is not JSON. They keep no state.
 */
export type JsonScanner = {
  readonly bytes: Buffer
  /** The same bytes, to read four at a time. */
  readonly view: DataView
  readonly onLoneSurrogate: JsonObserver['onLoneSurrogate']
  readonly onDuplicateKey: JsonObserver['onDuplicateKey']
  readonly onLineBreak: JsonObserver['onLineBreak']
}

/** Spelled out, so that all scanners share one hidden class. */
export const createScanner = (text: Uint8Array, observer: JsonObserver = {}): JsonScanner => ({
  bytes: Buffer.isBuffer(text) ? text : Buffer.from(text.buffer, text.byteOffset, text.byteLength),
  view: new DataView(text.buffer, text.byteOffset, text.byteLength),
  onLoneSurrogate: observer.onLoneSurrogate,
  onDuplicateKey: observer.onDuplicateKey,
  onLineBreak: observer.onLineBreak,
})

/** The text is not JSON, or is nested too deeply. The message names the position and quotes nothing. */
export class JsonSyntaxError extends Error {}

/** The error for a text that is not JSON from `at` on. */
export const createSyntaxError = ({ bytes }: JsonScanner, at: number): JsonSyntaxError =>
  new JsonSyntaxError(
    at >= bytes.length ? `cut short after ${bytes.length} bytes` : `not JSON at byte ${at} of ${bytes.length}`,
  )

/** The next byte that is not whitespace. */
export const skipSpace = (scanner: JsonScanner, at: number): number =>
  (scanner.bytes[at] ?? 0) > 0x20 ? at : skipBlanks(scanner, at)

const skipBlanks = (scanner: JsonScanner, at: number): number => {
  const { bytes } = scanner
  for (let p = at; ; p++) {
    const byte = bytes[p] ?? 0xff
    if (byte > 0x20) return p
    if (byte === 0x0a || byte === 0x0d) scanner.onLineBreak?.()
    else if (byte !== 0x20 && byte !== 0x09) throw createSyntaxError(scanner, p)
  }
}

/** From the end of a key past the colon to the value. */
export const skipColon = (scanner: JsonScanner, at: number): number => {
  const p = skipSpace(scanner, at)
  if (scanner.bytes[p] !== COLON) throw createSyntaxError(scanner, p)
  return skipSpace(scanner, p + 1)
}

/*
 * Objects and arrays are read by pairs of functions:
 *   for (let key = firstMember(scanner, open); bytes[key] === QUOTE; key = nextMember(scanner, end))
 *   for (let p = firstElement(scanner, open); bytes[p] !== CLOSE_ARRAY; p = nextElement(scanner, end))
 */

/** From an opening brace to the quote of the first key, or to the closing brace. */
export const firstMember = (scanner: JsonScanner, open: number): number => {
  const p = skipSpace(scanner, open + 1)
  const byte = scanner.bytes[p]
  if (byte !== QUOTE && byte !== CLOSE_OBJECT) throw createSyntaxError(scanner, p)
  return p
}

/** From the end of a value to the quote of the next key, or to the closing brace. */
export const nextMember = (scanner: JsonScanner, end: number): number => {
  const { bytes } = scanner
  let p = skipSpace(scanner, end)
  const byte = bytes[p]
  if (byte === COMMA) {
    p = skipSpace(scanner, p + 1)
    if (bytes[p] === QUOTE) return p
  } else if (byte === CLOSE_OBJECT) return p
  throw createSyntaxError(scanner, p)
}

/** From an opening bracket to the first value, or to the closing bracket. */
export const firstElement = (scanner: JsonScanner, open: number): number => skipSpace(scanner, open + 1)

/** From the end of a value to the next value, or to the closing bracket. */
export const nextElement = (scanner: JsonScanner, end: number): number => {
  const { bytes } = scanner
  let p = skipSpace(scanner, end)
  const byte = bytes[p]
  if (byte === COMMA) {
    p = skipSpace(scanner, p + 1)
    if (bytes[p] !== CLOSE_ARRAY) return p
  } else if (byte === CLOSE_ARRAY) return p
  throw createSyntaxError(scanner, p)
}

/** 1 for each byte that represents itself in a string. */
const plainBytes = new Uint8Array(256).map((_, byte) => (byte < 0x20 || byte === QUOTE || byte === BACKSLASH ? 0 : 1))

/**
 * Marks the bytes of a word that do not represent themselves in a string, each by its highest bit. Exact up to the
 * first marked byte. Flipping bit 1 puts the quote among the control characters.
 */
const markSpecialBytes = (word: number): number => {
  const low = word ^ 0x02020202
  const slash = word ^ 0x5c5c5c5c
  return (((low - 0x21212121) & ~low) | ((slash - 0x01010101) & ~slash)) & 0x80808080
}

/** The index (0 to 3) of the byte that holds the lowest set bit. */
const firstMarkedByte = (bits: number): number => (31 - Math.clz32(bits & -bits)) >> 3

/** The next quote, backslash or control character; the end of the text if there is none. */
export const findSpecialByte = ({ bytes, view }: JsonScanner, at: number): number => {
  const last = bytes.length - 4
  let p = at
  while (p <= last) {
    const found = markSpecialBytes(view.getInt32(p, true))
    if (found !== 0) return p + firstMarkedByte(found)
    p += 4
  }
  while (plainBytes[bytes[p] ?? 0] === 1) p++
  return p
}

/** From after the opening quote of a string to after its closing quote. */
export const skipString = (scanner: JsonScanner, at: number): number => {
  const { bytes } = scanner
  for (let p = at; ; p = skipEscape(scanner, p)) {
    p = findSpecialByte(scanner, p)
    if (bytes[p] === QUOTE) return p + 1
    if (bytes[p] !== BACKSLASH) throw createSyntaxError(scanner, p)
  }
}

const skipEscape = (scanner: JsonScanner, at: number): number => {
  const { bytes } = scanner
  const letter = bytes[at + 1] ?? 0
  if (letter !== 0x75) {
    if ('"\\/bfnrt'.includes(String.fromCharCode(letter))) return at + 2
    throw createSyntaxError(scanner, at + 1)
  }
  const unit = readHex(scanner, at + 2)
  if (unit < 0xd800 || unit > 0xdfff) return at + 6
  if (unit < 0xdc00 && bytes[at + 6] === BACKSLASH && bytes[at + 7] === 0x75) {
    const low = readHex(scanner, at + 8)
    if (low >= 0xdc00 && low <= 0xdfff) return at + 12
  }
  scanner.onLoneSurrogate?.(at, at + 6)
  return at + 6
}

const readHex = (scanner: JsonScanner, at: number): number => {
  const digits = scanner.bytes.toString('latin1', at, Math.min(at + 4, scanner.bytes.length))
  if (!/^[\da-f]{4}$/i.test(digits)) throw createSyntaxError(scanner, at)
  return Number.parseInt(digits, 16)
}

/** The text of the string between the quotes at `from` and just before `to`. */
export const decodeString = ({ bytes }: JsonScanner, from: number, to: number): string => {
  const text = bytes.toString('utf8', from, to)
  return text.includes('\\') ? JSON.parse(text) : text.slice(1, -1)
}

const isDigit = (byte: number | undefined): boolean => byte !== undefined && byte >= 0x30 && byte <= 0x39

export const startsNumber = (byte: number | undefined): boolean => isDigit(byte) || byte === MINUS

const skipDigits = (scanner: JsonScanner, at: number): number => {
  const { bytes } = scanner
  if (!isDigit(bytes[at])) throw createSyntaxError(scanner, at)
  let p = at + 1
  while (isDigit(bytes[p])) p++
  return p
}

/** The sign and digits of a number before its decimal point and exponent. */
export const skipInteger = (scanner: JsonScanner, at: number): number => {
  const { bytes } = scanner
  const first = bytes[at] === MINUS ? at + 1 : at
  return bytes[first] === 0x30 ? first + 1 : skipDigits(scanner, first)
}

/** The decimal point of a number and the digits after it, if there are any. */
export const skipFraction = (scanner: JsonScanner, at: number): number =>
  scanner.bytes[at] === 0x2e ? skipDigits(scanner, at + 1) : at

/** The exponent of a number, if there is one. */
export const skipExponent = (scanner: JsonScanner, at: number): number => {
  const { bytes } = scanner
  if (bytes[at] !== 0x65 && bytes[at] !== 0x45) return at
  const sign = bytes[at + 1]
  return skipDigits(scanner, sign === 0x2b || sign === MINUS ? at + 2 : at + 1)
}

const skipNumber = (scanner: JsonScanner, at: number): number =>
  skipExponent(scanner, skipFraction(scanner, skipInteger(scanner, at)))

const literals = ['true', 'false', 'null'].map((word) => Buffer.from(word))

/** `true`, `false` or `null`. */
export const skipLiteral = (scanner: JsonScanner, at: number): number => {
  const found = literals.find((one) => hasBytesAt(scanner.bytes, at, one))
  if (found === undefined) throw createSyntaxError(scanner, at)
  return at + found.length
}

const hasBytesAt = (bytes: Uint8Array, at: number, expected: Uint8Array): boolean => {
  for (let i = 0; i < expected.length; i++) if (bytes[at + i] !== expected[i]) return false
  return true
}

/** Deeper than any answer of a service, yet shallow enough for the stack of every later reader. */
export const maxJsonDepth = 500

/**
 * Skips any value. Accepts exactly what JSON.parse accepts, down to `maxJsonDepth` levels. `depth`: the levels around
 * the value.
 */
export const skipValue = (scanner: JsonScanner, at: number, depth = 0): number => {
  switch (scanner.bytes[at]) {
    case QUOTE:
      return skipString(scanner, at + 1)
    case OPEN_OBJECT:
      return skipObject(scanner, at, nextDepth(depth))
    case OPEN_ARRAY:
      return skipArray(scanner, at, nextDepth(depth))
    case 0x66:
    case 0x6e:
    case 0x74:
      return skipLiteral(scanner, at)
    default:
      return skipNumber(scanner, at)
  }
}

const nextDepth = (depth: number): number => {
  if (depth >= maxJsonDepth) throw new JsonSyntaxError(`nested more than ${maxJsonDepth} levels deep`)
  return depth + 1
}

const skipArray = (scanner: JsonScanner, open: number, depth: number): number => {
  let p = firstElement(scanner, open)
  while (scanner.bytes[p] !== CLOSE_ARRAY) p = nextElement(scanner, skipValue(scanner, p, depth))
  return p + 1
}

const skipObject = (scanner: JsonScanner, open: number, depth: number): number => {
  const { bytes, onDuplicateKey } = scanner
  const keys = onDuplicateKey === undefined ? undefined : new Set<string>()
  let key = firstMember(scanner, open)
  for (let count = 1; bytes[key] === QUOTE; count++) {
    const keyEnd = skipString(scanner, key + 1)
    if (keys !== undefined) {
      const text = bytes.toString('latin1', key, keyEnd)
      // A key may be written both with and without escapes.
      if (keys.add(text).size < count || text.includes('\\')) onDuplicateKey?.()
    }
    key = nextMember(scanner, skipValue(scanner, skipColon(scanner, keyEnd), depth))
  }
  return key + 1
}
