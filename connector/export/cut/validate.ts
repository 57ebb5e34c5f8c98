import { maskAttributeName } from '../../api'
import {
  BACKSLASH,
  CLOSE_ARRAY,
  decodeString,
  firstElement,
  firstMember,
  type JsonScanner,
  nextElement,
  nextMember,
  OPEN_ARRAY,
  OPEN_OBJECT,
  QUOTE,
  skipColon,
  skipLiteral,
  skipString,
  skipValue,
  startsNumber,
} from '../../cdk/json/scanner'
import {
  CutError,
  type CutState,
  createCutError,
  createKey,
  createPlace,
  type KeyState,
  type PlaceState,
  placeOf,
  recordPathOf,
  reportReplacement,
} from './cut-state'
import { isEditedFrom, noRun, removeEdits, removeLastRun, removeRun, renderSpan, replaceSpan, startRun } from './edit'
import { endFieldOffset, startFieldOffset } from './offsets'
import { readCursor, readDouble, readInstant, readInteger, readPrimaryKey, rejectValue, type ValueEnd } from './scalars'
import { type Attribute, createAttribute, createUndeclaredShape, type Shape, shapePathOf } from './shape'

/** Reads an object: checks each member and removes those that are not to be sent. */
export const readObject = (state: CutState, shape: Shape, open: number): ValueEnd => {
  const { scanner, edits, table } = state
  const { bytes } = scanner
  const place = placeOf(state, shape)
  table.objectCount += 1
  const object = table.objectCount
  let isInvalid = false
  let previous: KeyState | undefined
  let run = noRun
  let keptEnd = -1
  let end = open + 1
  let key = firstMember(scanner, open)
  while (bytes[key] === QUOTE) {
    let keyEnd: number
    let known = guessKey(scanner, key, previous === undefined ? place.expectedFirst : previous.expectedNext)
    if (known !== undefined) keyEnd = key + known.keyBytes.length
    else {
      keyEnd = skipString(scanner, key + 1)
      known = findKey(state, place, previous, key, keyEnd)
    }
    previous = known
    if (known.place.lastObject === object) markDuplicateKey(state, known.shape)
    known.place.lastObject = object
    if (known.undeclaredPath !== undefined) reportUndeclared(state, known.undeclaredPath)
    const start = skipColon(scanner, keyEnd)
    if (known.action === 'drop' || known.action === 'collect') {
      end = skipValue(scanner, start)
      if (known.action === 'collect') collectMember(state, key, end)
      removeEdits(edits, key)
      run = startRun(run, open, keptEnd, key)
    } else {
      if (run !== noRun) {
        removeEdits(edits, key)
        removeRun(edits, run, key)
        run = noRun
        // Edits inside the key come after the edit of the run.
        skipString(scanner, key + 1)
      }
      if (known.undeclaredPath !== undefined) keepText(state, known.shape, key, keyEnd)
      end = known.isPlain ? readValue(state, known.shape, start) : readMember(state, known, key, keyEnd, start)
      if (end < 0) {
        end = ~end
        isInvalid = true
        if (shape.parent === undefined)
          throw createCutError(`${recordPathOf(state)}.${known.shape.name}`, 'of the wrong type')
      }
      keptEnd = end
    }
    key = nextMember(scanner, end)
  }
  if (run !== noRun) removeLastRun(edits, run, keptEnd, end, key)
  if (shape.required.length > 0 && isMissingRequired(state, shape, object)) isInvalid = true
  return isInvalid ? ~(key + 1) : key + 1
}

/** Reads a member that is sent under another key, with its offsets recorded, or as a hash. */
const readMember = (state: CutState, known: KeyState, key: number, keyEnd: number, start: number): ValueEnd => {
  const { edits, offsets } = state
  const { shape, action, outputKey } = known
  const keyOffset = key + edits.shift
  if (outputKey !== undefined) replaceSpan(edits, offsets, key, keyEnd, outputKey)
  const entry = startFieldOffset(offsets, shape.fieldIndex, keyOffset, start + edits.shift)
  const end = readValue(state, shape, start)
  if (end < 0) return end
  if (typeof action === 'function') hashValue(state, action, start, end)
  endFieldOffset(offsets, entry, end + edits.shift)
  return end
}

/** Reads a declared value. One of the wrong type becomes null, or makes its parent invalid. */
const readValue = (state: CutState, shape: Shape, at: number): ValueEnd => {
  const { scanner } = state
  const byte = scanner.bytes[at]
  switch (shape.kind) {
    case 'string':
      if (byte === QUOTE) return keepText(state, shape, at, skipString(scanner, at + 1))
      break
    case 'object':
    case 'array':
      if (byte === (shape.kind === 'array' ? OPEN_ARRAY : OPEN_OBJECT)) return readContainer(state, shape, at)
      break
    case 'integer':
      if (startsNumber(byte)) return readInteger(state, shape, at)
      break
    case 'number':
      if (startsNumber(byte)) return readDouble(state, shape, at)
      break
    case 'instant':
      if (byte === QUOTE) return readInstant(state, shape, at)
      break
    case 'boolean':
      if (byte === 0x74 || byte === 0x66) return skipLiteral(scanner, at)
      break
    case 'free':
      if (byte === OPEN_OBJECT) return keepText(state, shape, at, skipValue(scanner, at))
      break
    case 'any':
      return keepText(state, shape, at, skipValue(scanner, at))
    case 'key':
      return readPrimaryKey(state, shape, at)
    case 'cursor':
      return readCursor(state, shape, at)
  }
  const end = skipValue(scanner, at)
  return byte === 0x6e && shape.nullable ? end : rejectValue(state, shape, at, end, state.draft.changes.length)
}

/** The end of a value that is sent unchanged. Reports a replaced character inside it. */
const keepText = (state: CutState, shape: Shape, from: number, end: number): number => {
  if (isEditedFrom(state.edits, from)) reportReplacement(state, shape)
  return end
}

const readContainer = (state: CutState, shape: Shape, at: number): ValueEnd => {
  const firstChange = state.draft.changes.length
  const { element } = shape
  const answer = element === undefined ? readObject(state, shape, at) : readArray(state, shape, element, at)
  return answer < 0 ? rejectValue(state, shape, at, ~answer, firstChange) : answer
}

const readArray = (state: CutState, shape: Shape, element: Shape, open: number): ValueEnd => {
  const { scanner, edits, offsets } = state
  const place = placeOf(state, shape)
  let isInvalid = false
  let p = firstElement(scanner, open)
  for (let index = 0; scanner.bytes[p] !== CLOSE_ARRAY; index++) {
    place.elementIndex = index
    const entry = startFieldOffset(offsets, element.fieldIndex, p + edits.shift, p + edits.shift)
    let end = readValue(state, element, p)
    if (end < 0) {
      end = ~end
      isInvalid = true
    }
    endFieldOffset(offsets, entry, end + edits.shift)
    p = nextElement(scanner, end)
  }
  return isInvalid ? ~(p + 1) : p + 1
}

/** The first of a few expected keys whose bytes stand at `at`. */
const guessKey = (scanner: JsonScanner, at: number, expected: KeyState | undefined): KeyState | undefined => {
  let candidate = expected
  for (let i = 0; i < 4 && candidate !== undefined; i++) {
    if (matchesKey(scanner, at, candidate)) return candidate
    candidate = candidate.expectedNext
  }
  return undefined
}

const matchesKey = (
  { bytes, view }: JsonScanner,
  at: number,
  { keyBytes, keyWords, lastKeyWord }: Attribute,
): boolean => {
  const end = at + keyBytes.length
  if (end > bytes.length) return false
  for (let i = 0; i < keyWords.length; i++) if (view.getInt32(at + i * 4, true) !== keyWords[i]) return false
  return view.getInt32(end - 4, true) === lastKeyWord
}

/** The most keys remembered for a place, so that endless new names do not fill the memory. */
const maxKeys = 500

/** The key between `from` and `to`, remembered as the one that follows `previous`. */
const findKey = (
  state: CutState,
  place: PlaceState,
  previous: KeyState | undefined,
  from: number,
  to: number,
): KeyState => {
  const name = decodeString(state.scanner, from, to)
  const key = place.keys.get(name) ?? addKey(state, place, name)
  const { keyBytes } = key
  // A guess compares four bytes at a time as received, so it does not work for keys with escapes or of a single letter.
  if (keyBytes.length < 4 || keyBytes.includes(BACKSLASH)) return key
  if (previous === undefined) place.expectedFirst = key
  else previous.expectedNext = key
  return key
}

const addKey = (state: CutState, place: PlaceState, name: string): KeyState => {
  if (place.keys.size >= maxKeys) {
    // It is then unknown if this object repeats an undeclared key, so its record is printed again.
    state.draft.hasDuplicateKeys = true
    place.keys.clear()
    place.expectedFirst = undefined
  }
  const declared = place.shape.attributes.get(name)
  const key =
    declared === undefined
      ? createUndeclaredKey(state, place.shape, name)
      : createKey(declared, placeOf(state, declared.shape), undefined)
  place.keys.set(name, key)
  return key
}

const createUndeclaredKey = ({ options }: CutState, parent: Shape, name: string): KeyState => {
  const shape = createUndeclaredShape(name, parent)
  const topLevelAction = options.undeclared === 'keep' ? 'collect' : 'drop'
  const attribute = createAttribute(shape, parent.parent === undefined ? topLevelAction : undefined)
  const place = [options.list, shapePathOf(parent), maskAttributeName(name)].filter((step) => step !== '')
  return createKey(attribute, createPlace(shape), place.join('.'))
}

const reportUndeclared = ({ options, undeclaredPaths }: CutState, path: string): void => {
  if (options.undeclared === 'fail') {
    const remedy = 'set on_unknown_attribute to keep or drop'
    throw new CutError({ _tag: 'Decode', path, message: 'an attribute that is not declared', remedy })
  }
  undeclaredPaths.add(path)
}

const collectMember = ({ draft, edits, scanner }: CutState, key: number, end: number): void => {
  if (isEditedFrom(edits, key)) draft.hasCollectedReplacement = true
  draft.collectedMembers.push(renderSpan(edits, scanner.bytes, key, end).toString('latin1'))
}

const markDuplicateKey = (state: CutState, shape: Shape): void => {
  if (shape.kind === 'key' || shape.kind === 'cursor')
    throw createCutError(`${recordPathOf(state)}.${shape.name}`, 'there twice')
  state.draft.hasDuplicateKeys = true
}

const isMissingRequired = (state: CutState, shape: Shape, object: number): boolean => {
  for (const attribute of shape.required)
    if (placeOf(state, attribute.shape).lastObject !== object) {
      if (shape.parent === undefined) throw createCutError(`${recordPathOf(state)}.${attribute.shape.name}`, 'missing')
      return true
    }
  return false
}

/** Sends a value as its hash; null, or a value that is sent as null, stays null. */
const hashValue = (
  { scanner, edits, offsets }: CutState,
  action: (text: string) => string,
  from: number,
  to: number,
): void => {
  const { bytes } = scanner
  const last = edits.length - 1
  const isNulled = last >= 0 && edits.from[last] === from && edits.to[last] === to && edits.texts[last] === 'null'
  if (bytes[from] === 0x6e || isNulled) return
  const text = bytes[from] === QUOTE ? decodeString(scanner, from, to) : bytes.toString('utf8', from, to)
  replaceSpan(edits, offsets, from, to, Buffer.from(JSON.stringify(action(text))).toString('latin1'))
}
