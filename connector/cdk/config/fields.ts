import { pipe } from 'fp-ts/function'
import * as t from 'io-ts'
import { findNearestName } from '../program/names'
import { annotate, annotationsOf, declaredProperties, defined, type JsonSchema, toJsonSchema } from '../schema'

/** A codec that accepts what `is` accepts; `schema` expresses the same as JSON schema keywords. */
const createField = <A>(name: string, schema: JsonSchema, is: (value: unknown) => value is A): t.Type<A> =>
  annotate(schema)(
    new t.Type<A>(name, is, (value, context) => (is(value) ? t.success(value) : t.failure(value, context)), t.identity),
  )

/** An integer within inclusive bounds. */
export const integerField = (minimum: number, maximum?: number): t.Type<number> =>
  createField(
    'integer',
    { type: 'integer', minimum, ...defined({ maximum }) },
    (value): value is number =>
      typeof value === 'number' && Number.isInteger(value) && value >= minimum && value <= (maximum ?? value),
  )

/** A number within inclusive bounds. */
export const numberField = (minimum: number, maximum: number): t.Type<number> =>
  createField(
    'number',
    { type: 'number', minimum, maximum },
    (value): value is number => typeof value === 'number' && value >= minimum && value <= maximum,
  )

/** A string that matches `pattern`. */
export const patternField = (pattern: RegExp, schema: JsonSchema = {}): t.Type<string> =>
  createField(
    'string',
    { type: 'string', pattern: pattern.source, ...schema },
    (value): value is string => typeof value === 'string' && pattern.test(value),
  )

const timePattern = /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}:\d{2}(\.\d{1,9})?(Z|[+-]\d{2}:\d{2}))?$/

/** A date, or a time with a zone. `Date.parse` alone would take 30 February for 1 March. */
const isTime = (value: unknown): value is string =>
  typeof value === 'string' &&
  timePattern.test(value) &&
  !Number.isNaN(Date.parse(value)) &&
  new Date(`${value.slice(0, 10)}T00:00:00Z`).getUTCDate() === Number(value.slice(8, 10))

/** An ISO 8601 time with a zone, or a date, which becomes its first instant in UTC. */
export const timeField: t.Type<string> = annotate({
  type: 'string',
  format: 'date-time',
  pattern: timePattern.source,
})(
  new t.Type<string>(
    'time',
    isTime,
    (value, context) =>
      isTime(value) ? t.success(value.includes('T') ? value : `${value}T00:00:00Z`) : t.failure(value, context),
    t.identity,
  ),
)

/** A non-empty string. */
export const textField: t.Type<string> = createField(
  'text',
  { type: 'string', minLength: 1 },
  (value): value is string => typeof value === 'string' && value.length > 0,
)

/** One of these words. */
export const enumField = <K extends string>(...words: ReadonlyArray<K>): t.Type<K> =>
  createField('word', { type: 'string', enum: words }, (value): value is K =>
    (words as ReadonlyArray<unknown>).includes(value),
  )

export const listField = <A>(codec: t.Type<A, unknown>, schema: JsonSchema = {}): t.Type<ReadonlyArray<A>, unknown> =>
  annotate(schema)(t.readonlyArray(codec as t.Type<A>))

/** A key that may be left out; the schema does not require it. */
export const optionalField = <A>(codec: t.Type<A, unknown>): t.Type<A | undefined, unknown> =>
  Object.assign(
    annotate(toJsonSchema(codec))(
      new t.Type<A | undefined, unknown>(
        codec.name,
        (value): value is A | undefined => value === undefined || codec.is(value),
        (value, context) => (value === undefined ? t.success(undefined) : codec.validate(value, context)),
        (value) => (value === undefined ? undefined : codec.encode(value)),
      ),
    ),
    { optional: true },
  )

/** A key with the default `value`, which the schema shows. */
export const fieldWithDefault = <A>(codec: t.Type<A, unknown>, value: A): t.Type<A, unknown> =>
  Object.assign(
    annotate({ ...toJsonSchema(codec), default: codec.encode(value) })(
      new t.Type<A, unknown>(
        codec.name,
        codec.is,
        (given, context) => (given === undefined ? t.success(value) : codec.validate(given, context)),
        codec.encode,
      ),
    ),
    { optional: true },
  )

/** The default as part of a description; an empty string or list is not mentioned. */
const describeDefault = (value: unknown): string => {
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  return value === undefined || text === '' || text === '[]' ? '' : `; ${text} if left out`
}

/**
 * The schema of a group that may be left out. A platform's form fills in the defaults of every group and asks for its
 * required keys, even if nobody touched the group. So the schema has neither keyword, and the descriptions name the
 * defaults instead.
 */
const toOptionalGroup = (schema: JsonSchema): JsonSchema => {
  const { required: _, default: value, description, ...rest } = schema
  return {
    ...rest,
    ...(description === undefined ? {} : { description: `${description}${describeDefault(value)}` }),
    ...(t.UnknownRecord.is(schema.properties)
      ? { properties: mapValues(schema.properties as Readonly<Record<string, JsonSchema>>, toOptionalGroup) }
      : {}),
  }
}

const mapValues = <A, B>(record: Readonly<Record<string, A>>, f: (value: A) => B): Readonly<Record<string, B>> =>
  Object.fromEntries(Object.entries(record).map(([key, value]) => [key, f(value)]))

/** An object whose keys all have defaults. If the object is left out, all defaults apply. */
export const sectionField = <A>(codec: t.Type<A, unknown>): t.Type<A, unknown> =>
  Object.assign(
    annotate(toOptionalGroup(toJsonSchema(codec)))(
      new t.Type<A, unknown>(
        codec.name,
        codec.is,
        (given, context) => codec.validate(given === undefined ? {} : given, context),
        codec.encode,
      ),
    ),
    { optional: true },
  )

/** A form may have filled in `value` by itself: it is empty, or the default that `schema` declares. */
const isUntouched = (schema: JsonSchema, value: unknown): boolean => {
  if (value === undefined || value === null || value === '') return true
  const types = [schema.type].flat()
  if (Array.isArray(value)) return value.length === 0 && types.includes('array')
  if ('default' in schema && JSON.stringify(value) === JSON.stringify(schema.default)) return true
  const properties = t.UnknownRecord.is(schema.properties) ? schema.properties : undefined
  return (
    t.UnknownRecord.is(value) &&
    types.includes('object') &&
    Object.entries(value).every(([key, inner]) => {
      const declared = properties?.[key]
      return t.UnknownRecord.is(declared) && isUntouched(declared, inner)
    })
  )
}

/**
 * An object that may be left out, with keys that are required if it is given. An object with only default values counts
 * as left out.
 */
export const optionalGroupField = <A>(codec: t.Type<A, unknown>): t.Type<A | undefined, unknown> => {
  const schema = toJsonSchema(codec)
  return Object.assign(
    annotate(toOptionalGroup(schema))(
      new t.Type<A | undefined, unknown>(
        codec.name,
        (value): value is A | undefined => value === undefined || codec.is(value),
        (value, context) => (isUntouched(schema, value) ? t.success(undefined) : codec.validate(value, context)),
        (value) => (value === undefined ? undefined : codec.encode(value)),
      ),
    ),
    { optional: true },
  )
}

/**
 * A group that may be left out, with the key `enabled`. If `enabled` is true, only what `whenEnabled` requires is
 * needed. If it is false, the group counts as left out. Without `enabled`, the group must be `complete`. `true` or
 * `false` may replace the whole group.
 */
export const switchedGroupField = <A, B extends A>(
  whenEnabled: t.Type<A, unknown>,
  complete: t.Type<B, unknown>,
): t.Type<A | undefined, unknown> => {
  const group = optionalGroupField(complete)
  return Object.assign(
    annotate({})(
      new t.Type<A | undefined, unknown>(
        group.name,
        (value): value is A | undefined => value === undefined || whenEnabled.is(value),
        (value, context) => {
          const given = typeof value === 'boolean' ? { enabled: value } : value
          const enabled = t.UnknownRecord.is(given) ? given.enabled : undefined
          if (enabled === false) return t.success(undefined)
          return enabled === true ? whenEnabled.validate(given, context) : group.validate(given, context)
        },
        (value) => (value === undefined ? undefined : whenEnabled.encode(value)),
      ),
    ),
    { optional: true, schema: annotationsOf(group) },
  )
}

/**
 * Alternatives distinguished by a constant. The schema has `oneOf` for forms, and errors refer to the alternative that
 * the user chose.
 */
export const oneOfField = <M extends Readonly<Record<string, t.Mixed>>>(
  key: string,
  members: M,
): t.Type<t.TypeOf<M[keyof M]>, unknown> => {
  const choose = (value: unknown): t.Mixed | undefined =>
    t.UnknownRecord.is(value) ? members[String(value[key])] : undefined
  const unknownKind = (value: unknown, context: t.Context) =>
    t.UnknownRecord.is(value)
      ? t.failure(value[key], t.appendContext(context, key, enumField(...Object.keys(members)), value[key]))
      : t.failure(value, context)
  return annotate({ type: 'object', oneOf: Object.values(members).map(toJsonSchema) })(
    new t.Type<t.TypeOf<M[keyof M]>, unknown>(
      'alternatives',
      (value): value is t.TypeOf<M[keyof M]> => choose(value)?.is(value) ?? false,
      (value, context) => choose(value)?.validate(value, context) ?? unknownKind(value, context),
      (value) => choose(value)?.encode(value),
    ),
  )
}

/** Title and description of a setting in forms and docs. */
export const describeField = (title: string, description: string, more: JsonSchema = {}) =>
  annotate({ title, description, ...more })

/** Numbers the keys of an object in the order they are declared, for forms. */
export const orderFields = <P extends t.Props>(props: P): t.TypeC<P> =>
  t.type(
    Object.fromEntries(
      Object.entries(props).map(([key, codec], order) => [key, Object.assign(annotate({ order })(codec))]),
    ) as unknown as P,
  )

/** The alternatives of `oneOf` whose constants appear in `value`; all of them if none do. */
const chooseAlternatives = (schema: JsonSchema, value: unknown): ReadonlyArray<JsonSchema> => {
  const all = (schema.oneOf as ReadonlyArray<JsonSchema> | undefined) ?? [schema]
  const chosen = all.filter(({ properties }) =>
    Object.entries((properties ?? {}) as Readonly<Record<string, JsonSchema>>).every(
      ([key, inner]) => !('const' in inner) || (t.UnknownRecord.is(value) && value[key] === inner.const),
    ),
  )
  return chosen.length === 0 ? all : chosen
}

/** The keys of `value`, at any depth, that `schema` does not declare. They are probably misspelled. */
export const findUnknownKeys = (schema: JsonSchema, value: unknown, path = ''): ReadonlyArray<string> => {
  const alternatives = chooseAlternatives(schema, value)
  if (!t.UnknownRecord.is(value) || alternatives.every(({ properties }) => properties === undefined)) return []
  const known: Record<string, JsonSchema> = Object.assign({}, ...alternatives.map(({ properties }) => properties ?? {}))
  return Object.entries(value).flatMap(([key, inner]) =>
    pipe(known[key], (declared) =>
      declared === undefined ? [`${path}${key}`] : findUnknownKeys(declared, inner, `${path}${key}.`),
    ),
  )
}

/** The paths of all keys that a schema declares. */
const declaredPaths = (schema: JsonSchema, path = ''): ReadonlyArray<string> =>
  Object.entries(declaredProperties(schema)).flatMap(([key, inner]) => [
    `${path}${key}`,
    ...declaredPaths(inner, `${path}${key}.`),
  ])

const lastKey = (path: string): string => path.slice(path.lastIndexOf('.') + 1)

/**
 * Reports that a key has no effect and suggests the intended one: a similar key beside it, or a key of that name
 * elsewhere.
 */
export const describeUnknownKey = (schema: JsonSchema, path: string): string => {
  const paths = declaredPaths(schema)
  if (paths.includes(path))
    return (
      `${path} does not belong to what the config chooses for ` +
      `${path.slice(0, path.lastIndexOf('.'))} and has no effect.`
    )
  const parent = path.slice(0, path.lastIndexOf('.') + 1)
  const siblings = paths.filter((other) => other.startsWith(parent) && !other.slice(parent.length).includes('.'))
  const nearest = findNearestName(lastKey(path), siblings.map(lastKey))
  const meant =
    nearest === undefined
      ? paths.find((other) => lastKey(other).toLowerCase() === lastKey(path).toLowerCase())
      : `${parent}${nearest}`
  const hint = meant === undefined ? '' : ` (did you mean ${meant}?)`
  return `${path} is not a key of the config and has no effect${hint}.`
}
