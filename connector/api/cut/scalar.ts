import { patternMillis, toUtc } from './instant'
import type { Shape } from './shape'
import { MINUS, number, QUOTE, string, textOf } from './token'
import { nameOf, refuse, replace, type Walk } from './walk'
import { wrong } from './wrong'

export const isNumeric = (byte: number | undefined): boolean =>
  byte !== undefined && ((byte >= 0x30 && byte <= 0x39) || byte === MINUS)

const maxInt64 = 2n ** 63n

// Eighteen characters are always within 64 bits, twenty hold them all; BigInt on a million digits takes seconds.
const isInt64 = (digits: string): boolean =>
  digits.length <= 18 || (digits.length <= 20 && BigInt(digits) < maxInt64 && BigInt(digits) >= -maxInt64)

/** The position after an integer; one written as 1.0 or 1e3 leaves in digits alone. */
export const integer = (walk: Walk, shape: Shape, from: number): number => {
  const to = number(walk, from)
  if (walk.form === 'plain' && to - from < 19) return to
  const text = walk.bytes.toString('latin1', from, to)
  if (walk.form === 'plain') {
    if (isInt64(text)) return to
  } else if (Number.isSafeInteger(Number(text))) {
    replace(walk, from, to, String(Number(text)), walk.edits.length)
    return to
  }
  return wrong(walk, shape, from, to, walk.edits.length, walk.changes.length)
}

/** The position after a number that a double can hold. */
export const double = (walk: Walk, shape: Shape, from: number): number => {
  const to = number(walk, from)
  if (walk.form !== 'exponent' && to - from < 300) return to
  return Number.isFinite(Number(walk.bytes.toString('latin1', from, to)))
    ? to
    : wrong(walk, shape, from, to, walk.edits.length, walk.changes.length)
}

/** The position after a time, which leaves in UTC with `Z`. */
export const instant = (walk: Walk, shape: Shape, from: number): number => {
  if (!Number.isNaN(patternMillis(walk.bytes, from))) return from + 26
  const edits = walk.edits.length
  const to = string(walk, from + 1)
  const time = textOf(walk, from, to)
  const moved = toUtc(time)
  if (moved === undefined) return wrong(walk, shape, from, to, edits, walk.changes.length)
  if (moved !== time) replace(walk, from, to, `"${moved}"`, edits)
  return to
}

/** The position after a record's key, whose digits go into `walk.id`. */
export const key = (walk: Walk, shape: Shape, from: number): number => {
  const to = isNumeric(walk.bytes[from]) ? number(walk, from) : from
  walk.id = walk.bytes.toString('latin1', from, to)
  if (to === from || walk.form !== 'plain' || walk.id === '-0' || !isInt64(walk.id))
    throw refuse(`${nameOf(walk)}.${shape.name}`, 'expected an integer of 64 bits')
  return to
}

/** The position after a record's cursor, which goes into `walk.modifiedTime`. */
export const cursor = (walk: Walk, shape: Shape, from: number): number => {
  walk.modifiedTime = patternMillis(walk.bytes, from)
  if (!Number.isNaN(walk.modifiedTime) && walk.bytes[from] === QUOTE) return from + 26
  const to = walk.bytes[from] === QUOTE ? instant(walk, shape, from) : from
  if (to === from || walk.wrong) throw refuse(`${nameOf(walk)}.${shape.name}`, 'expected an ISO 8601 time')
  walk.modifiedTime = Date.parse(toUtc(textOf(walk, from, to)) ?? '')
  return to
}
