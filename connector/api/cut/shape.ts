/** What a value must be; `key` and `cursor` are the integer and the instant that no record may lack. */
export type ValueKind =
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
export type PrivacyAction = 'drop' | ((text: string) => string)

/** What to find in an object, by name: a value, an object's own members, or those of an array's elements. */
export type FieldTree = { readonly [name: string]: FieldSpec }
export type FieldSpec = 'value' | FieldTree | readonly [FieldTree]

/** A codec as the walk reads it: one node per place, so that a node may remember where the walk stands in it. */
export type Shape = {
  readonly kind: ValueKind
  readonly nullable: boolean
  readonly name: string
  readonly parent: Shape | undefined
  /** What is to be noted of it; its number among the members that are wanted of its parent, -1 if it is none. */
  readonly fieldSpec: FieldSpec | undefined
  readonly fieldIndex: number
  readonly attributes: Map<string, Attribute>
  readonly required: Attribute[]
  element: Shape | undefined
  /** The index of the element under way. */
  elementIndex: number
  /** The attribute that came first in the object before: a guess for the next. */
  expectedFirst: Attribute | undefined
}

/** An attribute of an object; one that arrives under two names has two of these and one slot. */
export type Attribute = {
  readonly shape: Shape
  /** Its key as it comes, in quotes, and the same four bytes at a time, with its last four bytes. */
  readonly keyBytes: Uint8Array
  readonly keyWords: Int32Array
  readonly lastKeyWord: number
  /** Its key as it leaves, in quotes, where that differs. */
  readonly outputKey: string | undefined
  readonly action: PrivacyAction | 'collect' | undefined
  /** What it is called where it is reported, if nobody declared it. */
  readonly undeclaredPath: string | undefined
  /** The serial number of the last object that held it. */
  readonly presence: { seen: number }
  /** The attribute that came after it the last time. */
  expectedNext: Attribute | undefined
}

/** The attribute whose values stand at `shape`; it arrives under `key`. */
export const createAttribute = (
  shape: Shape,
  { undeclaredPath, action }: Pick<Attribute, 'undeclaredPath' | 'action'>,
  key = shape.name,
  slot = { seen: 0 },
): Attribute => {
  const token = Buffer.from(JSON.stringify(key))
  return {
    shape,
    keyBytes: token,
    lastKeyWord: token.length < 4 ? 0 : token.readInt32LE(token.length - 4),
    keyWords: Int32Array.from({ length: token.length >> 2 }, (_, i) => token.readInt32LE(i * 4)),
    outputKey: key === shape.name ? undefined : JSON.stringify(shape.name),
    action,
    undeclaredPath,
    presence: slot,
    expectedNext: undefined,
  }
}

/** A place that may hold anything, unless it is told what. */
export const createShape = (
  name: string,
  parent: Shape | undefined,
  kind: ValueKind = 'any',
  nullable = true,
  wanted?: FieldTree,
): Shape => ({
  kind,
  nullable,
  name,
  parent,
  ...(parent === undefined ? { fieldSpec: wanted, fieldIndex: -1 } : fieldSpecOf(parent, name)),
  attributes: new Map(),
  required: [],
  element: undefined,
  elementIndex: 0,
  expectedFirst: undefined,
})

const fieldSpecOf = ({ kind, fieldSpec }: Shape, name: string): Pick<Shape, 'fieldSpec' | 'fieldIndex'> => {
  const nothing = { fieldSpec: undefined, fieldIndex: -1 }
  if (fieldSpec === undefined || fieldSpec === 'value') return nothing
  if (isListSpec(fieldSpec)) return kind === 'array' ? { fieldSpec: fieldSpec[0], fieldIndex: 0 } : nothing
  return Object.hasOwn(fieldSpec, name)
    ? { fieldSpec: fieldSpec[name], fieldIndex: Object.keys(fieldSpec).indexOf(name) }
    : nothing
}

export const isListSpec = (want: FieldSpec): want is readonly [FieldTree] => Array.isArray(want)

/** The attribute that collects undeclared ones. */
export const unknownAttributesKey = 'unknown_attributes'

/** Where a shape stands, with the indexes of the elements under way: `contents.0.id`. */
export const indexedPathOf = (shape: Shape): string => joinPath(shape, ({ elementIndex }) => [String(elementIndex)])

/** Where a shape stands, without indexes: `contents.id`. */
export const shapePathOf = (shape: Shape): string => joinPath(shape, () => [])

const joinPath = (shape: Shape, index: (array: Shape) => ReadonlyArray<string>): string => {
  const names: string[] = []
  for (let { name, parent } = shape; parent !== undefined; { name, parent } = parent)
    names.unshift(...(parent.kind === 'array' ? index(parent) : [name]))
  return names.join('.')
}
