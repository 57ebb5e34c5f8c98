import { toInstant, toMillis } from '../model/scalar'
import { QUOTE } from './token'

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
