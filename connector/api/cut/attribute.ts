import { type Attribute, createAttribute, createShape, type Shape, shapePathOf } from './shape'
import { BACKSLASH, decodeString } from './token'
import type { CutState } from './walk'

/** The attribute whose key stands at `at`, if it is one of those that came next in the objects before. */
export const guessAttribute = (walk: CutState, at: number, expected: Attribute | undefined): Attribute | undefined => {
  let candidate = expected
  for (let i = 0; i < 4 && candidate !== undefined; i++) {
    if (matchesKey(walk, at, candidate)) return candidate
    candidate = candidate.expectedNext
  }
  return undefined
}

const matchesKey = ({ bytes, view }: CutState, at: number, { keyBytes, keyWords, lastKeyWord }: Attribute): boolean => {
  const end = at + keyBytes.length
  if (end > bytes.length) return false
  for (let i = 0; i < keyWords.length; i++) if (view.getInt32(at + i * 4, true) !== keyWords[i]) return false
  return view.getInt32(end - 4, true) === lastKeyWord
}

/** Undeclared attributes are forgotten beyond this many, lest names that never end fill the memory. */
const maxUndeclaredAttributes = 500

/** The attribute whose key stands between `from` and `to`, remembered as the one that follows `previous`. */
export const findAttribute = (
  walk: CutState,
  shape: Shape,
  previous: Attribute | undefined,
  from: number,
  to: number,
): Attribute => {
  const name = decodeString(walk, from, to)
  const attribute = shape.attributes.get(name) ?? addUndeclared(walk, shape, name)
  // A guess compares bytes as they come, four at a time: it is no use for a key with escapes or of a letter.
  if (attribute.keyBytes.length < 4 || attribute.keyBytes.includes(BACKSLASH)) return attribute
  if (previous === undefined) shape.expectedFirst = attribute
  else previous.expectedNext = attribute
  return attribute
}

const addUndeclared = (walk: CutState, shape: Shape, name: string): Attribute => {
  if (shape.attributes.size >= maxUndeclaredAttributes) removeUndeclared(walk, shape)
  const own = createShape(name, shape)
  const unwanted = walk.undeclared === 'keep' ? 'collect' : 'drop'
  const attribute = createAttribute(own, {
    undeclaredPath: `${walk.list}.${shapePathOf(own)}`,
    action: shape.parent === undefined ? unwanted : undefined,
  })
  shape.attributes.set(name, attribute)
  return attribute
}

const removeUndeclared = (walk: CutState, shape: Shape): void => {
  // Whether this object repeats one of them is then not known: its record is printed anew.
  walk.hasDuplicateKeys = true
  shape.expectedFirst = undefined
  for (const [name, attribute] of shape.attributes) {
    attribute.expectedNext = undefined
    if (attribute.undeclaredPath !== undefined) shape.attributes.delete(name)
  }
}
