import type { BufferPool } from '../../api'
import type { CutRecord } from '../export-page'
import type { CutState } from './edit'
import { type FieldSpec, type FieldTree, isListSpec, type Shape } from './shape'

/** Numbers a note takes: which member it is, where its key, its value and what follows that begin. */
export const offsetEntrySize = 4

/** Stands behind the notes of a record: nothing comes after it. */
export const endOfRecord = 0x7fffffff

/**
 * Where members of the records of a page stand, counted from the first byte of their record as it leaves. In order of
 * place, so that the notes of a member's own members follow its own. Numbers alone, since there are a hundred thousand.
 */
export type OffsetTable = {
  entries: Int32Array
  length: number
  /** Where the notes of the record under way begin. */
  recordStart: number
  /** Makes room for another note. */
  readonly grow: () => void
  /** Nobody looks at them any more. */
  readonly release: () => void
}

/** Notes in buffers of `pool`, at first with room for so many bytes of them. */
export const createOffsetTable = ({ acquire, release }: BufferPool, expected: number): OffsetTable => {
  let buffer = acquire(expected)
  const notes: OffsetTable = {
    entries: int32View(buffer),
    length: 0,
    recordStart: 0,
    grow: () => {
      const larger = acquire(buffer.length * 2)
      buffer.copy(larger)
      release(buffer)
      buffer = larger
      notes.entries = int32View(buffer)
    },
    release: () => {
      release(buffer)
      buffer = Buffer.alloc(0)
    },
  }
  return notes
}

const int32View = ({ buffer, byteOffset, length }: Buffer): Int32Array =>
  new Int32Array(buffer, byteOffset, Math.floor(length / (4 * offsetEntrySize)) * offsetEntrySize)

/** Notes a member that is wanted, by where its key stands as it leaves and its value as it came; answers the note. */
export const startFieldOffset = (
  { offsets, outputShift }: CutState,
  { fieldIndex }: Shape,
  key: number,
  from: number,
): number => (fieldIndex < 0 || offsets === undefined ? -1 : addEntry(offsets, fieldIndex, key, from + outputShift))

/** Notes where the value ends, as it came. */
export const endFieldOffset = ({ offsets, outputShift }: CutState, note: number, to: number): void => {
  if (note >= 0 && offsets !== undefined) offsets.entries[note + 3] = to + outputShift
}

const addEntry = (notes: OffsetTable, slot: number, key: number, from: number): number => {
  const at = notes.length
  if (at + offsetEntrySize > notes.entries.length) notes.grow()
  const { entries } = notes
  entries[at] = slot
  entries[at + 1] = key
  entries[at + 2] = from
  entries[at + 3] = from
  notes.length = at + offsetEntrySize
  return at
}

/** The record under way begins. */
export const startRecordOffsets = (notes: OffsetTable): void => {
  notes.recordStart = notes.length
}

/** The record under way has ended. */
export const endRecordOffsets = (notes: OffsetTable): void => {
  addEntry(notes, 0, endOfRecord, endOfRecord)
}

/** Takes back the notes of this record on what stands behind a place. */
export const removeOffsetsAfter = (notes: OffsetTable, place: number): void => {
  while (notes.length > notes.recordStart && (notes.entries[notes.length - 2] ?? 0) > place)
    notes.length -= offsetEntrySize
}

/** Where a member stands: its key (of an element: itself), its value from the first byte to behind the last. */
export type FieldOffset = { readonly key: number; readonly from: number; readonly to: number }

/** An object and the members that were wanted of it; those it lacks are undefined. Null counts as an object without any. */
export type ObjectOffsets<W> = FieldOffset & { readonly members: FieldOffsets<W> }

export type FieldOffsets<W> = { readonly [K in keyof W]: OffsetsOf<W[K]> | undefined }

type OffsetsOf<W> = W extends readonly [infer Each]
  ? FieldOffset & { readonly elements: ReadonlyArray<ObjectOffsets<Each>> }
  : W extends FieldTree
    ? ObjectOffsets<W>
    : FieldOffset

type AnyOffset = FieldOffset & { readonly members?: object; readonly elements?: ReadonlyArray<AnyOffset> }

type OffsetSlots = Array<AnyOffset | undefined>

/** What is wanted, with members by their number in the notes. */
type OffsetNode = {
  readonly isList: boolean
  /** Of a list: that of its elements alone. */
  readonly children: ReadonlyArray<OffsetNode | undefined>
  readonly toOffsets: (found: OffsetSlots) => object
}

/**
 * Reads the places that a cutter noted of a record, in its text as it leaves, until its page is released. The cutter must
 * have been asked for the same members.
 */
export const createOffsetReader = <W extends FieldTree>(wanted: W): ((cut: CutRecord) => FieldOffsets<W>) => {
  const root = toObjectNode(wanted)
  return ({ offsets, offsetsStart = 0 }) => {
    if (offsets === undefined) throw new Error('No places were noted')
    return readFieldOffsets({ entries: offsets.entries, at: offsetsStart }, root, endOfRecord) as FieldOffsets<W>
  }
}

const toOffsetNode = (want: FieldSpec): OffsetNode | undefined => {
  if (want === 'value') return undefined
  return isListSpec(want)
    ? { isList: true, children: [toObjectNode(want[0])], toOffsets: createNamedGetters([]) }
    : toObjectNode(want)
}

const toObjectNode = (wanted: FieldTree): OffsetNode => ({
  isList: false,
  children: Object.values(wanted).map(toOffsetNode),
  toOffsets: createNamedGetters(Object.keys(wanted)),
})

/** Objects whose attributes are looked up by number: to store them by name takes several times as long. */
const createNamedGetters = (names: ReadonlyArray<string>): OffsetNode['toOffsets'] => {
  class Named {
    declare readonly found: OffsetSlots
    constructor(found: OffsetSlots) {
      this.found = found
    }
  }
  names.forEach((name, slot) => {
    Object.defineProperty(Named.prototype, name, {
      get(this: Named) {
        return this.found[slot]
      },
    })
  })
  return (found) => new Named(found)
}

type TableCursor = { readonly entries: Int32Array; at: number }

const readFieldOffsets = (reading: TableCursor, { children, toOffsets }: OffsetNode, end: number): object => {
  const found: OffsetSlots = new Array(children.length)
  for (;;) {
    const { entries, at } = reading
    const key = entries[at + 1] ?? end
    if (key >= end) return toOffsets(found)
    const slot = entries[at] ?? 0
    found[slot] = readOffset(reading, children[slot])
  }
}

const readOffset = (reading: TableCursor, node: OffsetNode | undefined): AnyOffset => {
  const { entries, at } = reading
  const [key, from, to] = [entries[at + 1] ?? 0, entries[at + 2] ?? 0, entries[at + 3] ?? 0]
  reading.at = at + offsetEntrySize
  if (node === undefined) return { key, from, to }
  if (!node.isList) return { key, from, to, members: readFieldOffsets(reading, node, to) }
  const elements: AnyOffset[] = []
  while ((entries[reading.at + 1] ?? to) < to) elements.push(readOffset(reading, node.children[0]))
  return { key, from, to, elements }
}
