import * as E from 'fp-ts/Either'
import { toInstant, toMillis } from '../api'
import { parseExactJson } from '../cdk'

/** A value of a column as an attribute wants it; a Left says what would be right and quotes nothing. */
export type ValueConverter = (value: unknown) => E.Either<string, unknown>

const isNumber = (value: unknown): value is number | bigint =>
  typeof value === 'bigint' || (typeof value === 'number' && Number.isFinite(value))

/** Warehouses keep codes and numbers of people as numbers too. */
export const convertText: ValueConverter = (value) =>
  typeof value === 'string' ? E.right(value) : isNumber(value) ? E.right(String(value)) : E.left('must be a text')

/** CSV files hold everything as text. */
export const convertInteger: ValueConverter = (value) => {
  const number = typeof value === 'string' && /^\s*-?\d+(\.0+)?\s*$/.test(value) ? Number(value) : value
  return Number.isSafeInteger(number) ? E.right(number) : E.left('must be an integer')
}

const booleanWords: Readonly<Record<string, boolean>> = {
  true: true,
  t: true,
  yes: true,
  y: true,
  1: true,
  false: false,
  f: false,
  no: false,
  n: false,
  0: false,
}

export const convertBoolean: ValueConverter = (value) => {
  if (typeof value === 'boolean') return E.right(value)
  const word = typeof value === 'string' || typeof value === 'number' ? String(value).trim().toLowerCase() : ''
  const meant = Object.hasOwn(booleanWords, word) ? booleanWords[word] : undefined
  return meant === undefined ? E.left('must be true or false') : E.right(meant)
}

const serviceTimePattern = /^\d{4}-\d\d-\d\dT([01]\d|2[0-3]):\d\d:\d\d\.\d{3}Z$/

/** A time in any usual form of ISO 8601, in UTC where it names no zone, as the service writes it. */
export const convertTime: ValueConverter = (value) => {
  if (typeof value === 'string' && serviceTimePattern.test(value) && !Number.isNaN(toMillis(value)))
    return E.right(value)
  const text = typeof value === 'string' ? value.trim().replace(/^(\d{4}-\d\d-\d\d) (?=\d)/, '$1T') : ''
  const zoned = text.replace(/\s*UTC$/, 'Z').replace(/([+-]\d\d)$/, '$1:00')
  const millis = toMillis(/^\d{4}-\d\d-\d\d$/.test(text) ? `${text}T00:00Z` : zoned)
  return Number.isNaN(millis)
    ? E.left('must be an ISO 8601 time, such as 2026-01-31T09:30:00Z')
    : E.right(toInstant(millis))
}

const structureConverter =
  (what: string, is: (value: unknown) => boolean): ValueConverter =>
  (value) => {
    const meant = typeof value === 'string' ? parseOrUndefined(value) : value
    return is(meant) ? E.right(meant) : E.left(`must be ${what}, or its JSON text`)
  }

const parseOrUndefined = (text: string): unknown => {
  try {
    return parseExactJson(text)
  } catch {
    return undefined
  }
}

export const convertList: ValueConverter = structureConverter('a list', Array.isArray)
export const convertObject: ValueConverter = structureConverter(
  'an object',
  (value) => typeof value === 'object' && value !== null && !Array.isArray(value),
)
