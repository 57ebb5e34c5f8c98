import { toInstant, toMillis } from '../../api'
import { fitsDouble } from '../../cdk'
import {
  decodeString,
  QUOTE,
  skipExponent,
  skipFraction,
  skipInteger,
  skipString,
  startsNumber,
} from '../../cdk/json/scanner'
import { type CutState, createCutError, indexedPathOf, recordPathOf } from './cut-state'
import { replaceSpan } from './edit'
import type { Shape } from './shape'

/** The position after a value, or its complement (~) if its place cannot hold the value, not even as null. */
export type ValueEnd = number

/**
 * A time in the service's pattern, "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'" in quotes, as milliseconds since 1970; otherwise NaN.
 */
const parseInstantAt = (bytes: Uint8Array, at: number): number => {
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
  // Date.UTC maps years before 100 to the twentieth century.
  const isDate = year >= 100 && month >= 1 && month <= 12 && day >= 1 && day <= daysInMonth(year, month)
  return isDate && hour <= 23 && minute <= 59 && second <= 59
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

/** A time as it is sent: in UTC with `Z`, unchanged if it already is; undefined if it is not a time. */
const toUtc = (time: string): string | undefined => {
  const millis = toMillis(time)
  if (Number.isNaN(millis)) return undefined
  if (utcPattern.test(time)) return time
  const fraction = /\.\d+/.exec(time)?.[0] ?? '.000'
  const moved = toInstant(millis).replace(/\.\d+/, fraction)
  return utcPattern.test(moved) ? moved : undefined
}

/**
 * Replaces a value of the wrong type with null if its place may be null; otherwise its parent has the wrong type too.
 */
export const rejectValue = (state: CutState, shape: Shape, from: number, to: number, firstChange: number): ValueEnd => {
  if (!shape.nullable) return ~to
  const { changes } = state.draft
  replaceSpan(state.edits, state.offsets, from, to, 'null')
  changes.length = firstChange
  changes.push({ field: indexedPathOf(state, shape), change: 'NULLED', reason: 'SOURCE_SERIALIZATION_ERROR' })
  return to
}

/** Like `rejectValue`, for a value inside which nothing was edited. */
const rejectScalar = (state: CutState, shape: Shape, from: number, to: number): ValueEnd =>
  rejectValue(state, shape, from, to, state.draft.changes.length)

const maxInt64 = 2n ** 63n

// Eighteen characters always fit into 64 bits, and twenty hold any of them. BigInt on a million digits takes seconds.
const isInt64 = (digits: string): boolean =>
  digits.length <= 18 || (digits.length <= 20 && BigInt(digits) < maxInt64 && BigInt(digits) >= -maxInt64)

/** The number continues after its integer digits with a fraction or an exponent. */
const goesOn = (byte: number | undefined): boolean => byte === 0x2e || byte === 0x65 || byte === 0x45

/** Reads an integer; 1.0 and 1e3 are sent as digits alone. */
export const readInteger = (state: CutState, shape: Shape, from: number): ValueEnd => {
  const { scanner } = state
  const { bytes } = scanner
  const digitsEnd = skipInteger(scanner, from)
  if (!goesOn(bytes[digitsEnd])) {
    if (digitsEnd - from < 19 || isInt64(bytes.toString('latin1', from, digitsEnd))) return digitsEnd
    return rejectScalar(state, shape, from, digitsEnd)
  }
  const to = skipExponent(scanner, skipFraction(scanner, digitsEnd))
  const value = Number(bytes.toString('latin1', from, to))
  if (!Number.isSafeInteger(value)) return rejectScalar(state, shape, from, to)
  replaceSpan(state.edits, state.offsets, from, to, String(value))
  return to
}

/** Reads a number that fits into a double. */
export const readDouble = (state: CutState, shape: Shape, from: number): ValueEnd => {
  const { scanner } = state
  const fractionEnd = skipFraction(scanner, skipInteger(scanner, from))
  const to = skipExponent(scanner, fractionEnd)
  if (to === fractionEnd && to - from < 300) return to
  return fitsDouble(scanner.bytes.toString('latin1', from, to)) ? to : rejectScalar(state, shape, from, to)
}

/** Reads a time, which is sent in UTC with `Z`. */
export const readInstant = (state: CutState, shape: Shape, from: number): ValueEnd => {
  const { scanner, edits } = state
  if (!Number.isNaN(parseInstantAt(scanner.bytes, from))) return from + 26
  const to = skipString(scanner, from + 1)
  const time = decodeString(scanner, from, to)
  const leaving = toUtc(time)
  if (leaving === undefined) return rejectValue(state, shape, from, to, state.draft.changes.length)
  if (leaving !== time) replaceSpan(edits, state.offsets, from, to, `"${leaving}"`)
  return to
}

/** Reads a record's key; its digits go into the draft of the record. */
export const readPrimaryKey = (state: CutState, shape: Shape, from: number): number => {
  const { scanner, draft } = state
  const { bytes } = scanner
  const to = startsNumber(bytes[from]) ? skipInteger(scanner, from) : from
  draft.id = bytes.toString('latin1', from, to)
  if (to > from) skipExponent(scanner, skipFraction(scanner, to))
  if (to === from || goesOn(bytes[to]) || draft.id === '-0' || !isInt64(draft.id))
    throw createCutError(`${recordPathOf(state)}.${shape.name}`, 'expected an integer of 64 bits')
  return to
}

/** Reads a record's cursor, which goes into the draft of the record. */
export const readCursor = (state: CutState, shape: Shape, from: number): number => {
  const { scanner, draft } = state
  const isString = scanner.bytes[from] === QUOTE
  draft.modifiedTime = parseInstantAt(scanner.bytes, from)
  if (isString && !Number.isNaN(draft.modifiedTime)) return from + 26
  const to = isString ? readInstant(state, shape, from) : -1
  if (to < 0) throw createCutError(`${recordPathOf(state)}.${shape.name}`, 'expected an ISO 8601 time')
  draft.modifiedTime = Date.parse(toUtc(decodeString(scanner, from, to)) ?? '')
  return to
}
