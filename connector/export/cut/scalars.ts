import { toInstant, toMillis } from '../../api'
import { type CutState, createCutError, recordPathOf, replaceSpan } from './edit'
import { indexedPathOf, type Shape } from './shape'
import { decodeString, MINUS, QUOTE, skipNumber, skipString } from './tokens'

/** Milliseconds of the service's own pattern, "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'" in quotes, read off its bytes; NaN for all else. */
export const parseInstantAt = (bytes: Uint8Array, at: number): number => {
  if (
    bytes[at + 5] !== 0x2d ||
    bytes[at + 8] !== 0x2d ||
    bytes[at + 11] !== 0x54 ||
    bytes[at + 14] !== 0x3a ||
    bytes[at + 17] !== 0x3a ||
    bytes[at + 20] !== 0x2e ||
    bytes[at + 24] !== 0x5a ||
    bytes[at + 25] !== QUOTE
  )
    return Number.NaN
  const year = digitPair(bytes, at + 1) * 100 + digitPair(bytes, at + 3)
  const month = digitPair(bytes, at + 6)
  const day = digitPair(bytes, at + 9)
  const hour = digitPair(bytes, at + 12)
  const minute = digitPair(bytes, at + 15)
  const second = digitPair(bytes, at + 18)
  const milli = digitPair(bytes, at + 21) * 10 + digitAt(bytes[at + 23])
  // Date.UTC takes the years before 100 for those of the last century.
  const dated = year >= 100 && month >= 1 && month <= 12 && day >= 1 && day <= daysInMonth(year, month)
  return dated && hour <= 23 && minute <= 59 && second <= 59
    ? Date.UTC(year, month - 1, day, hour, minute, second, milli)
    : Number.NaN
}

const digitAt = (byte: number | undefined): number =>
  byte !== undefined && byte >= 0x30 && byte <= 0x39 ? byte - 0x30 : Number.NaN

const digitPair = (bytes: Uint8Array, at: number): number => digitAt(bytes[at]) * 10 + digitAt(bytes[at + 1])

const daysInMonth = (year: number, month: number): number => {
  if (month !== 2) return month === 4 || month === 6 || month === 9 || month === 11 ? 30 : 31
  return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0) ? 29 : 28
}

const utcPattern = /^\d{4}-\d\d-\d\dT([01]\d|2[0-3]):\d\d:\d\d(\.\d+)?Z$/

/** A time as it leaves: in UTC with `Z`, as it came where it already is; undefined if it is none. */
export const toUtc = (time: string): string | undefined => {
  const millis = toMillis(time)
  if (Number.isNaN(millis)) return undefined
  if (utcPattern.test(time)) return time
  const fraction = /\.\d+/.exec(time)?.[0] ?? '.000'
  const moved = toInstant(millis).replace(/\.\d+/, fraction)
  return utcPattern.test(moved) ? moved : undefined
}

/** What becomes of a value of the wrong type: null where its place may be null, else what holds it is wrong too. */
export const rejectValue = (
  walk: CutState,
  shape: Shape,
  from: number,
  to: number,
  edits: number,
  changes: number,
): number => {
  walk.isInvalid = !shape.nullable
  if (shape.nullable) {
    replaceSpan(walk, from, to, 'null', edits)
    walk.changes.length = changes
    walk.changes.push({ field: indexedPathOf(shape), change: 'NULLED', reason: 'SOURCE_SERIALIZATION_ERROR' })
  }
  return to
}

export const startsNumber = (byte: number | undefined): boolean =>
  byte !== undefined && ((byte >= 0x30 && byte <= 0x39) || byte === MINUS)

const maxInt64 = 2n ** 63n

// Eighteen characters are always within 64 bits, twenty hold them all; BigInt on a million digits takes seconds.
const isInt64 = (digits: string): boolean =>
  digits.length <= 18 || (digits.length <= 20 && BigInt(digits) < maxInt64 && BigInt(digits) >= -maxInt64)

/** The position after an integer; one written as 1.0 or 1e3 leaves in digits alone. */
export const readInteger = (walk: CutState, shape: Shape, from: number): number => {
  const to = skipNumber(walk, from)
  if (walk.numberForm === 'plain' && to - from < 19) return to
  const text = walk.bytes.toString('latin1', from, to)
  if (walk.numberForm === 'plain') {
    if (isInt64(text)) return to
  } else if (Number.isSafeInteger(Number(text))) {
    replaceSpan(walk, from, to, String(Number(text)), walk.edits.length)
    return to
  }
  return rejectValue(walk, shape, from, to, walk.edits.length, walk.changes.length)
}

/** The position after a number that a double can hold. */
export const readDouble = (walk: CutState, shape: Shape, from: number): number => {
  const to = skipNumber(walk, from)
  if (walk.numberForm !== 'exponent' && to - from < 300) return to
  return Number.isFinite(Number(walk.bytes.toString('latin1', from, to)))
    ? to
    : rejectValue(walk, shape, from, to, walk.edits.length, walk.changes.length)
}

/** The position after a time, which leaves in UTC with `Z`. */
export const readInstant = (walk: CutState, shape: Shape, from: number): number => {
  if (!Number.isNaN(parseInstantAt(walk.bytes, from))) return from + 26
  const edits = walk.edits.length
  const to = skipString(walk, from + 1)
  const time = decodeString(walk, from, to)
  const moved = toUtc(time)
  if (moved === undefined) return rejectValue(walk, shape, from, to, edits, walk.changes.length)
  if (moved !== time) replaceSpan(walk, from, to, `"${moved}"`, edits)
  return to
}

/** The position after a record's key, whose digits go into `walk.id`. */
export const readPrimaryKey = (walk: CutState, shape: Shape, from: number): number => {
  const to = startsNumber(walk.bytes[from]) ? skipNumber(walk, from) : from
  walk.id = walk.bytes.toString('latin1', from, to)
  if (to === from || walk.numberForm !== 'plain' || walk.id === '-0' || !isInt64(walk.id))
    throw createCutError(`${recordPathOf(walk)}.${shape.name}`, 'expected an integer of 64 bits')
  return to
}

/** The position after a record's cursor, which goes into `walk.modifiedTime`. */
export const readCursor = (walk: CutState, shape: Shape, from: number): number => {
  walk.modifiedTime = parseInstantAt(walk.bytes, from)
  if (!Number.isNaN(walk.modifiedTime) && walk.bytes[from] === QUOTE) return from + 26
  const to = walk.bytes[from] === QUOTE ? readInstant(walk, shape, from) : from
  if (to === from || walk.isInvalid)
    throw createCutError(`${recordPathOf(walk)}.${shape.name}`, 'expected an ISO 8601 time')
  walk.modifiedTime = Date.parse(toUtc(decodeString(walk, from, to)) ?? '')
  return to
}
