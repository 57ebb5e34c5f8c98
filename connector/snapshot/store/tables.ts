import { createHash } from 'node:crypto'
import type { JsonSchema } from '../../cdk'
import { tombstoneColumnNames } from '../../cdk'
import { type Database, quoteIdentifier, quoteLiteral } from './database'
import type { RowValues } from './values'

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

/** The members that a schema declares by name; none where it declares none. `root`: the schema that a `$ref` points into. */
export const listMembers = (schema: JsonSchema, root: JsonSchema): Readonly<Record<string, JsonSchema>> =>
  Object.assign({}, ...expandAlternatives(schema, root, 0).map(({ properties }) => properties ?? {}))

/** A name of a path that is not declared: it follows `parent`, whose members are known. */
export type UnknownMember = {
  readonly parent: ReadonlyArray<string>
  readonly unknown: string
  readonly known: ReadonlyArray<string>
}

/** The declared path that a path below a schema means, whatever its case, and the type of its values. */
export const followMembers = (
  schema: JsonSchema,
  root: JsonSchema,
  path: ReadonlyArray<string>,
): { readonly path: ReadonlyArray<string>; readonly type: ColumnType } | UnknownMember => {
  const found: string[] = []
  let current = schema
  for (const name of path) {
    const members = listMembers(current, root)
    const known = Object.keys(members)
    const key = known.find((member) => member === name) ?? known.find((member) => foldCase(member) === foldCase(name))
    if (key === undefined) return { parent: found, unknown: name, known }
    found.push(key)
    current = members[key] ?? {}
  }
  return { path: found, type: chooseColumnType(current, root) }
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

export type Column = {
  readonly name: string
  readonly type: ColumnType
  /** The attribute that fills it, where a column cannot have its name; null: values of an older type, which nothing fills any more. */
  readonly attribute?: string | null
}

/** The attribute of a record that fills the column; null for a column that no attribute fills. */
export const attributeOf = ({ name, attribute }: Column): string | null => (attribute === undefined ? name : attribute)

/** The last columns of every stream's table, named as Airbyte's destinations name them. */
export const airbyteColumns = [
  ['_airbyte_raw_id', 'UUID'],
  ['_airbyte_extracted_at', 'TIMESTAMPTZ'],
  ['_airbyte_meta', 'JSON'],
  ['_airbyte_generation_id', 'BIGINT'],
] as const

/** The column of a history table with the time at which a version ended. */
export const endedColumnName = '_ended'

/** The column of a lake's versions with the load that appended them. */
export const loadColumnName = '_load'

const reservedNames: ReadonlySet<string> = new Set([
  ...airbyteColumns.map(([name]) => name),
  endedColumnName,
  loadColumnName,
])

/** DuckDB's names of columns and tables do not differ in case alone. */
export const foldCase = (name: string): string => name.toLowerCase()

/** A name for a helper column of ours that none of these columns has. */
export const findFreeName = (columns: ReadonlyArray<Pick<Column, 'name'>>, wanted: string): string => {
  const taken = new Set(columns.map(({ name }) => foldCase(name)))
  let name = wanted
  while (taken.has(foldCase(name))) name = `${name}_`
  return name
}

/** The column of an attribute whose own name is taken: the name and a hash of it, from which the attribute is known again. */
const markedName = (attribute: string): string =>
  `${attribute}__${createHash('sha256').update(attribute).digest('hex').slice(0, 6)}`
const markPattern = /__[0-9a-f]{6}$/

/** The name of a column that keeps the values of an older type: \`name__type\`. */
export const outdatedColumnName = ({ name, type }: Column): string => `${name}__${type.toLowerCase()}`
const outdatedPattern = /^(.*)__(?:bigint|double|boolean|varchar|date|timestamptz|json)_*$/is

const isOutdatedName = (name: string, foldedNames: ReadonlySet<string>): boolean => {
  const base = outdatedPattern.exec(name)?.[1]
  return base !== undefined && foldedNames.has(foldCase(base))
}

/** The columns of a table as the names of its columns tell them. */
const readColumns = (columns: ReadonlyArray<Column>): ReadonlyArray<Column> => {
  const foldedNames = new Set(columns.map(({ name }) => foldCase(name)))
  return columns.map((column) => {
    const base = column.name.replace(markPattern, '')
    if (base !== column.name && markedName(base) === column.name) return { ...column, attribute: base }
    return isOutdatedName(column.name, foldedNames) ? { ...column, attribute: null } : column
  })
}

/**
 * The columns for these attributes in a table that has the columns \`existing\`. An attribute keeps its column; a new one gets its own
 * name, or \`name__hash\` where that is a name of ours or differs from another column's in case alone.
 */
export const chooseColumns = (
  attributes: ReadonlyArray<Column>,
  existing: ReadonlyArray<Column> = [],
): ReadonlyArray<Column> => {
  const known = new Map(existing.map((column) => [attributeOf(column), column]))
  const taken = new Set(existing.map(({ name }) => foldCase(name)))
  const bases = new Set([...taken, ...attributes.map(({ name }) => foldCase(name))])
  return attributes.map(({ name: attribute, type }) => {
    const column = known.get(attribute)
    if (column !== undefined) return { ...column, type }
    const folded = foldCase(attribute)
    const isFree =
      attribute !== '' && !reservedNames.has(folded) && !taken.has(folded) && !isOutdatedName(attribute, bases)
    const name = isFree ? attribute : markedName(attribute)
    taken.add(foldCase(name))
    return isFree ? { name, type } : { name, type, attribute }
  })
}

/** One column for each declared attribute, in the schema's order. \`existing\`: the columns that the table has. */
export const columnsFromSchema = (schema: JsonSchema, existing: ReadonlyArray<Column> = []): ReadonlyArray<Column> =>
  chooseColumns(
    Object.entries((schema.properties ?? {}) as Record<string, JsonSchema>).map(([name, property]) => ({
      name,
      type: chooseColumnType(property, schema),
    })),
    existing,
  )

const fingerprintNameSql = (column: Column): string => quoteLiteral(`${attributeOf(column) ?? column.name}=`)

/** The value as text that does not depend on the session's settings. */
const fingerprintValueSql = ({ type }: Column, value: string): string =>
  type === 'TIMESTAMPTZ' ? `epoch_us(${value})` : `${value}::VARCHAR`

/** The attribute as text, with its name; null for a null. The fingerprint of a row is made of these, each after a `chr(31)`. */
export const fingerprintPartSql = (column: Column, value: string): string =>
  `${fingerprintNameSql(column)} || ${fingerprintValueSql(column, value)}`

/**
 * `_airbyte_raw_id`: a fingerprint of the row's declared values. Nulls do not count, so that a new column does not change it. One
 * `concat` of names and values copies each value once, where a `||` for each attribute copied it twice.
 */
export const fingerprintSql = (columns: ReadonlyArray<Column>): string => {
  const parts = columns.map((column) => {
    const value = quoteIdentifier(column.name)
    return `, CASE WHEN ${value} IS NOT NULL THEN chr(31) || ${fingerprintNameSql(column)} END, ${fingerprintValueSql(column, value)}`
  })
  return `md5(concat(''${parts.join('')}))::UUID`
}

/** A stream's table as it is in the file; `columns` without those of `airbyteColumns`. */
export type Table = {
  readonly name: string
  readonly columns: ReadonlyArray<Column>
  /** Whether old versions of its rows are kept in a history table. */
  readonly history: boolean
}

/** The name of the table that keeps the versions which the stream's own table no longer has. In a lake it is a view. */
export const historyTableName = (stream: string): string => `_history_${stream}`

/** The name of a lake's table that holds all versions of a stream's rows; the stream's own name is that of a view. */
export const versionsTableName = (stream: string): string => `_versions_${stream}`

/** The stream of a table that holds its rows or older versions of them. */
export const streamOfTable = (table: string): string =>
  [historyTableName(''), versionsTableName('')].reduce(
    (name, prefix) => (name.startsWith(prefix) ? name.slice(prefix.length) : name),
    table,
  )

/** Every stream's table in a file. `attached`: the name of an attached file, in place of the one that was opened. */
export const listStreamTables = async (db: Database, attached?: string): Promise<ReadonlyArray<Table>> => {
  const airbyteNames = new Set<string>(airbyteColumns.map(([column]) => column))
  const historyPrefix = historyTableName('')
  const tables = new Map<string, Array<Column>>()
  // The names of streams do not begin so. In a lake each question of this kind takes as long as some statements.
  const historyNames = new Set<string>()
  for (const row of await db.query(`
    SELECT table_name, column_name, data_type FROM duckdb_columns()
    WHERE database_name = ${attached === undefined ? 'current_database()' : quoteLiteral(attached)}
      AND (starts_with(table_name, ${quoteLiteral(historyPrefix)})
        OR table_name IN (SELECT stream FROM ${attached === undefined ? '' : `${quoteIdentifier(attached)}.`}_streams)) ORDER BY table_name, column_index`)) {
    const [name, column] = [String(row.table_name), String(row.column_name)]
    if (name.startsWith(historyPrefix)) historyNames.add(name)
    else {
      const columns = tables.get(name) ?? []
      tables.set(name, columns)
      if (!airbyteNames.has(column)) columns.push({ name: column, type: toColumnType(String(row.data_type)) })
    }
  }
  return [...tables].map(([name, columns]) => ({
    name,
    columns: readColumns(columns),
    history: historyNames.has(historyTableName(name)),
  }))
}

/** A stream's table from what DuckDB's DESCRIBE says of it; its history is not looked for. */
export const readTable = (name: string, described: ReadonlyArray<RowValues>): Table => ({
  name,
  columns: readColumns(
    described
      .map((row) => ({ name: String(row.column_name), type: toColumnType(String(row.column_type)) }))
      .filter((column) => !airbyteColumns.some(([own]) => own === column.name)),
  ),
  history: false,
})

const toColumnType = (type: string): ColumnType =>
  (type === 'TIMESTAMP WITH TIME ZONE' ? 'TIMESTAMPTZ' : type) as ColumnType

/** The stream that deletions and children refer to. */
export const reviewsTableName = 'reviews'
export const deletionsTableName = 'deleted_reviews'

/** Whether the rows of a table that refers to reviews belong to them. */
export const isChildTable = ({ name }: Pick<Table, 'name'>): boolean =>
  name !== reviewsTableName && name !== deletionsTableName

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

/** SQL that is true for a tombstone among the rows of `alias`; undefined for a table that has no column which marks them. */
export const hasTombstonesSql = ({ columns }: Pick<Table, 'columns'>, alias: string): string | undefined => {
  const marks = columns.filter(({ name }) => tombstoneColumnNames.includes(name))
  return marks.length === 0
    ? undefined
    : `(${marks.map(({ name }) => `${alias}.${quoteIdentifier(name)} IS NOT NULL`).join(' OR ')})`
}

/** SQL of the time that the tombstone itself gives; null where it gives none. */
export const deletedAtSql = ({ columns }: Pick<Table, 'columns'>, alias: string): string => {
  const times = columns
    .filter(({ name }) => tombstoneColumnNames.includes(name))
    .map(({ name }) => `TRY_CAST(trim(${alias}.${quoteIdentifier(name)}::VARCHAR, '"') AS TIMESTAMPTZ)`)
  return `coalesce(${['NULL::TIMESTAMPTZ', ...times].join(', ')})`
}
