import { parseInstantAt, toUtc } from './instant'
import type { Shape } from './shape'
import { decodeString, MINUS, QUOTE, skipNumber, skipString } from './token'
import { type CutState, createCutError, recordPathOf, replaceSpan } from './walk'
import { rejectValue } from './wrong'

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
