import { find, guess } from './attribute'
import { type Attribute, attributeOf, place, type Shape } from './shape'
import { CLOSE_ARRAY, CLOSE_OBJECT, COMMA, colon, OPEN_ARRAY, OPEN_OBJECT, QUOTE, space, string } from './token'
import { type Walk, walkOf } from './walk'

/** What to find in an object, by name: a value, an object's own members, or those of an array's elements. */
export type Wanted = { readonly [name: string]: 'value' | Wanted | readonly [Wanted] }

/** Where a member stands: its key (of an element: itself), its value from the first byte to behind the last. */
export type Place = { readonly key: number; readonly from: number; readonly to: number }

/** An object and the members that were wanted of it; those it lacks are undefined. Null counts as an object without any. */
export type Outline<W> = Place & { readonly members: { readonly [K in keyof W]: Found<W[K]> | undefined } }

type Found<W> = W extends readonly [infer Each]
  ? Place & { readonly elements: ReadonlyArray<Outline<Each>> }
  : W extends Wanted
    ? Outline<W>
    : Place

type Node = { readonly shape: Shape; readonly empty: Members; readonly children: Readonly<Record<string, Node>> }
type Members = Record<string, AnyPlace | undefined>
type AnyPlace = Place & { readonly members?: Members; readonly elements?: ReadonlyArray<AnyPlace> }

/**
 * Finds places in the text of a record as it leaves a cutter, which is valid, of the declared types, and repeats no key.
 * One walk, nothing is parsed.
 */
export const outliner = <W extends Wanted>(wanted: W): ((json: Uint8Array) => Outline<W>) => {
  const root = nodeOf(wanted, '', undefined)
  const unknown = new Set<string>()
  return (json) => {
    const walk = walkOf(
      Buffer.from(json.buffer, json.byteOffset, json.byteLength),
      { undeclared: 'drop', list: '' },
      0,
      unknown,
    )
    return objectAt(walk, root, 0, 0) as unknown as Outline<W>
  }
}

const nodeOf = (wanted: Wanted, name: string, parent: Shape | undefined): Node => {
  const shape = place(name, parent, 'object')
  const children: Record<string, Node> = {}
  for (const [key, want] of Object.entries(wanted)) {
    const inner: Wanted | undefined = want === 'value' ? undefined : isList(want) ? want[0] : want
    const child = inner === undefined ? undefined : nodeOf(inner, key, shape)
    if (child !== undefined) children[key] = child
    const own = child?.shape ?? place(key, shape)
    shape.attributes.set(key, attributeOf(own, { undeclared: undefined, action: undefined }))
  }
  return { shape, empty: Object.fromEntries(Object.keys(wanted).map((key) => [key, undefined])), children }
}

const isList = (want: Wanted | readonly [Wanted]): want is readonly [Wanted] => Array.isArray(want)

const placeAt = (walk: Walk, node: Node | undefined, key: number, at: number): AnyPlace => {
  if (node === undefined) return { key, from: at, to: pass(walk, at) }
  if (walk.bytes[at] === OPEN_ARRAY) return arrayAt(walk, node, key, at)
  return objectAt(walk, node, key, at)
}

const arrayAt = (walk: Walk, node: Node, key: number, at: number): AnyPlace => {
  const elements: AnyPlace[] = []
  let p = space(walk, at + 1)
  while (walk.bytes[p] !== CLOSE_ARRAY) {
    const element = objectAt(walk, node, p, p)
    elements.push(element)
    p = space(walk, element.to)
    if (walk.bytes[p] === COMMA) p = space(walk, p + 1)
  }
  return { key, from: at, to: p + 1, members: node.empty, elements }
}

const objectAt = (walk: Walk, node: Node, key: number, at: number): AnyPlace => {
  const { bytes } = walk
  if (bytes[at] !== OPEN_OBJECT) return { key, from: at, to: pass(walk, at), members: node.empty, elements: [] }
  const members = { ...node.empty }
  let previous: Attribute | undefined
  let p = space(walk, at + 1)
  while (bytes[p] === QUOTE) {
    const start = p
    let attribute = guess(walk, p, previous === undefined ? node.shape.first : previous.next)
    if (attribute !== undefined) p += attribute.token.length
    else {
      p = string(walk, p + 1)
      attribute = find(walk, node.shape, previous, start, p)
    }
    previous = attribute
    const value = colon(walk, p)
    if (attribute.undeclared === undefined) {
      const { name } = attribute.shape
      const found = placeAt(walk, node.children[name], start, value)
      members[name] = found
      p = space(walk, found.to)
    } else p = space(walk, pass(walk, value))
    if (bytes[p] === COMMA) p = space(walk, p + 1)
  }
  return { key, from: at, to: p + 1, members }
}

/** The position after a value that is known to be valid. */
const pass = (walk: Walk, at: number): number => {
  const { bytes } = walk
  if (bytes[at] === QUOTE) return string(walk, at + 1)
  let depth = 0
  for (let p = at; ; ) {
    const byte = bytes[p] ?? CLOSE_OBJECT
    if (byte === QUOTE) p = string(walk, p + 1)
    else if (byte === OPEN_OBJECT || byte === OPEN_ARRAY) {
      depth++
      p++
    } else if (byte === CLOSE_OBJECT || byte === CLOSE_ARRAY) {
      if (depth === 0) return p
      depth--
      p++
      if (depth === 0) return p
    } else if (depth === 0 && (byte === COMMA || byte <= 0x20)) return p
    else p++
  }
}
