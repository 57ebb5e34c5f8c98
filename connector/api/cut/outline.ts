import type { Cut } from '../page'
import { endOfNotes, noteSize } from './notes'
import { isList, type Want, type Wanted } from './shape'

/** Where a member stands: its key (of an element: itself), its value from the first byte to behind the last. */
export type Place = { readonly key: number; readonly from: number; readonly to: number }

/** An object and the members that were wanted of it; those it lacks are undefined. Null counts as an object without any. */
export type Outline<W> = Place & { readonly members: Members<W> }

export type Members<W> = { readonly [K in keyof W]: Found<W[K]> | undefined }

type Found<W> = W extends readonly [infer Each]
  ? Place & { readonly elements: ReadonlyArray<Outline<Each>> }
  : W extends Wanted
    ? Outline<W>
    : Place

type AnyPlace = Place & { readonly members?: object; readonly elements?: ReadonlyArray<AnyPlace> }

type Slots = Array<AnyPlace | undefined>

/** What is wanted, with members by their number in the notes. */
type Node = {
  readonly isList: boolean
  /** Of a list: that of its elements alone. */
  readonly children: ReadonlyArray<Node | undefined>
  readonly toMembers: (found: Slots) => object
}

/**
 * Reads the places that a cutter noted of a record, in its text as it leaves, until its page is released. The cutter must
 * have been asked for the same members.
 */
export const outliner = <W extends Wanted>(wanted: W): ((cut: Cut) => Members<W>) => {
  const root = objectNode(wanted)
  return ({ notes, noted = 0 }) => {
    if (notes === undefined) throw new Error('No places were noted')
    return membersOf({ numbers: notes.numbers, at: noted }, root, endOfNotes) as Members<W>
  }
}

const nodeOf = (want: Want): Node | undefined => {
  if (want === 'value') return undefined
  return isList(want) ? { isList: true, children: [objectNode(want[0])], toMembers: namedBy([]) } : objectNode(want)
}

const objectNode = (wanted: Wanted): Node => ({
  isList: false,
  children: Object.values(wanted).map(nodeOf),
  toMembers: namedBy(Object.keys(wanted)),
})

/** Objects whose attributes are looked up by number: to store them by name takes several times as long. */
const namedBy = (names: ReadonlyArray<string>): Node['toMembers'] => {
  class Named {
    declare readonly found: Slots
    constructor(found: Slots) {
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

type Reading = { readonly numbers: Int32Array; at: number }

const membersOf = (reading: Reading, { children, toMembers }: Node, end: number): object => {
  const found: Slots = new Array(children.length)
  for (;;) {
    const { numbers, at } = reading
    const key = numbers[at + 1] ?? end
    if (key >= end) return toMembers(found)
    const slot = numbers[at] ?? 0
    found[slot] = placeOf(reading, children[slot])
  }
}

const placeOf = (reading: Reading, node: Node | undefined): AnyPlace => {
  const { numbers, at } = reading
  const [key, from, to] = [numbers[at + 1] ?? 0, numbers[at + 2] ?? 0, numbers[at + 3] ?? 0]
  reading.at = at + noteSize
  if (node === undefined) return { key, from, to }
  if (!node.isList) return { key, from, to, members: membersOf(reading, node, to) }
  const elements: AnyPlace[] = []
  while ((numbers[reading.at + 1] ?? to) < to) elements.push(placeOf(reading, node.children[0]))
  return { key, from, to, elements }
}
