import type { Change } from '../../cdk/message'
import type { ApiError } from '../error'
import { forgetAfter, type Notes } from './notes'
import type { Room } from './room'

/** A span of the page that leaves as another text; `text` holds UTF-8 bytes, one a character (latin1). */
export type Edit = { readonly from: number; readonly to: number; readonly text: string }

/** Where a walk over a page stands. It is written to as it goes: a page holds a hundred thousand values. */
export type Walk = {
  readonly bytes: Buffer
  /** The same bytes, four at a time. */
  readonly view: DataView
  /** What becomes of undeclared top-level attributes. */
  readonly undeclared: 'keep' | 'drop' | 'fail'
  /** Where records stand in the envelope. */
  readonly list: string
  /** Paths of undeclared attributes, over the whole page. */
  readonly unknown: Set<string>
  /** Where records are rendered; undefined: each in a buffer of its own. */
  readonly room: Room | undefined
  /** Where it is noted where members stand; undefined: nobody asked. */
  readonly notes: Notes | undefined
  /** The place of the record under way in its list. */
  index: number
  /** Numbers declared objects over all pages, so that an attribute can tell whether this one has held it before. */
  serial: number
  /** In order of place, never overlapping. */
  edits: Edit[]
  /** What leads from a place behind all edits to where it stands in the record as it leaves. */
  shift: number
  changes: Change[]
  /** Undeclared top-level attributes, as the members of an object. */
  extra: string[]
  id: string
  modifiedTime: number
  /** The value just read is none that its place can hold. */
  wrong: boolean
  /** The number just read: digits alone, a decimal, one with an exponent. */
  form: 'plain' | 'decimal' | 'exponent'
  /** The record repeats a key: it is printed anew. */
  repeated: boolean
  /** The record spans lines. */
  lines: boolean
}

/** A walk at the start of `bytes`, its objects numbered from `serial` on. Spelt out, so that every walk has one hidden class. */
export const walkOf = (
  bytes: Buffer,
  { undeclared, list }: Pick<Walk, 'undeclared' | 'list'>,
  serial: number,
  unknown: Set<string>,
  room?: Room,
  notes?: Notes,
): Walk => ({
  bytes,
  view: new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength),
  undeclared,
  list,
  unknown,
  room,
  notes,
  index: 0,
  serial,
  edits: [],
  shift: 0,
  changes: [],
  extra: [],
  id: '',
  modifiedTime: 0,
  wrong: false,
  form: 'plain',
  repeated: false,
  lines: false,
})

/** Ends a walk; thrown inside the cutter alone, where an `Either` per value would cost more than the value. */
export class Refused extends Error {
  constructor(readonly error: ApiError) {
    super(error._tag)
  }
}

export const refuse = (path: string, message: string): Refused => new Refused({ _tag: 'Decode', path, message })

/** Not JSON, from `at` on. */
export const broken = (walk: Walk, at: number): Refused =>
  refuse(
    '$',
    at >= walk.bytes.length
      ? `cut short after ${walk.bytes.length} bytes`
      : `not JSON at byte ${at} of ${walk.bytes.length}`,
  )

/** A span with its edits, those from the `first` on, in a buffer of its own. */
export const render = (walk: Walk, from: number, to: number, first: number): Buffer => {
  const out = Buffer.allocUnsafe(lengthOf(walk, from, to, first))
  renderInto(walk, from, to, first, out, 0)
  return out
}

/** How long a span is with its edits. */
export const lengthOf = ({ edits }: Walk, from: number, to: number, first: number): number => {
  let length = to - from
  for (let i = first; i < edits.length; i++) {
    const edit = edits[i]
    if (edit !== undefined) length += edit.text.length - (edit.to - edit.from)
  }
  return length
}

/** Writes a span with its edits to a place that has room for it. */
export const renderInto = (
  { bytes, edits }: Walk,
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
export const edit = (walk: Walk, from: number, to: number, text: string, at = walk.edits.length): void => {
  const one = { from, to, text }
  // Most records have one: an array that grows makes room for seventeen.
  if (walk.edits.length === 0) walk.edits = [one]
  else if (at === walk.edits.length) walk.edits.push(one)
  else walk.edits.splice(at, 0, one)
  walk.shift += text.length - (to - from)
}

/** Takes back the edits from the `first` on. */
export const undo = (walk: Walk, first: number): void => {
  for (let i = walk.edits.length; i > first; i--) {
    const one = walk.edits.pop()
    if (one !== undefined) walk.shift -= one.text.length - (one.to - one.from)
  }
}

/** Replaces a span, and with it what was edited and noted inside it: the edits are those from the `first` on. */
export const replace = (walk: Walk, from: number, to: number, text: string, first: number): void => {
  undo(walk, first)
  if (walk.notes !== undefined) forgetAfter(walk.notes, from + walk.shift)
  edit(walk, from, to, text)
}

/** What the record under way is called in messages. */
export const nameOf = ({ list, index }: Walk): string => `$.${list}[${index}]`
