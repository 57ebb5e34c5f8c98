import type { ApiError, BufferPool } from '../../api'
import type { RecordChange } from '../../cdk'
import { type OffsetTable, removeOffsetsAfter } from './offsets'

/** Where the records of a page that do not leave as they came are written, one behind the other. */
export type OutputBuffer = {
  /** So many bytes in `bytes()`, from the place answered on. */
  readonly reserve: (length: number) => number
  readonly bytes: () => Buffer
  /** Nobody looks at the records any more. */
  readonly release: () => void
}

/** Room for about `expected` bytes; more is had where it does not do. */
export const createOutputBuffer = ({ acquire, release }: BufferPool, expected: number): OutputBuffer => {
  const taken: Buffer[] = []
  let open: Buffer = Buffer.alloc(0)
  let used = 0
  return {
    reserve: (length) => {
      if (used + length > open.length) {
        open = acquire(Math.max(length, taken.length === 0 ? expected : expected >> 3))
        taken.push(open)
        used = 0
      }
      used += length
      return used - length
    },
    bytes: () => open,
    release: () => {
      for (const buffer of taken.splice(0)) release(buffer)
      open = Buffer.alloc(0)
    },
  }
}

/** A span of the page that leaves as another text; `text` holds UTF-8 bytes, one a character (latin1). */
export type SpanEdit = { readonly from: number; readonly to: number; readonly text: string }

/** Where a walk over a page stands. It is written to as it goes: a page holds a hundred thousand values. */
export type CutState = {
  readonly bytes: Buffer
  /** The same bytes, four at a time. */
  readonly view: DataView
  /** What becomes of undeclared top-level attributes. */
  readonly undeclared: 'keep' | 'drop' | 'fail'
  /** Where records stand in the envelope. */
  readonly list: string
  /** Paths of undeclared attributes, over the whole page. */
  readonly undeclaredPaths: Set<string>
  /** Where records are rendered; undefined: each in a buffer of its own. */
  readonly output: OutputBuffer | undefined
  /** Where it is noted where members stand; undefined: nobody asked. */
  readonly offsets: OffsetTable | undefined
  /** The place of the record under way in its list. */
  recordIndex: number
  /** Numbers declared objects over all pages, so that an attribute can tell whether this one has held it before. */
  objectSerial: number
  /** In order of place, never overlapping. */
  edits: SpanEdit[]
  /** What leads from a place behind all edits to where it stands in the record as it leaves. */
  outputShift: number
  changes: RecordChange[]
  /** Undeclared top-level attributes, as the members of an object. */
  collectedMembers: string[]
  id: string
  modifiedTime: number
  /** The value just read is none that its place can hold. */
  isInvalid: boolean
  /** The number just read: digits alone, a decimal, one with an exponent. */
  numberForm: 'plain' | 'decimal' | 'exponent'
  /** The record repeats a key: it is printed anew. */
  hasDuplicateKeys: boolean
  /** The record spans lines. */
  hasLineBreaks: boolean
}

/** A walk at the start of `bytes`, its objects numbered from `serial` on. Spelt out, so that every walk has one hidden class. */
export const createCutState = (
  bytes: Buffer,
  { undeclared, list }: Pick<CutState, 'undeclared' | 'list'>,
  serial: number,
  unknown: Set<string>,
  room?: OutputBuffer,
  notes?: OffsetTable,
): CutState => ({
  bytes,
  view: new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength),
  undeclared,
  list,
  undeclaredPaths: unknown,
  output: room,
  offsets: notes,
  recordIndex: 0,
  objectSerial: serial,
  edits: [],
  outputShift: 0,
  changes: [],
  collectedMembers: [],
  id: '',
  modifiedTime: 0,
  isInvalid: false,
  numberForm: 'plain',
  hasDuplicateKeys: false,
  hasLineBreaks: false,
})

/** Ends a walk; thrown inside the cutter alone, where an `Either` per value would cost more than the value. */
export class CutError extends Error {
  constructor(readonly error: ApiError) {
    super(error._tag)
  }
}

export const createCutError = (path: string, message: string): CutError =>
  new CutError({ _tag: 'Decode', path, message })

/** Not JSON, from `at` on. */
export const createSyntaxError = (walk: CutState, at: number): CutError =>
  createCutError(
    '$',
    at >= walk.bytes.length
      ? `cut short after ${walk.bytes.length} bytes`
      : `not JSON at byte ${at} of ${walk.bytes.length}`,
  )

/** A span with its edits, those from the `first` on, in a buffer of its own. */
export const renderSpan = (walk: CutState, from: number, to: number, first: number): Buffer => {
  const out = Buffer.allocUnsafe(renderedLength(walk, from, to, first))
  renderSpanInto(walk, from, to, first, out, 0)
  return out
}

/** How long a span is with its edits. */
export const renderedLength = ({ edits }: CutState, from: number, to: number, first: number): number => {
  let length = to - from
  for (let i = first; i < edits.length; i++) {
    const edit = edits[i]
    if (edit !== undefined) length += edit.text.length - (edit.to - edit.from)
  }
  return length
}

/** Writes a span with its edits to a place that has room for it. */
export const renderSpanInto = (
  { bytes, edits }: CutState,
  from: number,
  to: number,
  first: number,
  out: Buffer,
  place: number,
): void => {
  let at = from
  let end = place
  for (let i = first; i < edits.length; i++) {
    const edit = edits[i]
    if (edit === undefined) break
    end += bytes.copy(out, end, at, edit.from)
    end += out.write(edit.text, end, 'latin1')
    at = edit.to
  }
  bytes.copy(out, end, at, to)
}

/** Has a span leave as another text; `at`: the number of edits before it, all of them where it is left out. */
export const addEdit = (walk: CutState, from: number, to: number, text: string, at = walk.edits.length): void => {
  const one = { from, to, text }
  // Most records have one: an array that grows makes room for seventeen.
  if (walk.edits.length === 0) walk.edits = [one]
  else if (at === walk.edits.length) walk.edits.push(one)
  else walk.edits.splice(at, 0, one)
  walk.outputShift += text.length - (to - from)
}

/** Takes back the edits from the `first` on. */
export const removeEdits = (walk: CutState, first: number): void => {
  for (let i = walk.edits.length; i > first; i--) {
    const one = walk.edits.pop()
    if (one !== undefined) walk.outputShift -= one.text.length - (one.to - one.from)
  }
}

/** Replaces a span, and with it what was edited and noted inside it: the edits are those from the `first` on. */
export const replaceSpan = (walk: CutState, from: number, to: number, text: string, first: number): void => {
  removeEdits(walk, first)
  if (walk.offsets !== undefined) removeOffsetsAfter(walk.offsets, from + walk.outputShift)
  addEdit(walk, from, to, text)
}

/** What the record under way is called in messages. */
export const recordPathOf = ({ list, recordIndex }: CutState): string => `$.${list}[${recordIndex}]`
