/** Where a value stands in a line of JSON, from its first byte to behind its last. */
export type JsonSpan = { readonly start: number; readonly end: number }

const quote = 0x22
const backslash = 0x5c
const comma = 0x2c
const colon = 0x3a
const openBrace = 0x7b
const closeBrace = 0x7d
const openBracket = 0x5b
const closeBracket = 0x5d

const isBlank = (byte: number | undefined): boolean => byte === 0x20 || byte === 0x09 || byte === 0x0a || byte === 0x0d

const skipSpace = (line: Buffer, from: number): number => {
  let at = from
  while (isBlank(line[at])) at += 1
  return at
}

/** Behind the string that starts at `from`; -1 if it has no end. */
const skipString = (line: Buffer, from: number): number => {
  for (let at = from + 1; at < line.length; at += 1) {
    const byte = line[at]
    if (byte === quote) return at + 1
    if (byte === backslash) at += 1
  }
  return -1
}

/** Behind the value that starts at `from`; -1 if it has no end. Brackets are counted, not matched: DuckDB reads what is inside. */
const skipValue = (line: Buffer, from: number): number => {
  let depth = 0
  let at = from
  while (at < line.length) {
    const byte = line[at]
    if (byte === quote) {
      at = skipString(line, at)
      if (at < 0 || depth === 0) return at
      continue
    }
    if (byte === openBrace || byte === openBracket) depth += 1
    else if (byte === closeBrace || byte === closeBracket) {
      if (depth === 0) return at
      depth -= 1
      if (depth === 0) return at + 1
    } else if (depth === 0 && (byte === comma || isBlank(byte))) return at
    at += 1
  }
  return depth === 0 ? at : -1
}

/**
 * The members of the object that a line is, each name with the place of its value. Those of the member `inside` stand beside
 * them as `inside.name`, so that a long line is walked once. Undefined if the line is no whole object.
 */
export const readObjectMembers = (line: Buffer, inside: string): ReadonlyMap<string, JsonSpan> | undefined => {
  const members = new Map<string, JsonSpan>()
  return readObject(line, skipSpace(line, 0), members, '', inside) < 0 ? undefined : members
}

/** The members of the object at a place; undefined if there is none. */
export const readMembersAt = (line: Buffer, span: JsonSpan | undefined): ReadonlyMap<string, JsonSpan> | undefined => {
  const members = new Map<string, JsonSpan>()
  return span === undefined || readObject(line, span.start, members, '') < 0 ? undefined : members
}

/** Behind the object that starts at `from`; -1 if there is none, or not all of it. */
const readObject = (
  line: Buffer,
  from: number,
  members: Map<string, JsonSpan>,
  prefix: string,
  inside?: string,
): number => {
  if (line[from] !== openBrace) return -1
  let at = skipSpace(line, from + 1)
  if (line[at] === closeBrace) return at + 1
  while (line[at] === quote) {
    const nameEnd = skipString(line, at)
    const name = nameEnd < 0 ? undefined : stringAt(line, { start: at, end: nameEnd })
    const separator = skipSpace(line, nameEnd)
    if (name === undefined || line[separator] !== colon) return -1
    const start = skipSpace(line, separator + 1)
    const end =
      name === inside && line[start] === openBrace
        ? readObject(line, start, members, `${name}.`)
        : skipValue(line, start)
    if (end <= start) return -1
    members.set(prefix + name, { start, end })
    at = skipSpace(line, end)
    if (line[at] === closeBrace) return at + 1
    if (line[at] !== comma) return -1
    at = skipSpace(line, at + 1)
  }
  return -1
}

/** The string at a place; undefined if something else stands there. */
export const stringAt = (line: Buffer, span: JsonSpan | undefined): string | undefined => {
  if (span === undefined || line[span.start] !== quote) return undefined
  const inside = line.toString('utf8', span.start + 1, span.end - 1)
  const text = inside.includes('\\') ? valueAt(line, span) : inside
  return typeof text === 'string' ? text : undefined
}

/** The number at a place; NaN if something else stands there. */
export const numberAt = (line: Buffer, span: JsonSpan | undefined): number =>
  span === undefined ? Number.NaN : Number(line.toString('utf8', span.start, span.end))

/** The value at a place, integers rounded to 2^53; undefined if it is not JSON. */
export const valueAt = (line: Buffer, span: JsonSpan | undefined): unknown => {
  try {
    return span === undefined ? undefined : JSON.parse(line.toString('utf8', span.start, span.end))
  } catch {
    return undefined
  }
}
