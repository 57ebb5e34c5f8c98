import type * as t from 'io-ts'
import { annotationsOf } from '../../cdk'

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

export type ShapeOptions = {
  readonly codec: t.Any
  readonly primaryKey: string
  readonly cursor: string
  /** Top-level attributes that arrive under another name: from that name to the declared one. */
  readonly aliases: Readonly<Record<string, string>>
  /** By path, such as `contents.response`, under either name of what is renamed; arrays are walked. */
  readonly actions: Readonly<Record<string, PrivacyAction>>
  /** The members to note the places of. */
  readonly fields?: FieldTree | undefined
}

/** The table of a record's codec; throws at declaration on a codec it cannot read, and on an action upon key or cursor. */
export const compileShape = (options: ShapeOptions): Shape => {
  const root = buildShape({ ...options, actions: resolveAliases(options) }, options.codec, '', undefined)
  if (root.kind !== 'object') throw new Error('The codec of a record must be an object')
  for (const [from, to] of Object.entries(options.aliases)) {
    const attribute = root.attributes.get(to)
    if (attribute !== undefined)
      root.attributes.set(from, createAttribute(attribute.shape, attribute, from, attribute.presence))
  }
  for (const { shape, action } of root.attributes.values())
    if (action !== undefined && (shape.kind === 'key' || shape.kind === 'cursor'))
      throw new Error(`${shape.name} identifies a record: it can be neither dropped nor hashed`)
  // What is kept of undeclared attributes leaves under this name, whoever declares it.
  root.attributes.delete(unknownAttributesKey)
  return root
}

const resolveAliases = ({ aliases, actions }: ShapeOptions): ShapeOptions['actions'] =>
  Object.fromEntries(
    Object.entries(actions).map(([path, action]) => {
      const [first = '', ...rest] = path.split('.')
      return [[aliases[first] ?? first, ...rest].join('.'), action]
    }),
  )

/** The paths of all attributes that a codec declares: what `actions` may name. */
export const attributePaths = (codec: t.Any): ReadonlyArray<string> =>
  collectPaths(compileShape({ codec, primaryKey: '', cursor: '', aliases: {}, actions: {} }))

const collectPaths = ({ attributes, element }: Shape): ReadonlyArray<string> =>
  element !== undefined
    ? collectPaths(element)
    : [...attributes.values()].flatMap(({ shape }) => [shapePathOf(shape), ...collectPaths(shape)])

/** The codecs that say their structure; any other needs `annotate({ type })`. */
type KnownCodec =
  | t.StringType
  | t.NumberType
  | t.BooleanType
  | t.NullType
  | t.UnknownType
  | t.AnyDictionaryType
  | t.ArrayType<t.Any>
  | t.ReadonlyArrayType<t.Any>
  | t.InterfaceType<t.Props>
  | t.PartialType<t.Props>
  | t.IntersectionType<t.Any[]>
  | t.UnionType<t.Any[]>
  | t.ReadonlyType<t.Any>
  | t.ExactType<t.Any>

const buildShape = (options: ShapeOptions, codec: t.Any, name: string, parent: Shape | undefined): Shape => {
  const [bare, nullable] = stripNull(codec)
  const kind = valueKindOf(options, bare, name, parent)
  const shape = createShape(name, parent, kind, nullable || bare._tag === 'UnknownType', options.fields)
  if (bare._tag === 'ArrayType' || bare._tag === 'ReadonlyArrayType')
    shape.element = buildShape(options, bare.type, '', shape)
  if (shape.kind === 'object') declareAttributes(options, bare, shape)
  return shape
}

const declareAttributes = (options: ShapeOptions, codec: KnownCodec, shape: Shape): void => {
  switch (codec._tag) {
    case 'InterfaceType':
    case 'PartialType':
      for (const [key, type] of Object.entries(codec.props)) {
        const own = buildShape(options, type, key, shape)
        const attribute = createAttribute(own, { undeclaredPath: undefined, action: options.actions[shapePathOf(own)] })
        shape.attributes.set(key, attribute)
        if (codec._tag === 'InterfaceType') shape.required.push(attribute)
      }
      return
    case 'IntersectionType':
      for (const type of codec.types) declareAttributes(options, stripNull(type)[0], shape)
  }
}

const valueKindOf = (options: ShapeOptions, codec: KnownCodec, name: string, parent: Shape | undefined): ValueKind => {
  if (parent !== undefined && parent.parent === undefined) {
    if (name === options.primaryKey) return 'key'
    if (name === options.cursor) return 'cursor'
  }
  const { type, format } = annotationsOf(codec)
  switch (type) {
    case 'integer':
    case 'number':
    case 'boolean':
      return type
    case 'string':
      return format === 'date-time' ? 'instant' : 'string'
  }
  switch (codec._tag) {
    case 'StringType':
      return 'string'
    case 'NumberType':
      return 'number'
    case 'BooleanType':
      return 'boolean'
    case 'UnknownType':
      return 'any'
    case 'AnyDictionaryType':
      return 'free'
    case 'ArrayType':
    case 'ReadonlyArrayType':
      return 'array'
    case 'InterfaceType':
    case 'PartialType':
    case 'IntersectionType':
      return 'object'
    default:
      throw new Error(`No shape for the codec ${(codec as t.Any).name}: annotate it with a type`)
  }
}

const stripNull = (codec: t.Any): readonly [KnownCodec, boolean] => {
  const known = codec as unknown as KnownCodec
  switch (known._tag) {
    case 'ReadonlyType':
    case 'ExactType':
      return stripNull(known.type)
    case 'UnionType': {
      const [only, ...others] = known.types.filter((type) => (type as unknown as KnownCodec)._tag !== 'NullType')
      if (only === undefined || others.length > 0) throw new Error(`No shape for the union ${known.name}`)
      return [stripNull(only)[0], known.types.length > 1]
    }
    default:
      return [known, false]
  }
}
