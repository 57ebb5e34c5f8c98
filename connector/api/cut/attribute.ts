import { type Attribute, attributeOf, pathOf, place, type Shape } from './shape'
import { BACKSLASH, textOf } from './token'
import type { Walk } from './walk'

/** The attribute whose key stands at `at`, if it is one of those that came next in the objects before. */
export const guess = (walk: Walk, at: number, expected: Attribute | undefined): Attribute | undefined => {
  let candidate = expected
  for (let i = 0; i < 4 && candidate !== undefined; i++) {
    if (stands(walk, at, candidate)) return candidate
    candidate = candidate.next
  }
  return undefined
}

const stands = ({ bytes, view }: Walk, at: number, { token, words, lastWord }: Attribute): boolean => {
  const end = at + token.length
  if (end > bytes.length) return false
  for (let i = 0; i < words.length; i++) if (view.getInt32(at + i * 4, true) !== words[i]) return false
  return view.getInt32(end - 4, true) === lastWord
}

/** Undeclared attributes are forgotten beyond this many, lest names that never end fill the memory. */
const maxAttributes = 500

/** The attribute whose key stands between `from` and `to`, remembered as the one that follows `previous`. */
export const find = (
  walk: Walk,
  shape: Shape,
  previous: Attribute | undefined,
  from: number,
  to: number,
): Attribute => {
  const name = textOf(walk, from, to)
  const attribute = shape.attributes.get(name) ?? learn(walk, shape, name)
  // A guess compares bytes as they come, four at a time: it is no use for a key with escapes or of a letter.
  if (attribute.token.length < 4 || attribute.token.includes(BACKSLASH)) return attribute
  if (previous === undefined) shape.first = attribute
  else previous.next = attribute
  return attribute
}

const learn = (walk: Walk, shape: Shape, name: string): Attribute => {
  if (shape.attributes.size >= maxAttributes) forget(walk, shape)
  const own = place(name, shape)
  const unwanted = walk.undeclared === 'keep' ? 'collect' : 'drop'
  const attribute = attributeOf(own, {
    undeclared: `${walk.list}.${pathOf(own)}`,
    action: shape.parent === undefined ? unwanted : undefined,
  })
  shape.attributes.set(name, attribute)
  return attribute
}

const forget = (walk: Walk, shape: Shape): void => {
  // Whether this object repeats one of them is then not known: its record is printed anew.
  walk.repeated = true
  shape.first = undefined
  for (const [name, attribute] of shape.attributes) {
    attribute.next = undefined
    if (attribute.undeclared !== undefined) shape.attributes.delete(name)
  }
}
