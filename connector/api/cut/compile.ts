import type * as t from 'io-ts'
import { annotationsOf } from '../../cdk/schema'
import {
  createAttribute,
  createShape,
  type FieldTree,
  type PrivacyAction,
  type Shape,
  shapePathOf,
  unknownAttributesKey,
  type ValueKind,
} from './shape'

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
