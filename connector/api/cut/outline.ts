import type { CutRecord } from '../page'
import { endOfRecord, offsetEntrySize } from './notes'
import { type FieldSpec, type FieldTree, isListSpec } from './shape'

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
