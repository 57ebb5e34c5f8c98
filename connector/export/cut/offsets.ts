import type { BufferPool } from '../../api'
import { type FieldSpec, type FieldTree, isListSpec } from './shape'

/** The numbers of an entry: its field, and where its key, its value and the text after its value begin. */
const entrySize = 4

/** Stands for the key and the value of the entry that ends a record: greater than any offset. */
const endOfRecord = 0x7fffffff

/**
 * The offsets of the fields of a page's records, in bytes from the start of the record's output. In order of place, so
 * the fields of an object follow it. Plain numbers, since a page has a hundred thousand.
 */
export type OffsetTable = {
  entries: Int32Array
  length: number
  /** Where the entries of the current record begin. */
  recordStart: number
  /** Makes room for another entry. */
  readonly grow: () => void
  /** The offsets are no longer read. */
  readonly release: () => void
}

/** A table with room for `expected` bytes, which acquires more if needed. */
export const createOffsetTable = ({ acquire, release }: BufferPool, expected: number): OffsetTable => {
  let buffer = acquire(expected)
  const table: OffsetTable = {
    entries: int32View(buffer),
    length: 0,
    recordStart: 0,
    grow: () => {
      const larger = acquire(buffer.length * 2)
      buffer.copy(larger)
      release(buffer)
      buffer = larger
      table.entries = int32View(buffer)
    },
    release: () => {
      release(buffer)
      buffer = Buffer.alloc(0)
    },
  }
  return table
}

const int32View = ({ buffer, byteOffset, length }: Buffer): Int32Array =>
  new Int32Array(buffer, byteOffset, Math.floor(length / (4 * entrySize)) * entrySize)

/**
 * Where the offsets of a record are: its table, and the index of its first entry. Undefined if its cutter recorded
 * none.
 */
export type RecordOffsets = {
  readonly offsets?: OffsetTable | undefined
  readonly offsetsStart?: number
}

/**
 * Adds the entry of a field and returns its index; -1 if the value is no field (negative `fieldIndex`) or offsets are
 * off.
 */
export const startFieldOffset = (
  table: OffsetTable | undefined,
  fieldIndex: number,
  key: number,
  from: number,
): number => (fieldIndex < 0 || table === undefined ? -1 : addEntry(table, fieldIndex, key, from))

/** Completes the entry that `startFieldOffset` returned. */
export const endFieldOffset = (table: OffsetTable | undefined, entry: number, to: number): void => {
  if (entry >= 0 && table !== undefined) table.entries[entry + 3] = to
}

const addEntry = (table: OffsetTable, fieldIndex: number, key: number, from: number): number => {
  const at = table.length
  if (at + entrySize > table.entries.length) table.grow()
  const { entries } = table
  entries[at] = fieldIndex
  entries[at + 1] = key
  entries[at + 2] = from
  entries[at + 3] = from
  table.length = at + entrySize
  return at
}

export const startRecordOffsets = (table: OffsetTable): void => {
  table.recordStart = table.length
}

export const endRecordOffsets = (table: OffsetTable): void => {
  addEntry(table, 0, endOfRecord, endOfRecord)
}

/** Removes the entries of the current record, which is cut once more. */
export const removeRecordOffsets = (table: OffsetTable): void => {
  table.length = table.recordStart
}

/** Removes the entries of this record whose values begin after a place. */
export const removeOffsetsAfter = (table: OffsetTable, place: number): void => {
  while (table.length > table.recordStart && (table.entries[table.length - 2] ?? 0) > place) table.length -= entrySize
}

/** Where a field stands: its key (for an element: itself), its value, and the byte after its value. */
export type FieldOffset = { readonly key: number; readonly from: number; readonly to: number }

/** An object and its fields; missing ones are undefined. Null counts as an object without fields. */
export type ObjectOffsets<W> = FieldOffset & { readonly members: FieldOffsets<W> }

export type FieldOffsets<W> = { readonly [K in keyof W]: OffsetsOf<W[K]> | undefined }

type OffsetsOf<W> = W extends readonly [infer Each]
  ? FieldOffset & { readonly elements: ReadonlyArray<ObjectOffsets<Each>> }
  : W extends FieldTree
    ? ObjectOffsets<W>
    : FieldOffset

type AnyOffset = FieldOffset & { readonly members?: object; readonly elements?: ReadonlyArray<AnyOffset> }

type OffsetSlots = Array<AnyOffset | undefined>

/** A node of the field tree, with its members by their number in the table. */
type FieldNode = {
  readonly isList: boolean
  /** For a list: only the node of its elements. */
  readonly children: ReadonlyArray<FieldNode | undefined>
  readonly toOffsets: (slots: OffsetSlots) => object
}

/**
 * Reads the offsets that a cutter recorded for a record, in the record's output text, until its page is released. The
 * cutter must have been created with the same fields.
 */
export const createOffsetReader = <W extends FieldTree>(fields: W): ((record: RecordOffsets) => FieldOffsets<W>) => {
  const root = toObjectNode(fields)
  return ({ offsets, offsetsStart = 0 }) => {
    if (offsets === undefined) throw new Error('No offsets were noted: the cutter was created without fields')
    return readFieldOffsets({ entries: offsets.entries, at: offsetsStart }, root, endOfRecord) as FieldOffsets<W>
  }
}

const toFieldNode = (spec: FieldSpec): FieldNode | undefined => {
  if (spec === 'value') return undefined
  return isListSpec(spec)
    ? { isList: true, children: [toObjectNode(spec[0])], toOffsets: createNamedGetters([]) }
    : toObjectNode(spec)
}

const toObjectNode = (fields: FieldTree): FieldNode => ({
  isList: false,
  children: Object.values(fields).map(toFieldNode),
  toOffsets: createNamedGetters(Object.keys(fields)),
})

/** Objects whose attributes are looked up by number: storing them by name takes several times as long. */
const createNamedGetters = (names: ReadonlyArray<string>): FieldNode['toOffsets'] => {
  class NamedOffsets {
    declare readonly slots: OffsetSlots
    constructor(slots: OffsetSlots) {
      this.slots = slots
    }
  }
  names.forEach((name, slot) => {
    Object.defineProperty(NamedOffsets.prototype, name, {
      get(this: NamedOffsets) {
        return this.slots[slot]
      },
    })
  })
  return (slots) => new NamedOffsets(slots)
}

type TableCursor = { readonly entries: Int32Array; at: number }

const readFieldOffsets = (cursor: TableCursor, { children, toOffsets }: FieldNode, end: number): object => {
  const slots: OffsetSlots = new Array(children.length)
  for (;;) {
    const { entries, at } = cursor
    const key = entries[at + 1] ?? end
    if (key >= end) return toOffsets(slots)
    const slot = entries[at] ?? 0
    slots[slot] = readOffset(cursor, children[slot])
  }
}

const readOffset = (cursor: TableCursor, node: FieldNode | undefined): AnyOffset => {
  const { entries, at } = cursor
  const [key, from, to] = [entries[at + 1] ?? 0, entries[at + 2] ?? 0, entries[at + 3] ?? 0]
  cursor.at = at + entrySize
  if (node === undefined) return { key, from, to }
  if (!node.isList) return { key, from, to, members: readFieldOffsets(cursor, node, to) }
  const elements: AnyOffset[] = []
  while ((entries[cursor.at + 1] ?? to) < to) elements.push(readOffset(cursor, node.children[0]))
  return { key, from, to, elements }
}
