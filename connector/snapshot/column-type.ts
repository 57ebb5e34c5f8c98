import type { JsonSchema } from '../cdk/schema'

export type ColumnType = 'BIGINT' | 'DOUBLE' | 'BOOLEAN' | 'VARCHAR' | 'DATE' | 'TIMESTAMPTZ' | 'JSON'

const scalars: Readonly<Record<string, ColumnType>> = { integer: 'BIGINT', number: 'DOUBLE', boolean: 'BOOLEAN' }
const formats: Readonly<Record<string, ColumnType>> = { 'date-time': 'TIMESTAMPTZ', date: 'DATE' }
const texts: ReadonlySet<ColumnType> = new Set(['VARCHAR', 'DATE', 'TIMESTAMPTZ'])
/** Airbyte's numbers that no double holds. */
const beyondDoubles: ReadonlySet<unknown> = new Set(['big_integer', 'big_number'])
/** A reference that leads to itself leads nowhere. */
const deepest = 16

/**
 * The type that holds every value its schema allows without loss. Objects, arrays and what has no single type stay JSON, so
 * that no nested attribute is lost and no integer rounded. `root`: where references lead.
 */
export const columnType = (schema: JsonSchema, root: JsonSchema = {}): ColumnType => {
  const types = new Set(alternatives(schema, root, 0).flatMap(typesOf))
  const [only] = types
  if (only !== undefined && types.size === 1) return only
  return types.size > 0 && [...types].every((type) => texts.has(type)) ? 'VARCHAR' : 'JSON'
}

/** The schemas of which a value follows one; those that only combine or refer are followed. */
const alternatives = (schema: JsonSchema, root: JsonSchema, depth: number): ReadonlyArray<JsonSchema> => {
  if (depth > deepest) return [{}]
  const { $ref: reference, anyOf, oneOf, allOf, ...own } = schema
  const next = (inner: JsonSchema) => alternatives({ ...own, ...inner }, root, depth + 1)
  if (typeof reference === 'string') return next(referred(reference, root))
  if (isList(allOf)) return next(Object.assign({}, ...allOf))
  const options = [anyOf, oneOf].find(isList)
  return options === undefined ? [own] : options.flatMap(next)
}

const isList = (value: unknown): value is ReadonlyArray<JsonSchema> => Array.isArray(value) && value.length > 0

/** What a pointer such as `#/definitions/time` points at. */
const referred = (reference: string, root: JsonSchema): JsonSchema => {
  if (!reference.startsWith('#/')) return {}
  const steps = reference.slice(2).split('/')
  const found = steps.reduce<unknown>(
    (at, step) => (at as JsonSchema | undefined)?.[step.replaceAll('~1', '/').replaceAll('~0', '~')],
    root,
  )
  return typeof found === 'object' && found !== null ? (found as JsonSchema) : {}
}

const typesOf = ({ type, format, airbyte_type: precise, ...schema }: JsonSchema): ReadonlyArray<ColumnType> =>
  [type ?? valueTypes(schema)]
    .flat()
    .filter((name) => name !== 'null')
    .map((name) => {
      if (name === 'string') return formats[String(format)] ?? 'VARCHAR'
      if (name === 'number' && precise === 'integer') return 'BIGINT'
      return beyondDoubles.has(precise) ? 'JSON' : (scalars[String(name)] ?? 'JSON')
    })

/** Where a schema names values in place of a type. */
const valueTypes = (schema: JsonSchema): ReadonlyArray<string> => {
  const values = 'const' in schema ? [schema.const] : Array.isArray(schema.enum) ? schema.enum : [undefined]
  return values.map((value) => (value === null ? 'null' : Number.isInteger(value) ? 'integer' : typeof value))
}
