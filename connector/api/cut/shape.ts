import type * as t from 'io-ts'
import { annotations } from '../../cdk/schema'

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

/** A codec as the walk reads it: one node per place, so that a node may remember where the walk stands in it. */
export type Shape = {
  readonly kind: Kind
  readonly nullable: boolean
  readonly name: string
  readonly parent: Shape | undefined
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
  /** Its key as it comes, in quotes, and the same four bytes at a time. */
  readonly token: Uint8Array
  readonly words: Int32Array
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
    words: Int32Array.from({ length: token.length >> 2 }, (_, i) => token.readInt32LE(i * 4)),
    rename: key === shape.name ? undefined : JSON.stringify(shape.name),
    action,
    undeclared,
    slot,
    next: undefined,
  }
}

/** A place that may hold anything, unless it is told what. */
export const place = (name: string, parent: Shape | undefined, kind: Kind = 'any', nullable = true): Shape => ({
  kind,
  nullable,
  name,
  parent,
  attributes: new Map(),
  required: [],
  element: undefined,
  at: 0,
  first: undefined,
})

export type ShapeOptions = {
  readonly codec: t.Any
  readonly key: string
  readonly cursor: string
  /** Top-level attributes that arrive under another name: from that name to the declared one. */
  readonly rename: Readonly<Record<string, string>>
  /** By path, such as `contents.response`, under either name of what is renamed; arrays are walked. */
  readonly actions: Readonly<Record<string, Action>>
}

/** The table of a record's codec; throws at declaration on a codec it cannot read. */
export const toShape = (options: ShapeOptions): Shape => {
  const root = build({ ...options, actions: renamed(options) }, options.codec, '', undefined)
  if (root.kind !== 'object') throw new Error('The codec of a record must be an object')
  for (const [from, to] of Object.entries(options.rename)) {
    const attribute = root.attributes.get(to)
    if (attribute !== undefined)
      root.attributes.set(from, attributeOf(attribute.shape, attribute, from, attribute.slot))
  }
  // What is kept of undeclared attributes leaves under this name, whoever declares it.
  root.attributes.delete(undeclaredAttributes)
  return root
}

const renamed = ({ rename, actions }: ShapeOptions): ShapeOptions['actions'] =>
  Object.fromEntries(
    Object.entries(actions).map(([path, action]) => {
      const [first = '', ...rest] = path.split('.')
      return [[rename[first] ?? first, ...rest].join('.'), action]
    }),
  )

/** The paths of all attributes that a codec declares: what `actions` may name. */
export const attributePaths = (codec: t.Any): ReadonlyArray<string> =>
  pathsIn(toShape({ codec, key: '', cursor: '', rename: {}, actions: {} }))

const pathsIn = ({ attributes, element }: Shape): ReadonlyArray<string> =>
  element !== undefined
    ? pathsIn(element)
    : [...attributes.values()].flatMap(({ shape }) => [pathOf(shape), ...pathsIn(shape)])

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

/** The codecs that say their structure; any other needs `annotate({ type })`. */
type Known =
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

const build = (options: ShapeOptions, codec: t.Any, name: string, parent: Shape | undefined): Shape => {
  const [bare, nullable] = withoutNull(codec)
  const shape = place(name, parent, kindOf(options, bare, name, parent), nullable || bare._tag === 'UnknownType')
  if (bare._tag === 'ArrayType' || bare._tag === 'ReadonlyArrayType')
    shape.element = build(options, bare.type, '', shape)
  if (shape.kind === 'object') declare(options, bare, shape)
  return shape
}

const declare = (options: ShapeOptions, codec: Known, shape: Shape): void => {
  switch (codec._tag) {
    case 'InterfaceType':
    case 'PartialType':
      for (const [key, type] of Object.entries(codec.props)) {
        const own = build(options, type, key, shape)
        const attribute = attributeOf(own, { undeclared: undefined, action: options.actions[pathOf(own)] })
        shape.attributes.set(key, attribute)
        if (codec._tag === 'InterfaceType') shape.required.push(attribute)
      }
      return
    case 'IntersectionType':
      for (const type of codec.types) declare(options, withoutNull(type)[0], shape)
  }
}

const kindOf = (options: ShapeOptions, codec: Known, name: string, parent: Shape | undefined): Kind => {
  if (parent !== undefined && parent.parent === undefined) {
    if (name === options.key) return 'key'
    if (name === options.cursor) return 'cursor'
  }
  const { type, format } = annotations(codec)
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

const withoutNull = (codec: t.Any): readonly [Known, boolean] => {
  const known = codec as unknown as Known
  switch (known._tag) {
    case 'ReadonlyType':
    case 'ExactType':
      return withoutNull(known.type)
    case 'UnionType': {
      const [only, ...others] = known.types.filter((type) => (type as unknown as Known)._tag !== 'NullType')
      if (only === undefined || others.length > 0) throw new Error(`No shape for the union ${known.name}`)
      return [withoutNull(only)[0], known.types.length > 1]
    }
    default:
      return [known, false]
  }
}
