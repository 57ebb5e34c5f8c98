import type * as t from 'io-ts'
import { annotationsOf } from '../../cdk'

/** What a value must be; `key` and `cursor` are the integer and the time that every record must have. */
type ValueKind =
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

/** What privacy does to an attribute. A hash function gets a string decoded, and any other value as its JSON text. */
export type PrivacyAction = 'drop' | ((text: string) => string)

/**
 * The fields whose offsets are recorded, by name: a value, the fields of an object, or the fields of an array's
 * elements.
 */
export type FieldTree = { readonly [name: string]: FieldSpec }
export type FieldSpec = 'value' | FieldTree | readonly [FieldTree]

/**
 * What a codec demands, as a tree with a node for each place. Immutable; what a page shows about a place is kept with
 * the page.
 */
export type Shape = {
  readonly kind: ValueKind
  readonly nullable: boolean
  readonly name: string
  readonly parent: Shape | undefined
  /** Its number among the declared places; -1 if it is undeclared. */
  readonly index: number
  /**
   * The fields to record inside it. `fieldIndex`: its number among its parent's fields, -1 if it is not one of them.
   */
  readonly fieldSpec: FieldSpec | undefined
  readonly fieldIndex: number
  /** For an object: its attributes by the name they arrive under, and the required ones. */
  readonly attributes: ReadonlyMap<string, Attribute>
  readonly required: ReadonlyArray<Attribute>
  /** For an array: the shape of its elements. */
  readonly element: Shape | undefined
}

/** An attribute of an object. An attribute that arrives under two names has two of these and one shape. */
export type Attribute = {
  readonly shape: Shape
  /** Its key as it arrives, in quotes; the same key four bytes at a time, and its last four bytes. */
  readonly keyBytes: Uint8Array
  readonly keyWords: Int32Array
  readonly lastKeyWord: number
  /** Its key as it is sent, in quotes, if that differs. */
  readonly outputKey: string | undefined
  readonly action: PrivacyAction | 'collect' | undefined
}

/** Describes an attribute with a shape; it arrives under `key`. */
export const createAttribute = (shape: Shape, action: Attribute['action'], key = shape.name): Attribute => {
  const keyBytes = Buffer.from(JSON.stringify(key))
  return {
    shape,
    keyBytes,
    lastKeyWord: keyBytes.length < 4 ? 0 : keyBytes.readInt32LE(keyBytes.length - 4),
    keyWords: Int32Array.from({ length: keyBytes.length >> 2 }, (_, i) => keyBytes.readInt32LE(i * 4)),
    outputKey: key === shape.name ? undefined : JSON.stringify(shape.name),
    action,
  }
}

/** The place of an undeclared attribute, which may hold anything. */
export const createUndeclaredShape = (name: string, parent: Shape): Shape => ({
  kind: 'any',
  nullable: true,
  name,
  parent,
  index: -1,
  ...fieldSpecOf(parent, name),
  attributes: new Map(),
  required: [],
  element: undefined,
})

const fieldSpecOf = ({ kind, fieldSpec }: Shape, name: string): Pick<Shape, 'fieldSpec' | 'fieldIndex'> => {
  const none = { fieldSpec: undefined, fieldIndex: -1 }
  if (fieldSpec === undefined || fieldSpec === 'value') return none
  if (isListSpec(fieldSpec)) return kind === 'array' ? { fieldSpec: fieldSpec[0], fieldIndex: 0 } : none
  return Object.hasOwn(fieldSpec, name)
    ? { fieldSpec: fieldSpec[name], fieldIndex: Object.keys(fieldSpec).indexOf(name) }
    : none
}

export const isListSpec = (spec: FieldSpec): spec is readonly [FieldTree] => Array.isArray(spec)

/** The attribute that collects undeclared ones. */
export const unknownAttributesKey = 'unknown_attributes'

/** The path of a shape, without indexes: `contents.id`. */
export const shapePathOf = (shape: Shape): string => joinPath(shape, () => [])

/** The names on the way to a shape, with the result of `indexOf` for each array. */
export const joinPath = (shape: Shape, indexOf: (array: Shape) => ReadonlyArray<string>): string => {
  const names: string[] = []
  for (let { name, parent } = shape; parent !== undefined; { name, parent } = parent)
    names.unshift(...(parent.kind === 'array' ? indexOf(parent) : [name]))
  return names.join('.')
}

type ShapeOptions = {
  readonly codec: t.Any
  readonly primaryKey: string
  readonly cursor: string
  /** Top-level attributes that arrive under another name: from that name to the declared one. */
  readonly aliases: Readonly<Record<string, string>>
  /** By path, such as `contents.response`; array elements add no step, and an alias may stand for its attribute. */
  readonly actions: Readonly<Record<string, PrivacyAction>>
  /** The fields whose offsets are recorded. */
  readonly fields?: FieldTree | undefined
}

/**
 * The shape of a record by its codec. Throws if it cannot read the codec, or if an action concerns the key or cursor.
 */
export const compileShape = (options: ShapeOptions): Shape => {
  let count = 0
  const builder: ShapeBuilder = {
    ...options,
    actions: resolveAliases(options),
    nextIndex: () => {
      count += 1
      return count - 1
    },
  }
  const root = buildShape(builder, options.codec, '', undefined)
  if (root.kind !== 'object') throw new Error('The codec of a record must be an object')
  for (const [from, to] of Object.entries(options.aliases)) {
    const attribute = root.attributes.get(to)
    if (attribute !== undefined) root.attributes.set(from, createAttribute(attribute.shape, attribute.action, from))
  }
  for (const { shape, action } of root.attributes.values())
    if (action !== undefined && (shape.kind === 'key' || shape.kind === 'cursor'))
      throw new Error(`${shape.name} identifies a record: it can be neither dropped nor hashed`)
  // Undeclared attributes that are kept are sent under this name, even if the codec declares it.
  root.attributes.delete(unknownAttributesKey)
  return root
}

type ShapeBuilder = ShapeOptions & { readonly nextIndex: () => number }

/** A shape under construction. */
type ShapeDraft = Omit<Shape, 'attributes' | 'required' | 'element'> & {
  readonly attributes: Map<string, Attribute>
  readonly required: Attribute[]
  element: Shape | undefined
}

const resolveAliases = ({ aliases, actions }: ShapeOptions): ShapeOptions['actions'] =>
  Object.fromEntries(
    Object.entries(actions).map(([path, action]) => {
      const [first = '', ...rest] = path.split('.')
      return [[aliases[first] ?? first, ...rest].join('.'), action]
    }),
  )

/** The paths of all attributes that a codec declares, which are the names allowed in `actions`. */
export const attributePaths = (codec: t.Any): ReadonlyArray<string> =>
  collectPaths(compileShape({ codec, primaryKey: '', cursor: '', aliases: {}, actions: {} }))

const collectPaths = ({ attributes, element }: Shape): ReadonlyArray<string> =>
  element !== undefined
    ? collectPaths(element)
    : [...attributes.values()].flatMap(({ shape }) => [shapePathOf(shape), ...collectPaths(shape)])

/** The codecs with a known structure; any other needs `annotate({ type })`. */
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

const buildShape = (builder: ShapeBuilder, codec: t.Any, name: string, parent: Shape | undefined): ShapeDraft => {
  const [bare, nullable] = stripNull(codec)
  const shape: ShapeDraft = {
    kind: valueKindOf(builder, bare, name, parent),
    nullable: nullable || bare._tag === 'UnknownType',
    name,
    parent,
    index: builder.nextIndex(),
    ...(parent === undefined ? { fieldSpec: builder.fields, fieldIndex: -1 } : fieldSpecOf(parent, name)),
    attributes: new Map(),
    required: [],
    element: undefined,
  }
  if (bare._tag === 'ArrayType' || bare._tag === 'ReadonlyArrayType')
    shape.element = buildShape(builder, bare.type, '', shape)
  if (shape.kind === 'object') declareAttributes(builder, bare, shape)
  return shape
}

const declareAttributes = (builder: ShapeBuilder, codec: KnownCodec, shape: ShapeDraft): void => {
  switch (codec._tag) {
    case 'InterfaceType':
    case 'PartialType':
      for (const [key, type] of Object.entries(codec.props)) {
        const own = buildShape(builder, type, key, shape)
        const attribute = createAttribute(own, builder.actions[shapePathOf(own)])
        shape.attributes.set(key, attribute)
        if (codec._tag === 'InterfaceType') shape.required.push(attribute)
      }
      return
    case 'IntersectionType':
      for (const type of codec.types) declareAttributes(builder, stripNull(type)[0], shape)
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
