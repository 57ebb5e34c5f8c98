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

/** The place of a value in a line of JSON: its first byte, and the byte after its last. */
export type JsonSpan = { readonly from: number; readonly to: number }

/** The members of an object: each name with the place of its value. */
type JsonMembers = ReadonlyMap<string, JsonSpan>

/**
 * The members of the object in a line, read in one pass. Those of its member `inside` are added as `inside.name`.
 * Values are not parsed and may be invalid JSON. Undefined if the line does not hold a whole object.
 */
export const readObjectMembers = (line: Buffer, inside: string): JsonMembers | undefined => readMembers(line, 0, inside)

/** The members of the object at a place; undefined if there is no object. */
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

/** Adds the members of the object at `open` and returns the position after it. */
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
 * The end of a value, without checking what is inside it: brackets are counted but not matched, and literals are not
 * read. -1 if the value has no end.
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

/** Like `skipString`, but accepts any content. -1 if the string has no end. */
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

/** The string at a place; undefined for any other value. */
export const stringAt = (line: Buffer, span: JsonSpan | undefined): string | undefined => {
  if (span === undefined || line[span.from] !== QUOTE) return undefined
  const inside = line.toString('utf8', span.from + 1, span.to - 1)
  const text = inside.includes('\\') ? valueAt(line, span) : inside
  return typeof text === 'string' ? text : undefined
}

/** The number at a place; NaN for any other value. */
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
