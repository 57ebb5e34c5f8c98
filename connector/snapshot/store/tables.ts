import { createHash } from 'node:crypto'
import type { JsonSchema } from '../../cdk'
import { tombstoneColumnNames } from '../../cdk'
import { type Database, quoteIdentifier, quoteLiteral } from './database'
import type { RowValues } from './values'

export type ColumnType = 'BIGINT' | 'DOUBLE' | 'BOOLEAN' | 'VARCHAR' | 'DATE' | 'TIMESTAMPTZ' | 'JSON'

const scalarTypes: Readonly<Record<string, ColumnType>> = { integer: 'BIGINT', number: 'DOUBLE', boolean: 'BOOLEAN' }
const formatTypes: Readonly<Record<string, ColumnType>> = { 'date-time': 'TIMESTAMPTZ', date: 'DATE' }

/**
 * The column type that holds every value of one of our attributes without loss. Objects, arrays and values of several
 * types become JSON, so that no nested attribute is lost.
 */
export const chooseColumnType = ({ type, format, enum: values }: JsonSchema): ColumnType => {
  const listed = Array.isArray(values) ? values.map((value) => (value === null ? 'null' : typeof value)) : []
  const types = new Set([type ?? listed].flat().filter((name) => name !== 'null'))
  const [only] = types
  if (types.size !== 1) return 'JSON'
  if (only === 'string') return formatTypes[String(format)] ?? 'VARCHAR'
  return scalarTypes[String(only)] ?? 'JSON'
}

/** The members that a schema declares by name; none if it declares none. */
export const listMembers = ({ properties }: JsonSchema): Readonly<Record<string, JsonSchema>> =>
  (properties ?? {}) as Readonly<Record<string, JsonSchema>>

/** An undeclared name in a path. It follows `parent`, whose members are known. */
export type UnknownMember = {
  readonly parent: ReadonlyArray<string>
  readonly unknown: string
  readonly known: ReadonlyArray<string>
}

/** Finds the declared path for a path below a schema, ignoring case, and the type of its values. */
export const followMembers = (
  schema: JsonSchema,
  path: ReadonlyArray<string>,
): { readonly path: ReadonlyArray<string>; readonly type: ColumnType } | UnknownMember => {
  const found: string[] = []
  let current = schema
  for (const name of path) {
    const members = listMembers(current)
    const known = Object.keys(members)
    const key = known.find((member) => member === name) ?? known.find((member) => foldCase(member) === foldCase(name))
    if (key === undefined) return { parent: found, unknown: name, known }
    found.push(key)
    current = members[key] ?? {}
  }
  return { path: found, type: chooseColumnType(current) }
}

export type Column = {
  readonly name: string
  readonly type: ColumnType
  /** The attribute that fills it, if a column cannot have its name. */
  readonly attribute?: string
}

/** The attribute of a record that fills the column. */
export const attributeOf = ({ name, attribute }: Column): string => attribute ?? name

/** The last columns of every stream's table, named like those of Airbyte's destinations. */
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

/** In DuckDB, names of columns and tables cannot differ in case alone. */
export const foldCase = (name: string): string => name.toLowerCase()

/** A name for a helper column that none of these columns has. */
export const findFreeName = (columns: ReadonlyArray<Pick<Column, 'name'>>, wanted: string): string => {
  const taken = new Set(columns.map(({ name }) => foldCase(name)))
  let name = wanted
  while (taken.has(foldCase(name))) name = `${name}_`
  return name
}

/**
 * The column of an attribute whose own name is taken: the name and a hash of it, which identifies the attribute later.
 */
const markedName = (attribute: string): string =>
  `${attribute}__${createHash('sha256').update(attribute).digest('hex').slice(0, 6)}`

const markPattern = /__[0-9a-f]{6}$/

/** The columns of a table, with the attributes that their names mark. */
const readColumns = (columns: ReadonlyArray<Column>): ReadonlyArray<Column> =>
  columns.map((column) => {
    const base = column.name.replace(markPattern, '')
    return base !== column.name && markedName(base) === column.name ? { ...column, attribute: base } : column
  })

/**
 * The columns for these attributes in a table with the columns `existing`. An attribute keeps its column. A new one
 * gets its own name, or `name__hash` if that is one of our names or differs from another column's in case alone.
 */
export const chooseColumns = (
  attributes: ReadonlyArray<Column>,
  existing: ReadonlyArray<Column> = [],
): ReadonlyArray<Column> => {
  const known = new Map(existing.map((column) => [attributeOf(column), column]))
  const taken = new Set(existing.map(({ name }) => foldCase(name)))
  return attributes.map(({ name: attribute, type }) => {
    const column = known.get(attribute)
    if (column !== undefined) return { ...column, type }
    const folded = foldCase(attribute)
    const isFree = attribute !== '' && !reservedNames.has(folded) && !taken.has(folded)
    const name = isFree ? attribute : markedName(attribute)
    taken.add(foldCase(name))
    return isFree ? { name, type } : { name, type, attribute }
  })
}

/** One column for each declared attribute, in the schema's order. `existing`: the columns that the table has. */
export const columnsFromSchema = (schema: JsonSchema, existing: ReadonlyArray<Column> = []): ReadonlyArray<Column> =>
  chooseColumns(
    Object.entries(listMembers(schema)).map(([name, member]) => ({ name, type: chooseColumnType(member) })),
    existing,
  )

const fingerprintNameSql = (column: Column): string => quoteLiteral(`${attributeOf(column) ?? column.name}=`)

/** The value as text, independent of the session's settings. */
const fingerprintValueSql = ({ type }: Column, value: string): string =>
  type === 'TIMESTAMPTZ' ? `epoch_us(${value})` : `${value}::VARCHAR`

/**
 * `_airbyte_raw_id`: a fingerprint of the row's declared values. Nulls do not count, so that a new column does not
 * change it. A single `concat` of names and values copies each value once; a `||` for each attribute copied it twice.
 */
export const fingerprintSql = (columns: ReadonlyArray<Column>): string => {
  const parts = columns.map((column) => {
    const value = quoteIdentifier(column.name)
    return (
      `, CASE WHEN ${value} IS NOT NULL THEN chr(31) || ` +
      `${fingerprintNameSql(column)} END, ${fingerprintValueSql(column, value)}`
    )
  })
  return `md5(concat(''${parts.join('')}))::UUID`
}

/** A stream's table as it is in the file; `columns` without those of `airbyteColumns`. */
export type Table = {
  readonly name: string
  readonly columns: ReadonlyArray<Column>
  /** Old versions of its rows are kept in a history table. */
  readonly history: boolean
}

/** The name of the table with versions that the stream's own table no longer has. In a lake it is a view. */
export const historyTableName = (stream: string): string => `_history_${stream}`

/** The name of a lake's table with all versions of a stream's rows. The stream's own name is that of a view. */
export const versionsTableName = (stream: string): string => `_versions_${stream}`

/** The stream of a table that holds its rows or older versions of them. */
export const streamOfTable = (table: string): string =>
  [historyTableName(''), versionsTableName('')].reduce(
    (name, prefix) => (name.startsWith(prefix) ? name.slice(prefix.length) : name),
    table,
  )

/** Every stream's table in a file. `attached`: the name of an attached file, by default the opened one. */
export const listStreamTables = async (db: Database, attached?: string): Promise<ReadonlyArray<Table>> => {
  const airbyteNames = new Set<string>(airbyteColumns.map(([column]) => column))
  const historyPrefix = historyTableName('')
  const tables = new Map<string, Array<Column>>()
  // Stream names do not start like this. In a lake, each such query takes as long as some statements.
  const historyNames = new Set<string>()
  const [database, prefix] =
    attached === undefined ? ['current_database()', ''] : [quoteLiteral(attached), `${quoteIdentifier(attached)}.`]
  const rows = await db.query(`
    SELECT table_name, column_name, data_type FROM duckdb_columns()
    WHERE database_name = ${database}
      AND (starts_with(table_name, ${quoteLiteral(historyPrefix)})
        OR table_name IN (SELECT stream FROM ${prefix}_streams))
    ORDER BY table_name, column_index`)
  for (const row of rows) {
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

/** A stream's table from the result of DuckDB's DESCRIBE. Does not look for its history. */
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

/** The stream to which deletions and children refer. */
export const reviewsTableName = 'reviews'
export const deletionsTableName = 'deleted_reviews'

/** The rows of a table that refers to reviews belong to them. */
export const isChildTable = ({ name }: Pick<Table, 'name'>): boolean =>
  name !== reviewsTableName && name !== deletionsTableName

const hasTypedColumn = ({ columns }: Table, name: string, type: string): boolean =>
  columns.some((column) => column.name === name && column.type === type)

/** The columns of a table with the id of a row's review and the modified time of the review's version. */
export type ReviewReference = { readonly table: Table; readonly id: string; readonly time: string }

/** The reference of a table to reviews; undefined if it has none. */
export const findReviewReference = (table: Table): ReviewReference | undefined => {
  if (table.name === reviewsTableName || table.name === deletionsTableName)
    return hasTypedColumn(table, 'id', 'BIGINT') && hasTypedColumn(table, 'modifiedTime', 'TIMESTAMPTZ')
      ? { table, id: 'id', time: 'modifiedTime' }
      : undefined
  return hasTypedColumn(table, 'reviewId', 'BIGINT') && hasTypedColumn(table, 'reviewModifiedTime', 'TIMESTAMPTZ')
    ? { table, id: 'reviewId', time: 'reviewModifiedTime' }
    : undefined
}

export const listReviewReferences = (tables: ReadonlyArray<Table>): ReadonlyArray<ReviewReference> =>
  tables.flatMap((table) => findReviewReference(table) ?? [])

/**
 * SQL that is true for a tombstone among the rows of `alias`; undefined for a table without a column that marks them.
 */
export const hasTombstonesSql = ({ columns }: Pick<Table, 'columns'>, alias: string): string | undefined => {
  const marks = columns.filter(({ name }) => tombstoneColumnNames.includes(name))
  return marks.length === 0
    ? undefined
    : `(${marks.map(({ name }) => `${alias}.${quoteIdentifier(name)} IS NOT NULL`).join(' OR ')})`
}

/** SQL for the time that the tombstone itself gives; null if it gives none. */
export const deletedAtSql = ({ columns }: Pick<Table, 'columns'>, alias: string): string => {
  const times = columns
    .filter(({ name }) => tombstoneColumnNames.includes(name))
    .map(({ name }) => `TRY_CAST(trim(${alias}.${quoteIdentifier(name)}::VARCHAR, '"') AS TIMESTAMPTZ)`)
  return `coalesce(${['NULL::TIMESTAMPTZ', ...times].join(', ')})`
}
