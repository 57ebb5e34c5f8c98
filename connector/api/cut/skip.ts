import {
  CLOSE_ARRAY,
  CLOSE_OBJECT,
  COMMA,
  colon,
  number,
  OPEN_ARRAY,
  OPEN_OBJECT,
  QUOTE,
  space,
  string,
  word,
} from './token'
import { broken, refuse, type Walk } from './walk'

/** Deeper than any answer of the service, shallower than any reader's stack behind us. */
export const maxDepth = 500

/** The position after any value; a key that one of its objects may repeat goes into `walk.repeated`. */
export const skip = (walk: Walk, at: number, depth: number): number => {
  switch (walk.bytes[at]) {
    case QUOTE:
      return string(walk, at + 1)
    case OPEN_OBJECT:
      return skipObject(walk, at + 1, deeper(depth))
    case OPEN_ARRAY:
      return skipArray(walk, at + 1, deeper(depth))
    case 0x66:
    case 0x6e:
    case 0x74:
      return word(walk, at)
    default:
      return number(walk, at)
  }
}

const deeper = (depth: number): number => {
  if (depth >= maxDepth) throw refuse('$', `nested more than ${maxDepth} levels deep`)
  return depth + 1
}

const skipArray = (walk: Walk, at: number, depth: number): number => {
  let p = space(walk, at)
  if (walk.bytes[p] === CLOSE_ARRAY) return p + 1
  for (;;) {
    p = space(walk, skip(walk, p, depth))
    const byte = walk.bytes[p]
    if (byte === CLOSE_ARRAY) return p + 1
    if (byte !== COMMA) throw broken(walk, p)
    p = space(walk, p + 1)
  }
}

const skipObject = (walk: Walk, at: number, depth: number): number => {
  let p = space(walk, at)
  if (walk.bytes[p] === CLOSE_OBJECT) return p + 1
  const keys = new Set<string>()
  for (let count = 1; ; count++) {
    if (walk.bytes[p] !== QUOTE) throw broken(walk, p)
    const end = string(walk, p + 1)
    const key = walk.bytes.toString('latin1', p, end)
    // A key with an escape may be any other; where there is one the record is printed anew.
    if (keys.add(key).size < count || key.includes('\\')) walk.repeated = true
    p = space(walk, skip(walk, colon(walk, end), depth))
    const byte = walk.bytes[p]
    if (byte === CLOSE_OBJECT) return p + 1
    if (byte !== COMMA) throw broken(walk, p)
    p = space(walk, p + 1)
  }
}
