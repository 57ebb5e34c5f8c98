import type * as t from 'io-ts'
import { annotations } from '../../cdk/schema'
import {
  type Action,
  attributeOf,
  type Kind,
  pathOf,
  place,
  type Shape,
  undeclaredAttributes,
  type Wanted,
} from './shape'

export type ShapeOptions = {
  readonly codec: t.Any
  readonly key: string
  readonly cursor: string
  /** Top-level attributes that arrive under another name: from that name to the declared one. */
  readonly rename: Readonly<Record<string, string>>
  /** By path, such as `contents.response`, under either name of what is renamed; arrays are walked. */
  readonly actions: Readonly<Record<string, Action>>
  /** The members to note the places of. */
  readonly wanted?: Wanted | undefined
}

/** The table of a record's codec; throws at declaration on a codec it cannot read, and on an action upon key or cursor. */
export const toShape = (options: ShapeOptions): Shape => {
  const root = build({ ...options, actions: renamed(options) }, options.codec, '', undefined)
  if (root.kind !== 'object') throw new Error('The codec of a record must be an object')
  for (const [from, to] of Object.entries(options.rename)) {
    const attribute = root.attributes.get(to)
    if (attribute !== undefined)
      root.attributes.set(from, attributeOf(attribute.shape, attribute, from, attribute.slot))
  }
  for (const { shape, action } of root.attributes.values())
    if (action !== undefined && (shape.kind === 'key' || shape.kind === 'cursor'))
      throw new Error(`${shape.name} identifies a record: it can be neither dropped nor hashed`)
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
  const kind = kindOf(options, bare, name, parent)
  const shape = place(name, parent, kind, nullable || bare._tag === 'UnknownType', options.wanted)
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
