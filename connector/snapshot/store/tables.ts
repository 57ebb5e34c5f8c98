import type { JsonSchema } from '../../cdk'
import { type Database, quoteIdentifier, quoteLiteral } from './database'

export type ColumnType = 'BIGINT' | 'DOUBLE' | 'BOOLEAN' | 'VARCHAR' | 'DATE' | 'TIMESTAMPTZ' | 'JSON'

const scalarTypes: Readonly<Record<string, ColumnType>> = { integer: 'BIGINT', number: 'DOUBLE', boolean: 'BOOLEAN' }
const formatTypes: Readonly<Record<string, ColumnType>> = { 'date-time': 'TIMESTAMPTZ', date: 'DATE' }
const textTypes: ReadonlySet<ColumnType> = new Set(['VARCHAR', 'DATE', 'TIMESTAMPTZ'])
/** Airbyte's types for numbers that a double cannot hold exactly. */
const bigNumberTypes: ReadonlySet<unknown> = new Set(['big_integer', 'big_number'])
/** A `$ref` may refer to itself; following stops at this depth. */
const maxReferenceDepth = 16

/**
 * The column type that holds every value of a schema without loss. Objects, arrays and values of several types become JSON, so
 * that no nested attribute is lost and no integer is rounded. `root`: the schema that a `$ref` points into.
 */
export const chooseColumnType = (schema: JsonSchema, root: JsonSchema = {}): ColumnType => {
  const types = new Set(expandAlternatives(schema, root, 0).flatMap(columnTypesOf))
  const [only] = types
  if (only !== undefined && types.size === 1) return only
  return types.size > 0 && [...types].every((type) => textTypes.has(type)) ? 'VARCHAR' : 'JSON'
}

/** The alternatives of a schema, with `$ref`, `anyOf`, `oneOf` and `allOf` resolved. */
const expandAlternatives = (schema: JsonSchema, root: JsonSchema, depth: number): ReadonlyArray<JsonSchema> => {
  if (depth > maxReferenceDepth) return [{}]
  const { $ref: reference, anyOf, oneOf, allOf, ...own } = schema
  const expand = (inner: JsonSchema) => expandAlternatives({ ...own, ...inner }, root, depth + 1)
  if (typeof reference === 'string') return expand(resolveReference(reference, root))
  if (isSchemaList(allOf)) return expand(Object.assign({}, ...allOf))
  const options = [anyOf, oneOf].find(isSchemaList)
  return options === undefined ? [own] : options.flatMap(expand)
}

const isSchemaList = (value: unknown): value is ReadonlyArray<JsonSchema> => Array.isArray(value) && value.length > 0

/** The schema that a pointer such as `#/definitions/time` points at; an empty one if there is none. */
const resolveReference = (reference: string, root: JsonSchema): JsonSchema => {
  if (!reference.startsWith('#/')) return {}
  const steps = reference.slice(2).split('/')
  const target = steps.reduce<unknown>(
    (node, step) => (node as JsonSchema | undefined)?.[step.replaceAll('~1', '/').replaceAll('~0', '~')],
    root,
  )
  return typeof target === 'object' && target !== null ? (target as JsonSchema) : {}
}

const columnTypesOf = ({ type, format, airbyte_type: airbyteType, ...schema }: JsonSchema): ReadonlyArray<ColumnType> =>
  [type ?? enumTypes(schema)]
    .flat()
    .filter((name) => name !== 'null')
    .map((name) => {
      if (name === 'string') return formatTypes[String(format)] ?? 'VARCHAR'
      if (name === 'number' && airbyteType === 'integer') return 'BIGINT'
      return bigNumberTypes.has(airbyteType) ? 'JSON' : (scalarTypes[String(name)] ?? 'JSON')
    })

/** The types of a schema that lists values (`const`, `enum`) and no type. */
const enumTypes = (schema: JsonSchema): ReadonlyArray<string> => {
  const values = 'const' in schema ? [schema.const] : Array.isArray(schema.enum) ? schema.enum : [undefined]
  return values.map((value) => (value === null ? 'null' : Number.isInteger(value) ? 'integer' : typeof value))
}

export type Column = { readonly name: string; readonly type: ColumnType }

/** The last columns of every stream's table, named as Airbyte's destinations name them. */
export const airbyteColumns = [
  ['_airbyte_raw_id', 'UUID'],
  ['_airbyte_extracted_at', 'TIMESTAMPTZ'],
  ['_airbyte_meta', 'JSON'],
  ['_airbyte_generation_id', 'BIGINT'],
] as const

/** One column for each declared attribute, in the schema's order. */
export const columnsFromSchema = (schema: JsonSchema): ReadonlyArray<Column> =>
  Object.entries((schema.properties ?? {}) as Record<string, JsonSchema>).map(([name, property]) => ({
    name,
    type: chooseColumnType(property, schema),
  }))

/** The attribute as text that does not depend on the session's settings; the fingerprint of a row is made of these. */
const canonicalSql = ({ name, type }: Column): string =>
  type === 'TIMESTAMPTZ' ? `epoch_us(${quoteIdentifier(name)})` : `${quoteIdentifier(name)}::VARCHAR`

/** `_airbyte_raw_id`: a fingerprint of the row's declared values. Nulls do not count, so that a new column does not change it. */
export const fingerprintSql = (columns: ReadonlyArray<Column>): string =>
  `md5(concat_ws(chr(31), ''${columns.map((column) => `, ${quoteLiteral(`${column.name}=`)} || ${canonicalSql(column)}`).join('')}))::UUID`

/** A stream's table as it is in the file; `columns` without those of `airbyteColumns`. */
export type Table = {
  readonly name: string
  readonly columns: ReadonlyArray<Column>
  /** Whether old versions of its rows are kept in a history table. */
  readonly history: boolean
}

/** The name of the table that keeps the versions which the stream's own table no longer has. */
export const historyTableName = (stream: string): string => `_history_${stream}`

/** Every stream's table in a file. `attached`: the name of an attached file, in place of the one that was opened. */
export const listStreamTables = async (db: Database, attached?: string): Promise<ReadonlyArray<Table>> => {
  const airbyteNames = new Set<string>(airbyteColumns.map(([column]) => column))
  const databaseSql = attached === undefined ? 'current_database()' : quoteLiteral(attached)
  const tables = new Map<string, Array<Column>>()
  for (const row of await db.query(`
    SELECT table_name, column_name, data_type FROM duckdb_columns()
    WHERE database_name = ${databaseSql}
      AND table_name IN (SELECT stream FROM ${attached === undefined ? '' : `${quoteIdentifier(attached)}.`}_streams) ORDER BY table_name, column_index`)) {
    const columns = tables.get(String(row.table_name)) ?? []
    tables.set(String(row.table_name), columns)
    if (!airbyteNames.has(String(row.column_name)))
      columns.push({ name: String(row.column_name), type: toColumnType(String(row.data_type)) })
  }
  const histories = await db.query(
    `SELECT table_name AS name FROM duckdb_tables() WHERE database_name = ${databaseSql} AND starts_with(table_name, ${quoteLiteral(historyTableName(''))})`,
  )
  const historyNames = new Set(histories.map(({ name }) => String(name)))
  return [...tables].map(([name, columns]) => ({ name, columns, history: historyNames.has(historyTableName(name)) }))
}

const toColumnType = (type: string): ColumnType =>
  (type === 'TIMESTAMP WITH TIME ZONE' ? 'TIMESTAMPTZ' : type) as ColumnType

/** The stream that deletions and children refer to. */
export const reviewsTableName = 'reviews'
export const deletionsTableName = 'deleted_reviews'
const tombstoneColumnNames = ['_ab_cdc_deleted_at', '_sdc_deleted_at']

const hasTypedColumn = ({ columns }: Table, name: string, type: string): boolean =>
  columns.some((column) => column.name === name && column.type === type)

/** The columns of a table that hold the id of a row's review and the modified time of the review's version. */
export type ReviewReference = { readonly table: Table; readonly id: string; readonly time: string }

/** The reference of a table to reviews; undefined for a table that refers to none. */
export const findReviewReference = (table: Table): ReviewReference | undefined => {
  if (table.name === reviewsTableName || table.name === deletionsTableName)
    return hasTypedColumn(table, 'id', 'BIGINT') && hasTypedColumn(table, 'modifiedTime', 'TIMESTAMPTZ')
      ? { table, id: 'id', time: 'modifiedTime' }
      : undefined
  return hasTypedColumn(table, 'reviewId', 'BIGINT') && hasTypedColumn(table, 'reviewModifiedTime', 'TIMESTAMPTZ')
    ? { table, id: 'reviewId', time: 'reviewModifiedTime' }
    : undefined
}

/** The column that is set in tombstones only. */
export const findTombstoneColumn = ({ columns }: Pick<Table, 'columns'>): string | undefined =>
  columns.map(({ name }) => name).find((name) => tombstoneColumnNames.includes(name))
