import type { BufferPool } from '../../api'
import { type OffsetTable, removeOffsetsAfter } from './offsets'

/**
 * Replacements of spans of a text, in order of place, never overlapping. `texts` hold UTF-8, one byte a character
 * (latin1). Numbers and texts are kept apart, since a page has tens of thousands.
 */
export type EditList = {
  from: Int32Array
  to: Int32Array
  readonly texts: string[]
  length: number
  /** Output offset minus input offset, after all edits so far. */
  shift: number
}

export const createEditList = (): EditList => ({
  from: new Int32Array(64),
  to: new Int32Array(64),
  texts: [],
  length: 0,
  shift: 0,
})

/** Removes all edits; the output begins at the input offset `origin`. */
export const clearEdits = (list: EditList, origin: number): void => {
  list.length = 0
  list.shift = -origin
}

/** Replaces a span that follows all others. */
export const addEdit = (list: EditList, from: number, to: number, text: string): void => {
  const at = list.length
  if (at === list.from.length) growEdits(list)
  list.from[at] = from
  list.to[at] = to
  list.texts[at] = text
  list.length = at + 1
  list.shift += text.length - (to - from)
}

const growEdits = (list: EditList): void => {
  const [from, to] = [new Int32Array(list.length * 2), new Int32Array(list.length * 2)]
  from.set(list.from)
  to.set(list.to)
  list.from = from
  list.to = to
}

/** Removes the edits at and after a position. */
export const removeEdits = (list: EditList, from: number): void => {
  while (list.length > 0 && (list.from[list.length - 1] ?? 0) >= from) {
    list.length -= 1
    list.shift -= growthOf(list, list.length)
  }
}

/** Something at or after a position was edited. */
export const isEditedFrom = (list: EditList, from: number): boolean =>
  list.length > 0 && (list.from[list.length - 1] ?? 0) >= from

/** How many bytes an edit adds to its span. */
const growthOf = ({ from, to, texts }: EditList, i: number): number =>
  (texts[i] ?? '').length - ((to[i] ?? 0) - (from[i] ?? 0))

/** Replaces a span that no edit follows, discarding the edits and offsets inside it. */
export const replaceSpan = (
  list: EditList,
  offsets: OffsetTable | undefined,
  from: number,
  to: number,
  text: string,
): void => {
  removeEdits(list, from)
  if (offsets !== undefined) removeOffsetsAfter(offsets, from + list.shift)
  addEdit(list, from, to, text)
}

/** The index of the first edit at or after a position. */
const firstEditFrom = (list: EditList, from: number): number => {
  let i = list.length
  while (i > 0 && (list.from[i - 1] ?? 0) >= from) i--
  return i
}

/** The length of a span with its edits. Edits after its start must lie inside it. */
export const renderedLength = (list: EditList, from: number, to: number): number => {
  let length = to - from
  for (let i = firstEditFrom(list, from); i < list.length; i++) length += growthOf(list, i)
  return length
}

/** Writes a span with its edits to `out` from `start` on. Returns the position after it. */
export const renderSpanInto = (
  list: EditList,
  bytes: Buffer,
  from: number,
  to: number,
  out: Buffer,
  start: number,
): number => {
  let at = from
  let end = start
  for (let i = firstEditFrom(list, from); i < list.length; i++) {
    const text = list.texts[i] ?? ''
    end = copyBytes(bytes, at, list.from[i] ?? at, out, end)
    if (text !== '') end += out.write(text, end, 'latin1')
    at = list.to[i] ?? at
  }
  return copyBytes(bytes, at, to, out, end)
}

/** Copies a span and returns the position after it. A loop, because a call would cost more than the bytes. */
const copyBytes = (bytes: Buffer, from: number, to: number, out: Buffer, start: number): number => {
  if (to - from > 16) return start + bytes.copy(out, start, from, to)
  for (let i = from; i < to; i++) out[start + i - from] = bytes[i] ?? 0
  return start + to - from
}

/** A span with its edits, in a new buffer. */
export const renderSpan = (list: EditList, bytes: Buffer, from: number, to: number): Buffer => {
  const out = Buffer.allocUnsafe(renderedLength(list, from, to))
  renderSpanInto(list, bytes, from, to, out, 0)
  return out
}

/*
 * Members are removed from an object in runs of neighbours. The reader of the object keeps the position where the
 * current run begins, or `noRun`. A run includes the comma after it; the last run of an object includes the comma
 * before it.
 */
export const noRun = -1

/** Where the run of a member begins; `keptEnd`: the end of the last kept member, -1 if there is none yet. */
export const startRun = (run: number, open: number, keptEnd: number, key: number): number => {
  if (run !== noRun) return run
  return keptEnd < 0 ? open + 1 : key
}

/** Removes the run that ends where the key of a kept member begins. */
export const removeRun = (list: EditList, run: number, key: number): void => addEdit(list, run, key, '')

/** Removes the last run of an object, which ends at `end`. */
export const removeLastRun = (list: EditList, run: number, keptEnd: number, end: number, close: number): void =>
  keptEnd < 0 ? addEdit(list, run, close, '') : addEdit(list, keptEnd, end, '')

/** Holds the changed records of a page, one after the other. */
export type OutputBuffer = {
  /** Reserves bytes of `bytes()` and returns the position of the first. */
  readonly reserve: (length: number) => number
  readonly bytes: () => Buffer
  /** The records are no longer read. */
  readonly release: () => void
}

/** An output buffer with room for about `expected` bytes, which acquires more if needed. */
export const createOutputBuffer = ({ acquire, release }: BufferPool, expected: number): OutputBuffer => {
  const acquired: Buffer[] = []
  let open: Buffer = Buffer.alloc(0)
  let used = 0
  return {
    reserve: (length) => {
      if (used + length > open.length) {
        open = acquire(Math.max(length, acquired.length === 0 ? expected : expected >> 3))
        acquired.push(open)
        used = 0
      }
      used += length
      return used - length
    },
    bytes: () => open,
    release: () => {
      for (const buffer of acquired.splice(0)) release(buffer)
      open = Buffer.alloc(0)
    },
  }
}
