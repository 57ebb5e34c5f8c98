import {
  addEdit,
  CutError,
  type CutState,
  createCutError,
  createSyntaxError,
  recordPathOf,
  removeEdits,
  renderSpan,
  replaceSpan,
} from './edit'
import { endFieldOffset, startFieldOffset } from './offsets'
import { readCursor, readDouble, readInstant, readInteger, readPrimaryKey, rejectValue, startsNumber } from './scalars'
import { type Attribute, createAttribute, createShape, type Shape, shapePathOf } from './shape'
import {
  BACKSLASH,
  CLOSE_ARRAY,
  CLOSE_OBJECT,
  COMMA,
  decodeString,
  OPEN_ARRAY,
  OPEN_OBJECT,
  QUOTE,
  skipColon,
  skipLiteral,
  skipSpace,
  skipString,
  skipValue,
} from './tokens'

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

/** The position after a declared value. One of the wrong type leaves as null, or makes what holds it wrong (`walk.wrong`). */
const readValue = (walk: CutState, shape: Shape, at: number): number => {
  const byte = walk.bytes[at]
  switch (shape.kind) {
    case 'string':
      if (byte === QUOTE) return skipString(walk, at + 1)
      break
    case 'object':
    case 'array':
      if (byte === (shape.kind === 'array' ? OPEN_ARRAY : OPEN_OBJECT)) return readContainer(walk, shape, at)
      break
    case 'integer':
      if (startsNumber(byte)) return readInteger(walk, shape, at)
      break
    case 'number':
      if (startsNumber(byte)) return readDouble(walk, shape, at)
      break
    case 'instant':
      if (byte === QUOTE) return readInstant(walk, shape, at)
      break
    case 'boolean':
      if (byte === 0x74 || byte === 0x66) return skipLiteral(walk, at)
      break
    case 'free':
      if (byte === OPEN_OBJECT) return skipValue(walk, at, 0)
      break
    case 'any':
      return skipValue(walk, at, 0)
    case 'key':
      return readPrimaryKey(walk, shape, at)
    case 'cursor':
      return readCursor(walk, shape, at)
  }
  const edits = walk.edits.length
  const end = skipValue(walk, at, 0)
  return byte === 0x6e && shape.nullable ? end : rejectValue(walk, shape, at, end, edits, walk.changes.length)
}

const readContainer = (walk: CutState, shape: Shape, at: number): number => {
  const edits = walk.edits.length
  const changes = walk.changes.length
  const end =
    shape.element === undefined ? readObject(walk, shape, at + 1) : readArray(walk, shape, shape.element, at + 1)
  return walk.isInvalid ? rejectValue(walk, shape, at, end, edits, changes) : end
}

const readArray = (walk: CutState, shape: Shape, element: Shape, open: number): number => {
  const { bytes } = walk
  let bad = false
  let p = skipSpace(walk, open)
  if (bytes[p] === CLOSE_ARRAY) return p + 1
  for (shape.elementIndex = 0; ; shape.elementIndex++) {
    const note = startFieldOffset(walk, element, p + walk.outputShift, p)
    p = readValue(walk, element, p)
    endFieldOffset(walk, note, p)
    p = skipSpace(walk, p)
    bad ||= walk.isInvalid
    walk.isInvalid = false
    if (bytes[p] === CLOSE_ARRAY) break
    if (bytes[p] !== COMMA) throw createSyntaxError(walk, p)
    p = skipSpace(walk, p + 1)
  }
  walk.isInvalid = bad
  return p + 1
}

/** The position after an object whose members start at `open`: each checked, those that are not to leave cut out. */
export const readObject = (walk: CutState, shape: Shape, open: number): number => {
  const { bytes } = walk
  const serial = (walk.objectSerial + 1) | 0
  walk.objectSerial = serial
  let previous: Attribute | undefined
  let bad = false
  // A member cut out takes the comma before it along, or, while none has stayed, the one after it.
  let stayed = false
  let pending = false
  let before = open
  let p = skipSpace(walk, open)
  for (let more = bytes[p] !== CLOSE_OBJECT; more; ) {
    const from = p
    const edits = walk.edits.length
    if (bytes[p] !== QUOTE) throw createSyntaxError(walk, p)
    let attribute = guessAttribute(walk, p, previous === undefined ? shape.expectedFirst : previous.expectedNext)
    if (attribute !== undefined) p += attribute.keyBytes.length
    else {
      p = skipString(walk, p + 1)
      attribute = findAttribute(walk, shape, previous, from, p)
    }
    if (attribute.presence.seen === serial) markDuplicateKey(walk, attribute.shape)
    attribute.presence.seen = serial
    if (attribute.undeclaredPath !== undefined) reportUndeclared(walk, attribute.undeclaredPath)
    previous = attribute
    const { action } = attribute
    const start = skipColon(walk, p)
    if (action === 'drop' || action === 'collect') {
      p = skipValue(walk, start, 0)
      if (action === 'collect') walk.collectedMembers.push(renderSpan(walk, from, p, edits).toString('latin1'))
      removeEdits(walk, edits)
      if (stayed) addEdit(walk, before, p, '')
      else pending = true
    } else {
      if (pending) addEdit(walk, open, from, '', edits)
      pending = false
      stayed = true
      const leaving = from + walk.outputShift
      if (attribute.outputKey !== undefined) replaceSpan(walk, from, p, attribute.outputKey, edits)
      const inner = walk.edits.length
      const note = startFieldOffset(walk, attribute.shape, leaving, start)
      p = readValue(walk, attribute.shape, start)
      if (walk.isInvalid) {
        if (shape.parent === undefined)
          throw createCutError(`${recordPathOf(walk)}.${attribute.shape.name}`, 'of the wrong type')
        bad = true
        walk.isInvalid = false
      } else if (action !== undefined) hashValue(walk, action, start, p, inner)
      endFieldOffset(walk, note, p)
    }
    before = p
    p = skipSpace(walk, p)
    more = bytes[p] === COMMA
    if (more) p = skipSpace(walk, p + 1)
    else if (bytes[p] !== CLOSE_OBJECT) throw createSyntaxError(walk, p)
  }
  if (pending) addEdit(walk, open, p, '')
  walk.isInvalid = bad || isMissingRequired(walk, shape, serial)
  return p + 1
}

const reportUndeclared = (walk: CutState, path: string): void => {
  if (walk.undeclared === 'fail') {
    const remedy = 'set on_unknown_attribute to keep or drop'
    throw new CutError({ _tag: 'Decode', path, message: 'an attribute that is not declared', remedy })
  }
  walk.undeclaredPaths.add(path)
}

const markDuplicateKey = (walk: CutState, shape: Shape): void => {
  if (shape.kind === 'key' || shape.kind === 'cursor')
    throw createCutError(`${recordPathOf(walk)}.${shape.name}`, 'there twice')
  walk.hasDuplicateKeys = true
}

const isMissingRequired = (walk: CutState, shape: Shape, serial: number): boolean => {
  const missing = shape.required.find(({ presence }) => presence.seen !== serial)
  if (missing === undefined) return false
  if (shape.parent === undefined) throw createCutError(`${recordPathOf(walk)}.${missing.shape.name}`, 'missing')
  return true
}

/** A value leaves as its hash; null, or one that was nulled, says nothing and stays. */
const hashValue = (walk: CutState, action: (text: string) => string, from: number, to: number, edits: number): void => {
  const last = walk.edits[walk.edits.length - 1]
  if (walk.bytes[from] === 0x6e || (last?.from === from && last.to === to && last.text === 'null')) return
  const text = walk.bytes[from] === QUOTE ? decodeString(walk, from, to) : walk.bytes.toString('utf8', from, to)
  replaceSpan(walk, from, to, Buffer.from(JSON.stringify(action(text))).toString('latin1'), edits)
}
