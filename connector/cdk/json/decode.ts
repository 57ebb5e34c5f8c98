import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import type * as t from 'io-ts'
import { parse, stringify } from 'lossless-json'
import { annotationsOf } from '../schema'
import {
  BACKSLASH,
  CLOSE_ARRAY,
  CLOSE_OBJECT,
  COMMA,
  createScanner,
  decodeString,
  findSpecialByte,
  firstMember,
  type JsonScanner,
  JsonSyntaxError,
  nextMember,
  OPEN_ARRAY,
  OPEN_OBJECT,
  QUOTE,
  skipColon,
  skipSpace,
  skipString,
} from './scanner'

/** JSON text as a value. The error names the line and the column where it breaks and quotes nothing. */
export const parseJson = (text: string): E.Either<string, unknown> =>
  E.tryCatch(
    () => JSON.parse(text),
    () => {
      const at = findErrorPosition(text)
      if (at === undefined) return 'is not JSON: it ends too early or is empty'
      const before = text.slice(0, at - 1).split('\n')
      return `is not JSON: it breaks at line ${before.length}, column ${(before.at(-1) ?? '').length + 1}`
    },
  )

/** Searches the shortest beginning that is broken: the engine's own message may quote the text, and names the position only sometimes. */
const findErrorPosition = (text: string): number | undefined => {
  if (isIncomplete(text)) return undefined
  let [low, high] = [0, text.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (isIncomplete(text.slice(0, middle))) low = middle + 1
    else high = middle
  }
  return low
}

const isIncomplete = (text: string): boolean => {
  try {
    JSON.parse(text)
    return true
  } catch (error) {
    const message = String(error)
    return (
      /Unexpected end|Unterminated/.test(message) ||
      message.includes(`position ${text.length} `) ||
      message.endsWith(`position ${text.length}`)
    )
  }
}

/** One error: the key path and what is expected there. Never the value, which may be a secret. */
export type ValidationIssue = { readonly path: string; readonly problem: string }

/** The decoded value, or for each key path that is wrong what is expected there. */
export const decodeValue = <A>(
  codec: t.Type<A, unknown>,
  value: unknown,
): E.Either<ReadonlyArray<ValidationIssue>, A> => pipe(codec.decode(value), E.mapLeft(toIssues))

const toIssues = (errors: t.Errors): ReadonlyArray<ValidationIssue> => {
  const all = errors.map(({ context, message, value }) => {
    const named = context.filter(({ key }, i) => key !== '' && !isCombinator(context[i - 1]?.type))
    const expected = [...context].reverse().find(({ type }) => Object.keys(annotationsOf(type as t.Any)).length > 0)
    const expectation = describeExpectation(expected?.type as t.Any | undefined)
    return {
      path: named.map(({ key }) => key).join('.'),
      problem:
        message ??
        (typeof value === 'string' ? `must be ${expectation}` : `${describeKind(value)}, expected ${expectation}`),
    }
  })
  return all.filter(
    ({ path }, i) =>
      all.findIndex((other) => other.path === path) === i &&
      !all.some((other) => path !== '' && other.path.startsWith(`${path}.`)),
  )
}

/** Members of an intersection or a union add no step to a key path. */
const isCombinator = (type: t.Decoder<unknown, unknown> | undefined): boolean =>
  ['IntersectionType', 'UnionType'].includes(type?.constructor.name ?? '')

const describeKind = (value: unknown): string => {
  if (value === undefined) return 'is missing'
  if (value === null) return 'is null'
  return Array.isArray(value) ? 'is an array' : `is ${typeof value === 'object' ? 'an' : 'a'} ${typeof value}`
}

const formatNames: Readonly<Record<string, string>> = { uri: 'a URL', 'date-time': 'a date, or a time with its zone' }

/** What a schema expects, in words. */
const describeExpectation = (codec: t.Any | undefined): string => {
  const {
    type,
    enum: choices,
    minimum,
    maximum,
    format,
    pattern,
    examples,
  } = codec === undefined ? {} : annotationsOf(codec)
  const range = [minimum === undefined ? '' : ` from ${minimum}`, maximum === undefined ? '' : ` to ${maximum}`].join(
    '',
  )
  const kind = Array.isArray(choices)
    ? `one of ${choices.join(', ')}`
    : `${formatNames[String(format)] ?? format ?? type ?? codec?.name ?? 'object'}${range}${pattern === undefined || format !== undefined ? '' : ` that matches ${pattern}`}`
  const example = Array.isArray(examples) && examples.length > 0 ? `, such as ${JSON.stringify(examples[0])}` : ''
  return `${kind}${example}`
}

/** Whether a double holds the number that a JSON text means: it does not become infinite, nor 0 unless it is. */
export const fitsDouble = (digits: string): boolean => {
  const value = Number(digits)
  return Number.isFinite(value) && (value !== 0 || !/^-?[\d.]*[1-9]/.test(digits))
}

const parseExactNumber = (digits: string): number | bigint | string => {
  const value = Number(digits)
  if (/^-?\d+$/.test(digits)) return Number.isSafeInteger(value) ? value : BigInt(digits)
  return fitsDouble(digits) ? value : digits
}

/** What every number has that is too small for a double: a long exponent, or many zeros. */
const mayUnderflow = /e-\d{3}|0{300}/i

/** Whether a value holds a number that may have been rounded. */
const hasRoundedNumber = (value: unknown): boolean => {
  if (typeof value === 'number') return value > Number.MAX_SAFE_INTEGER || value < Number.MIN_SAFE_INTEGER
  if (typeof value !== 'object' || value === null) return false
  if (Array.isArray(value)) return value.some(hasRoundedNumber)
  for (const name in value) if (hasRoundedNumber((value as Readonly<Record<string, unknown>>)[name])) return true
  return false
}

/** The last of a repeated key counts, as for the engine's own parser. */
const takeLast = ({ newValue }: { readonly newValue: unknown }): unknown => newValue

/**
 * A JSON text as a value whose integers beyond 2^53 are bigints; any other number that no double holds is its text, which is of
 * the wrong type where a number is expected. Throws if the text is not JSON.
 */
export const parseExactJson = (text: string): unknown => {
  const value: unknown = JSON.parse(text)
  // The exact parser is slower: it reads only texts in which the engine's own has rounded a number.
  return hasRoundedNumber(value) || mayUnderflow.test(text)
    ? parse(text, null, { parseNumber: parseExactNumber, onDuplicateKey: takeLast })
    : value
}

/** The inverse: bigints print as digits. */
export const printExactJson = (value: unknown): string => {
  try {
    return JSON.stringify(value) ?? 'null'
  } catch {
    // The engine's own printer is faster but knows no bigint.
    return stringify(value) ?? 'null'
  }
}

/** JSON text that is passed on unchanged, so that no integer in it is rounded. */
export class JsonText {
  constructor(readonly text: string) {}
}

export const printJsonText = (value: unknown): string =>
  value instanceof JsonText ? value.text : JSON.stringify(value)

/** Where a value stands in a line of JSON: its first byte, and the byte behind its last. */
export type JsonSpan = { readonly from: number; readonly to: number }

/** The members of an object: each name with the place of its value. */
export type JsonMembers = ReadonlyMap<string, JsonSpan>

/**
 * The members of the object that a line holds. Those of its member `inside` stand beside them as `inside.name`, so that a long
 * line is read once. What stands in a value is not read: it may be no JSON. Undefined if the line holds no whole object.
 */
export const readObjectMembers = (line: Buffer, inside: string): JsonMembers | undefined => readMembers(line, 0, inside)

/** The members of the object at a place; undefined if there is none. */
export const readMembersAt = (line: Buffer, span: JsonSpan | undefined): JsonMembers | undefined =>
  span === undefined ? undefined : readMembers(line, span.from, undefined)

const readMembers = (line: Buffer, at: number, inside: string | undefined): JsonMembers | undefined => {
  const scanner = createScanner(line)
  const members = new Map<string, JsonSpan>()
  try {
    addMembers(scanner, skipSpace(scanner, at), members, '', inside)
    return members
  } catch (error) {
    if (error instanceof JsonSyntaxError) return undefined
    throw error
  }
}

/** Adds the members of the object at `open` and answers the position after it. */
const addMembers = (
  scanner: JsonScanner,
  open: number,
  members: Map<string, JsonSpan>,
  prefix: string,
  inside?: string,
): number => {
  const { bytes } = scanner
  if (bytes[open] !== OPEN_OBJECT) throw new JsonSyntaxError('no object')
  let key = firstMember(scanner, open)
  while (bytes[key] === QUOTE) {
    const keyEnd = skipString(scanner, key + 1)
    const name = decodeString(scanner, key, keyEnd)
    const from = skipColon(scanner, keyEnd)
    const to =
      name === inside && bytes[from] === OPEN_OBJECT
        ? addMembers(scanner, from, members, `${name}.`)
        : findValueEnd(scanner, from)
    if (to <= from) throw new JsonSyntaxError('no value')
    members.set(prefix + name, { from, to })
    key = nextMember(scanner, to)
  }
  return key + 1
}

/**
 * The end of a value that may be anything between brackets, for readers that leave its inside to others: brackets are counted,
 * not matched, and literals are not read. -1 if it has no end.
 */
export const findValueEnd = (scanner: JsonScanner, at: number): number => {
  const { bytes } = scanner
  let depth = 0
  let p = at
  while (p < bytes.length) {
    const byte = bytes[p]
    if (byte === QUOTE) {
      p = findStringEnd(scanner, p + 1)
      if (p < 0 || depth === 0) return p
      continue
    }
    if (byte === OPEN_OBJECT || byte === OPEN_ARRAY) depth += 1
    else if (byte === CLOSE_OBJECT || byte === CLOSE_ARRAY) {
      if (depth === 0) return p
      depth -= 1
      if (depth === 0) return p + 1
    } else if (depth === 0 && (byte === COMMA || isBlank(byte))) return p
    p += 1
  }
  return depth === 0 ? p : -1
}

/** As `skipString`, whatever stands in it; -1 if it has no end. */
const findStringEnd = (scanner: JsonScanner, at: number): number => {
  const { bytes } = scanner
  let p = findSpecialByte(scanner, at)
  while (p < bytes.length) {
    if (bytes[p] === QUOTE) return p + 1
    p = findSpecialByte(scanner, bytes[p] === BACKSLASH ? p + 2 : p + 1)
  }
  return -1
}

const isBlank = (byte: number | undefined): boolean => byte === 0x20 || byte === 0x09 || byte === 0x0a || byte === 0x0d

/** The string at a place; undefined if something else stands there. */
export const stringAt = (line: Buffer, span: JsonSpan | undefined): string | undefined => {
  if (span === undefined || line[span.from] !== QUOTE) return undefined
  const inside = line.toString('utf8', span.from + 1, span.to - 1)
  const text = inside.includes('\\') ? valueAt(line, span) : inside
  return typeof text === 'string' ? text : undefined
}

/** The number at a place; NaN if something else stands there. */
export const numberAt = (line: Buffer, span: JsonSpan | undefined): number =>
  span === undefined ? Number.NaN : Number(line.toString('utf8', span.from, span.to))

/** The value at a place, integers beyond 2^53 rounded; undefined if it is not JSON. */
export const valueAt = (line: Buffer, span: JsonSpan | undefined): unknown => {
  try {
    return span === undefined ? undefined : JSON.parse(line.toString('utf8', span.from, span.to))
  } catch {
    return undefined
  }
}
