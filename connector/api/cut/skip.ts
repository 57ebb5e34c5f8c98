import {
  CLOSE_ARRAY,
  CLOSE_OBJECT,
  COMMA,
  OPEN_ARRAY,
  OPEN_OBJECT,
  QUOTE,
  skipColon,
  skipLiteral,
  skipNumber,
  skipSpace,
  skipString,
} from './token'
import { type CutState, createCutError, createSyntaxError } from './walk'

/** Deeper than any answer of the service, shallower than any reader's stack behind us. */
export const maxJsonDepth = 500

/** The position after any value; a key that one of its objects may repeat goes into `walk.repeated`. */
export const skipValue = (walk: CutState, at: number, depth: number): number => {
  switch (walk.bytes[at]) {
    case QUOTE:
      return skipString(walk, at + 1)
    case OPEN_OBJECT:
      return skipObject(walk, at + 1, nextDepth(depth))
    case OPEN_ARRAY:
      return skipArray(walk, at + 1, nextDepth(depth))
    case 0x66:
    case 0x6e:
    case 0x74:
      return skipLiteral(walk, at)
    default:
      return skipNumber(walk, at)
  }
}

const nextDepth = (depth: number): number => {
  if (depth >= maxJsonDepth) throw createCutError('$', `nested more than ${maxJsonDepth} levels deep`)
  return depth + 1
}

const skipArray = (walk: CutState, at: number, depth: number): number => {
  let p = skipSpace(walk, at)
  if (walk.bytes[p] === CLOSE_ARRAY) return p + 1
  for (;;) {
    p = skipSpace(walk, skipValue(walk, p, depth))
    const byte = walk.bytes[p]
    if (byte === CLOSE_ARRAY) return p + 1
    if (byte !== COMMA) throw createSyntaxError(walk, p)
    p = skipSpace(walk, p + 1)
  }
}

const skipObject = (walk: CutState, at: number, depth: number): number => {
  let p = skipSpace(walk, at)
  if (walk.bytes[p] === CLOSE_OBJECT) return p + 1
  const keys = new Set<string>()
  for (let count = 1; ; count++) {
    if (walk.bytes[p] !== QUOTE) throw createSyntaxError(walk, p)
    const end = skipString(walk, p + 1)
    const key = walk.bytes.toString('latin1', p, end)
    // A key with an escape may be any other; where there is one the record is printed anew.
    if (keys.add(key).size < count || key.includes('\\')) walk.hasDuplicateKeys = true
    p = skipSpace(walk, skipValue(walk, skipColon(walk, end), depth))
    const byte = walk.bytes[p]
    if (byte === CLOSE_OBJECT) return p + 1
    if (byte !== COMMA) throw createSyntaxError(walk, p)
    p = skipSpace(walk, p + 1)
  }
}
