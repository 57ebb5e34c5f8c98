import * as E from 'fp-ts/Either'
import * as t from 'io-ts'
import { toInstant, toMillis } from '../api'
import { parseExactJson, printExactJson } from '../cdk'

/** Converts a column's value to an attribute's. The Left says what is allowed and never quotes the value. */
export type ValueConverter = (value: unknown) => E.Either<string, unknown>

const isNumber = (value: unknown): value is number | bigint =>
  typeof value === 'bigint' || (typeof value === 'number' && Number.isFinite(value))

/** Numbers become text: warehouses may hold codes and identifiers as numbers. */
export const convertText: ValueConverter = (value) =>
  typeof value === 'string' ? E.right(value) : isNumber(value) ? E.right(String(value)) : E.left('must be text')

/** Takes text too: CSV files have no other type. */
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
  const converted = Object.hasOwn(booleanWords, word) ? booleanWords[word] : undefined
  return converted === undefined ? E.left('must be true or false') : E.right(converted)
}

const serviceTimePattern = /^\d{4}-\d\d-\d\dT([01]\d|2[0-3]):\d\d:\d\d\.\d{3}Z$/

/**
 * Accepts the usual forms of ISO 8601, in UTC if they have no zone: RFC 3339 allows lower case, and warehouses print a
 * space before the time and the zone. Returns the service's form, such as 2026-01-31T09:30:00.000Z.
 */
export const convertTime: ValueConverter = (value) => {
  if (typeof value === 'string' && serviceTimePattern.test(value) && !Number.isNaN(toMillis(value)))
    return E.right(value)
  const text = typeof value === 'string' ? value.trim().toUpperCase() : ''
  const zoned = text
    .replace(/^(\d{4}-\d\d-\d\d) +(?=\d)/, '$1T')
    .replace(/ *(UTC|Z)$/, 'Z')
    .replace(/ *([+-]\d\d)(:?\d\d)?$/, (_, hours: string, minutes = ':00') => `${hours}${minutes}`)
  const millis = toMillis(/^\d{4}-\d\d-\d\d$/.test(text) ? `${text}T00:00Z` : zoned)
  return Number.isNaN(millis)
    ? E.left('must be an ISO 8601 time, such as 2026-01-31T09:30:00Z')
    : E.right(toInstant(millis))
}

const structureConverter =
  (name: string, is: (value: unknown) => boolean): ValueConverter =>
  (value) => {
    const structure = typeof value === 'string' ? parseOrUndefined(value) : value
    return is(structure) ? E.right(structure) : E.left(`must be ${name}, or its JSON text`)
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

/** What the service has (`old`; null: nothing) and what is sent (`next`), by the path of the attribute. */
export type Difference = { readonly path: string; readonly old: unknown; readonly next: unknown }

const isNothing = (value: unknown): boolean => value === undefined || value === null || value === ''

/** A text that is equal for equal values; ignores the order of keys and of list items. */
export const toComparable = (value: unknown): string => {
  if (Array.isArray(value)) return `[${value.map(toComparable).sort().join()}]`
  if (!t.UnknownRecord.is(value)) return isNothing(value) ? '' : String(value).trim()
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return `{${members.map(([name, inner]) => `${JSON.stringify(name)}:${toComparable(inner)}`).join()}}`
}

/** How two values of an attribute differ, member by member. */
export const compareValues = (path: string, old: unknown, next: unknown): ReadonlyArray<Difference> => {
  // The service may add its own members to an object.
  if (t.UnknownRecord.is(next) && !Array.isArray(next) && (isNothing(old) || t.UnknownRecord.is(old)))
    return Object.entries(next).flatMap(([name, inner]) =>
      compareValues(`${path}.${name}`, t.UnknownRecord.is(old) ? old[name] : null, inner),
    )
  return toComparable(old) === toComparable(next) ? [] : [{ path, old: isNothing(old) ? null : old, next }]
}

const maxValueLength = 200
const secretName = /pass|secret|token|credential|api_?key/i

/** A value as JSON text of at most 200 characters. Masked if its name looks like that of a secret. */
export const formatValue = (path: string, value: unknown): string => {
  if (!isNothing(value) && secretName.test(path)) return '"***"'
  const text = printExactJson(value ?? null)
  return text.length > maxValueLength ? `${text.slice(0, maxValueLength)}…` : text
}

export const formatDifferences = (differences: ReadonlyArray<Difference>): string =>
  differences.map(({ path, old, next }) => `${path} ${formatValue(path, old)} -> ${formatValue(path, next)}`).join('; ')
