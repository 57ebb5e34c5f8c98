import * as O from 'fp-ts/Option'
import * as t from 'io-ts'

/** A draft 7 JSON schema. */
export type JsonSchema = { readonly [keyword: string]: unknown }

type AnnotatedCodec = { readonly schema?: JsonSchema }

/** A copy of `codec` with JSON schema keywords that the codec does not imply, or with the type of a custom codec. */
export const annotate =
  (schema: JsonSchema) =>
  <C extends t.Any>(codec: C): C =>
    Object.assign(Object.create(Object.getPrototypeOf(codec)), codec, {
      schema: { ...(codec as AnnotatedCodec).schema, ...schema },
    })

/** The keywords that `annotate` added to a codec. */
export const annotationsOf = (codec: t.Any): JsonSchema => (codec as AnnotatedCodec).schema ?? {}

/** A codec whose value may also be null or missing, because clients write null for a value that is not set. */
export const nullish = <C extends t.Mixed>(codec: C) => t.union([codec, t.null, t.undefined])

/** The codecs whose structure is known; any other needs `annotate({ type })`. */
type StructuralCodec =
  | t.StringType
  | t.NumberType
  | t.BooleanType
  | t.NullType
  | t.UnknownType
  | t.AnyDictionaryType
  | t.LiteralType<string | number | boolean>
  | t.KeyofType<Record<string, unknown>>
  | t.ArrayType<t.Any>
  | t.ReadonlyArrayType<t.Any>
  | t.InterfaceType<t.Props>
  | t.PartialType<t.Props>
  | t.IntersectionType<t.Any[]>
  | t.UnionType<t.Any[]>
  | t.RefinementType<t.Any>
  | t.ReadonlyType<t.Any>
  | t.ExactType<t.Any>

/** The codec as a JSON schema. Throws if a codec has no schema; that happens at program start, not later. */
export const toJsonSchema = (codec: t.Any): JsonSchema => {
  const own = annotationsOf(codec)
  return 'type' in own || 'oneOf' in own ? own : { ...structureOf(codec as unknown as StructuralCodec), ...own }
}

const structureOf = (codec: StructuralCodec): JsonSchema => {
  switch (codec._tag) {
    case 'StringType':
      return { type: 'string' }
    case 'NumberType':
      return { type: 'number' }
    case 'BooleanType':
      return { type: 'boolean' }
    case 'NullType':
      return { type: 'null' }
    case 'UnknownType':
      return {}
    case 'AnyDictionaryType':
      return { type: 'object', additionalProperties: true }
    case 'LiteralType':
      return { type: typeof codec.value, const: codec.value }
    case 'KeyofType':
      return { type: 'string', enum: Object.keys(codec.keys) }
    case 'ArrayType':
    case 'ReadonlyArrayType':
      return { type: 'array', items: toJsonSchema(codec.type) }
    case 'InterfaceType':
      return objectSchema(
        codec.props,
        Object.keys(codec.props).filter((key) => !('optional' in (codec.props[key] ?? {}))),
      )
    case 'PartialType':
      return objectSchema(codec.props, [])
    case 'IntersectionType':
      return codec.types.map(toJsonSchema).reduce(mergeSchemas)
    case 'UnionType':
      return unionSchema(codec.types.map(toJsonSchema))
    case 'RefinementType':
    case 'ReadonlyType':
    case 'ExactType':
      return toJsonSchema(codec.type)
    default:
      throw new Error(`No JSON schema for the codec ${(codec as t.Any).name}: annotate it with a type`)
  }
}

const objectSchema = (props: t.Props, required: ReadonlyArray<string>): JsonSchema => ({
  type: 'object',
  properties: Object.fromEntries(Object.entries(props).map(([key, codec]) => [key, toJsonSchema(codec)])),
  ...(required.length === 0 ? {} : { required }),
  additionalProperties: true,
})

const mergeSchemas = (a: JsonSchema, b: JsonSchema): JsonSchema => {
  const required = [...((a.required as string[]) ?? []), ...((b.required as string[]) ?? [])]
  return {
    ...a,
    ...b,
    properties: { ...(a.properties as object), ...(b.properties as object) },
    ...(required.length === 0 ? {} : { required }),
  }
}

/**
 * The schema of `X | null`, with null as the first type. Other unions have no schema, because destinations do not
 * support `anyOf`.
 */
const unionSchema = (members: ReadonlyArray<JsonSchema>): JsonSchema => {
  const [only, ...others] = members.filter(({ type }) => type !== 'null')
  if (only === undefined || others.length > 0) throw new Error('A union of types has no plain JSON schema: annotate it')
  return members.length === 1 ? only : { ...only, type: ['null', ...[only.type].flat()] }
}

/** A complete schema, with the version of its language. */
export const addSchemaVersion = (schema: JsonSchema): JsonSchema => ({
  $schema: 'http://json-schema.org/draft-07/schema#',
  ...schema,
})

/** The top-level attributes that a JSON schema declares; none if it declares none. */
export const declaredColumns = (schema: unknown): O.Option<ReadonlySet<string>> => {
  const properties = t.UnknownRecord.is(schema) && t.UnknownRecord.is(schema.properties) ? schema.properties : {}
  const names = Object.keys(properties)
  return names.length === 0 ? O.none : O.some(new Set(names))
}

/** The keys that an object's schema declares, including those of all its alternatives. */
export const declaredProperties = (schema: JsonSchema): Readonly<Record<string, JsonSchema>> =>
  Object.assign(
    {},
    schema.properties,
    ...(Array.isArray(schema.oneOf) ? schema.oneOf : []).map((one: JsonSchema) => one.properties),
  )

/** An object in which undefined members are left out. */
type Defined<A> = { readonly [K in keyof A]?: Exclude<A[K], undefined> }

/** The members that are not undefined: `{ ...defined({ limit }) }` has a `limit` only if there is one. */
export const defined = <A extends object>(members: A): Defined<A> =>
  Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as Defined<A>

/** `f` of a value, or undefined if there is none. */
export const mapDefined = <A, B>(value: A | undefined, f: (value: A) => B): B | undefined =>
  value === undefined ? undefined : f(value)
