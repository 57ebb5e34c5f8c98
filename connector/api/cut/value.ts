import { find, guess } from './attribute'
import { noteEnd, noteStart } from './notes'
import { cursor, double, instant, integer, isNumeric, key } from './scalar'
import type { Attribute, Shape } from './shape'
import { skip } from './skip'
import {
  CLOSE_ARRAY,
  CLOSE_OBJECT,
  COMMA,
  colon,
  OPEN_ARRAY,
  OPEN_OBJECT,
  QUOTE,
  space,
  string,
  textOf,
  word,
} from './token'
import { broken, edit, nameOf, Refused, refuse, render, replace, undo, type Walk } from './walk'
import { wrong } from './wrong'

/** The position after a declared value. One of the wrong type leaves as null, or makes what holds it wrong (`walk.wrong`). */
const value = (walk: Walk, shape: Shape, at: number): number => {
  const byte = walk.bytes[at]
  switch (shape.kind) {
    case 'string':
      if (byte === QUOTE) return string(walk, at + 1)
      break
    case 'object':
    case 'array':
      if (byte === (shape.kind === 'array' ? OPEN_ARRAY : OPEN_OBJECT)) return container(walk, shape, at)
      break
    case 'integer':
      if (isNumeric(byte)) return integer(walk, shape, at)
      break
    case 'number':
      if (isNumeric(byte)) return double(walk, shape, at)
      break
    case 'instant':
      if (byte === QUOTE) return instant(walk, shape, at)
      break
    case 'boolean':
      if (byte === 0x74 || byte === 0x66) return word(walk, at)
      break
    case 'free':
      if (byte === OPEN_OBJECT) return skip(walk, at, 0)
      break
    case 'any':
      return skip(walk, at, 0)
    case 'key':
      return key(walk, shape, at)
    case 'cursor':
      return cursor(walk, shape, at)
  }
  const edits = walk.edits.length
  const end = skip(walk, at, 0)
  return byte === 0x6e && shape.nullable ? end : wrong(walk, shape, at, end, edits, walk.changes.length)
}

const container = (walk: Walk, shape: Shape, at: number): number => {
  const edits = walk.edits.length
  const changes = walk.changes.length
  const end = shape.element === undefined ? object(walk, shape, at + 1) : array(walk, shape, shape.element, at + 1)
  return walk.wrong ? wrong(walk, shape, at, end, edits, changes) : end
}

const array = (walk: Walk, shape: Shape, element: Shape, open: number): number => {
  const { bytes } = walk
  let bad = false
  let p = space(walk, open)
  if (bytes[p] === CLOSE_ARRAY) return p + 1
  for (shape.at = 0; ; shape.at++) {
    const note = noteStart(walk, element, p + walk.shift, p)
    p = value(walk, element, p)
    noteEnd(walk, note, p)
    p = space(walk, p)
    bad ||= walk.wrong
    walk.wrong = false
    if (bytes[p] === CLOSE_ARRAY) break
    if (bytes[p] !== COMMA) throw broken(walk, p)
    p = space(walk, p + 1)
  }
  walk.wrong = bad
  return p + 1
}

/** The position after an object whose members start at `open`: each checked, those that are not to leave cut out. */
export const object = (walk: Walk, shape: Shape, open: number): number => {
  const { bytes } = walk
  const serial = (walk.serial + 1) | 0
  walk.serial = serial
  let previous: Attribute | undefined
  let bad = false
  // A member cut out takes the comma before it along, or, while none has stayed, the one after it.
  let stayed = false
  let pending = false
  let before = open
  let p = space(walk, open)
  for (let more = bytes[p] !== CLOSE_OBJECT; more; ) {
    const from = p
    const edits = walk.edits.length
    if (bytes[p] !== QUOTE) throw broken(walk, p)
    let attribute = guess(walk, p, previous === undefined ? shape.first : previous.next)
    if (attribute !== undefined) p += attribute.token.length
    else {
      p = string(walk, p + 1)
      attribute = find(walk, shape, previous, from, p)
    }
    if (attribute.slot.seen === serial) repeat(walk, attribute.shape)
    attribute.slot.seen = serial
    if (attribute.undeclared !== undefined) report(walk, attribute.undeclared)
    previous = attribute
    const { action } = attribute
    const start = colon(walk, p)
    if (action === 'drop' || action === 'collect') {
      p = skip(walk, start, 0)
      if (action === 'collect') walk.extra.push(render(walk, from, p, edits).toString('latin1'))
      undo(walk, edits)
      if (stayed) edit(walk, before, p, '')
      else pending = true
    } else {
      if (pending) edit(walk, open, from, '', edits)
      pending = false
      stayed = true
      const leaving = from + walk.shift
      if (attribute.rename !== undefined) replace(walk, from, p, attribute.rename, edits)
      const inner = walk.edits.length
      const note = noteStart(walk, attribute.shape, leaving, start)
      p = value(walk, attribute.shape, start)
      if (walk.wrong) {
        if (shape.parent === undefined) throw refuse(`${nameOf(walk)}.${attribute.shape.name}`, 'of the wrong type')
        bad = true
        walk.wrong = false
      } else if (action !== undefined) hash(walk, action, start, p, inner)
      noteEnd(walk, note, p)
    }
    before = p
    p = space(walk, p)
    more = bytes[p] === COMMA
    if (more) p = space(walk, p + 1)
    else if (bytes[p] !== CLOSE_OBJECT) throw broken(walk, p)
  }
  if (pending) edit(walk, open, p, '')
  walk.wrong = bad || lacks(walk, shape, serial)
  return p + 1
}

const report = (walk: Walk, path: string): void => {
  if (walk.undeclared === 'fail') {
    const remedy = 'set on_unknown_attribute to keep or drop'
    throw new Refused({ _tag: 'Decode', path, message: 'an attribute that is not declared', remedy })
  }
  walk.unknown.add(path)
}

const repeat = (walk: Walk, shape: Shape): void => {
  if (shape.kind === 'key' || shape.kind === 'cursor') throw refuse(`${nameOf(walk)}.${shape.name}`, 'there twice')
  walk.repeated = true
}

const lacks = (walk: Walk, shape: Shape, serial: number): boolean => {
  const missing = shape.required.find(({ slot }) => slot.seen !== serial)
  if (missing === undefined) return false
  if (shape.parent === undefined) throw refuse(`${nameOf(walk)}.${missing.shape.name}`, 'missing')
  return true
}

/** A value leaves as its hash; null, or one that was nulled, says nothing and stays. */
const hash = (walk: Walk, action: (text: string) => string, from: number, to: number, edits: number): void => {
  const last = walk.edits[walk.edits.length - 1]
  if (walk.bytes[from] === 0x6e || (last?.from === from && last.to === to && last.text === 'null')) return
  const text = walk.bytes[from] === QUOTE ? textOf(walk, from, to) : walk.bytes.toString('utf8', from, to)
  replace(walk, from, to, Buffer.from(JSON.stringify(action(text))).toString('latin1'), edits)
}
