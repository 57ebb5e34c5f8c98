import type { JsonSchema } from '../../cdk'
import { quoteIdentifier, quoteLiteral } from './database'

export type ColumnType = 'BIGINT' | 'DOUBLE' | 'BOOLEAN' | 'VARCHAR' | 'DATE' | 'TIMESTAMPTZ' | 'JSON'

const scalarTypes: Readonly<Record<string, ColumnType>> = { integer: 'BIGINT', number: 'DOUBLE', boolean: 'BOOLEAN' }
const formatTypes: Readonly<Record<string, ColumnType>> = { 'date-time': 'TIMESTAMPTZ', date: 'DATE' }
const textTypes: ReadonlySet<ColumnType> = new Set(['VARCHAR', 'DATE', 'TIMESTAMPTZ'])
/** Airbyte's numbers that no double holds. */
const bigNumberTypes: ReadonlySet<unknown> = new Set(['big_integer', 'big_number'])
/** A reference that leads to itself leads nowhere. */
const maxReferenceDepth = 16

/**
 * The type that holds every value its schema allows without loss. Objects, arrays and what has no single type stay JSON, so
 * that no nested attribute is lost and no integer rounded. `root`: where references lead.
 */
export const chooseColumnType = (schema: JsonSchema, root: JsonSchema = {}): ColumnType => {
  const types = new Set(expandAlternatives(schema, root, 0).flatMap(columnTypesOf))
  const [only] = types
  if (only !== undefined && types.size === 1) return only
  return types.size > 0 && [...types].every((type) => textTypes.has(type)) ? 'VARCHAR' : 'JSON'
}

/** The schemas of which a value follows one; those that only combine or refer are followed. */
const expandAlternatives = (schema: JsonSchema, root: JsonSchema, depth: number): ReadonlyArray<JsonSchema> => {
  if (depth > maxReferenceDepth) return [{}]
  const { $ref: reference, anyOf, oneOf, allOf, ...own } = schema
  const next = (inner: JsonSchema) => expandAlternatives({ ...own, ...inner }, root, depth + 1)
  if (typeof reference === 'string') return next(resolveReference(reference, root))
  if (isSchemaList(allOf)) return next(Object.assign({}, ...allOf))
  const options = [anyOf, oneOf].find(isSchemaList)
  return options === undefined ? [own] : options.flatMap(next)
}

const isSchemaList = (value: unknown): value is ReadonlyArray<JsonSchema> => Array.isArray(value) && value.length > 0

/** What a pointer such as `#/definitions/time` points at. */
const resolveReference = (reference: string, root: JsonSchema): JsonSchema => {
  if (!reference.startsWith('#/')) return {}
  const steps = reference.slice(2).split('/')
  const found = steps.reduce<unknown>(
    (at, step) => (at as JsonSchema | undefined)?.[step.replaceAll('~1', '/').replaceAll('~0', '~')],
    root,
  )
  return typeof found === 'object' && found !== null ? (found as JsonSchema) : {}
}

const columnTypesOf = ({ type, format, airbyte_type: precise, ...schema }: JsonSchema): ReadonlyArray<ColumnType> =>
  [type ?? enumTypes(schema)]
    .flat()
    .filter((name) => name !== 'null')
    .map((name) => {
      if (name === 'string') return formatTypes[String(format)] ?? 'VARCHAR'
      if (name === 'number' && precise === 'integer') return 'BIGINT'
      return bigNumberTypes.has(precise) ? 'JSON' : (scalarTypes[String(name)] ?? 'JSON')
    })

/** Where a schema names values in place of a type. */
const enumTypes = (schema: JsonSchema): ReadonlyArray<string> => {
  const values = 'const' in schema ? [schema.const] : Array.isArray(schema.enum) ? schema.enum : [undefined]
  return values.map((value) => (value === null ? 'null' : Number.isInteger(value) ? 'integer' : typeof value))
}

export type Column = { readonly name: string; readonly type: ColumnType }

/** The columns every stream's table ends with, under the names Airbyte's destinations give them. */
export const metaColumns = [
  ['_airbyte_raw_id', 'UUID'],
  ['_airbyte_extracted_at', 'TIMESTAMPTZ'],
  ['_airbyte_meta', 'JSON'],
  ['_airbyte_generation_id', 'BIGINT'],
] as const

/** The declared attributes in the schema's order. */
export const columnsFromSchema = (schema: JsonSchema): ReadonlyArray<Column> =>
  Object.entries((schema.properties ?? {}) as Record<string, JsonSchema>).map(([name, property]) => ({
    name,
    type: chooseColumnType(property, schema),
  }))

/** The attribute as text that does not depend on the session: what the fingerprint of a row is made of. */
const canonicalSql = ({ name, type }: Column): string =>
  type === 'TIMESTAMPTZ' ? `epoch_us(${quoteIdentifier(name)})` : `${quoteIdentifier(name)}::VARCHAR`

/** `_airbyte_raw_id`: a fingerprint of the row's own values; nulls do not count, so a new column leaves it as it was. */
export const fingerprintSql = (columns: ReadonlyArray<Column>): string =>
  `md5(concat_ws(chr(31), ''${columns.map((column) => `, ${quoteLiteral(`${column.name}=`)} || ${canonicalSql(column)}`).join('')}))::UUID`
