/** What a value must be; `key` and `cursor` are the integer and the instant that no record may lack. */
export type Kind =
  | 'any'
  | 'string'
  | 'number'
  | 'boolean'
  | 'integer'
  | 'instant'
  | 'key'
  | 'cursor'
  | 'free'
  | 'object'
  | 'array'

/** What privacy does to an attribute; a hash is given strings decoded, all else as its text. */
export type Action = 'drop' | ((text: string) => string)

/** What to find in an object, by name: a value, an object's own members, or those of an array's elements. */
export type Wanted = { readonly [name: string]: Want }
export type Want = 'value' | Wanted | readonly [Wanted]

/** A codec as the walk reads it: one node per place, so that a node may remember where the walk stands in it. */
export type Shape = {
  readonly kind: Kind
  readonly nullable: boolean
  readonly name: string
  readonly parent: Shape | undefined
  /** What is to be noted of it; its number among the members that are wanted of its parent, -1 if it is none. */
  readonly want: Want | undefined
  readonly slot: number
  readonly attributes: Map<string, Attribute>
  readonly required: Attribute[]
  element: Shape | undefined
  /** The index of the element under way. */
  at: number
  /** The attribute that came first in the object before: a guess for the next. */
  first: Attribute | undefined
}

/** An attribute of an object; one that arrives under two names has two of these and one slot. */
export type Attribute = {
  readonly shape: Shape
  /** Its key as it comes, in quotes, and the same four bytes at a time, with its last four bytes. */
  readonly token: Uint8Array
  readonly words: Int32Array
  readonly lastWord: number
  /** Its key as it leaves, in quotes, where that differs. */
  readonly rename: string | undefined
  readonly action: Action | 'collect' | undefined
  /** What it is called where it is reported, if nobody declared it. */
  readonly undeclared: string | undefined
  /** The serial number of the last object that held it. */
  readonly slot: { seen: number }
  /** The attribute that came after it the last time. */
  next: Attribute | undefined
}

/** The attribute whose values stand at `shape`; it arrives under `key`. */
export const attributeOf = (
  shape: Shape,
  { undeclared, action }: Pick<Attribute, 'undeclared' | 'action'>,
  key = shape.name,
  slot = { seen: 0 },
): Attribute => {
  const token = Buffer.from(JSON.stringify(key))
  return {
    shape,
    token,
    lastWord: token.length < 4 ? 0 : token.readInt32LE(token.length - 4),
    words: Int32Array.from({ length: token.length >> 2 }, (_, i) => token.readInt32LE(i * 4)),
    rename: key === shape.name ? undefined : JSON.stringify(shape.name),
    action,
    undeclared,
    slot,
    next: undefined,
  }
}

/** A place that may hold anything, unless it is told what. */
export const place = (
  name: string,
  parent: Shape | undefined,
  kind: Kind = 'any',
  nullable = true,
  wanted?: Wanted,
): Shape => ({
  kind,
  nullable,
  name,
  parent,
  ...(parent === undefined ? { want: wanted, slot: -1 } : wantedOf(parent, name)),
  attributes: new Map(),
  required: [],
  element: undefined,
  at: 0,
  first: undefined,
})

const wantedOf = ({ kind, want }: Shape, name: string): Pick<Shape, 'want' | 'slot'> => {
  const nothing = { want: undefined, slot: -1 }
  if (want === undefined || want === 'value') return nothing
  if (isList(want)) return kind === 'array' ? { want: want[0], slot: 0 } : nothing
  return Object.hasOwn(want, name) ? { want: want[name], slot: Object.keys(want).indexOf(name) } : nothing
}

export const isList = (want: Want): want is readonly [Wanted] => Array.isArray(want)

/** The attribute that collects undeclared ones. */
export const undeclaredAttributes = 'unknown_attributes'

/** Where a shape stands, with the indexes of the elements under way: `contents.0.id`. */
export const placeOf = (shape: Shape): string => join(shape, ({ at }) => [String(at)])

/** Where a shape stands, without indexes: `contents.id`. */
export const pathOf = (shape: Shape): string => join(shape, () => [])

const join = (shape: Shape, index: (array: Shape) => ReadonlyArray<string>): string => {
  const names: string[] = []
  for (let { name, parent } = shape; parent !== undefined; { name, parent } = parent)
    names.unshift(...(parent.kind === 'array' ? index(parent) : [name]))
  return names.join('.')
}
