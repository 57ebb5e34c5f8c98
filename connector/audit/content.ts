import * as E from 'fp-ts/Either'
import * as O from 'fp-ts/Option'
import { type JsonSchema, parseExactJson, type Row, type Stream, tombstoneColumnNames } from '../cdk'
import { chooseColumnType, listMembers } from '../snapshot/store'
import {
  type AuditedContent,
  type AuditedTable,
  attributeColumn,
  type ContentField,
  clockZone,
  createClock,
  type DialectName,
  dialects,
  md5Of,
  timeSql,
  type ZoneClock,
} from './audited-table'

/**
 * The content of a row as a text that both the service's side (TypeScript) and the warehouse (SQL) can build
 * identically. Each field gives a piece: `~` for null; the digits of a whole number or of a list's length; the
 * milliseconds of a time; the millionths of a decimal number; the MD5 of a text or of a member of a JSON column. If a
 * JSON member is a string, a quote precedes it, in dialects that can distinguish strings. Pieces contain no comma, so
 * they are joined by commas.
 */
const listContentFields = ({ schema, primaryKey, cursor }: ContentStream): ReadonlyArray<ContentField> => {
  const omitted = new Set([primaryKey[0], O.toUndefined(cursor), ...tombstoneColumnNames])
  return listFields(schema, [], (name) => !omitted.has(name))
}

/** A stream whose rows are compared, apart from the id and version of its reviews, which an audit compares anyway. */
type ContentStream = Pick<Stream<never>, 'schema' | 'primaryKey' | 'cursor'>

const scalarKinds = {
  BIGINT: 'integer',
  DOUBLE: 'number',
  BOOLEAN: 'boolean',
  TIMESTAMPTZ: 'time',
  VARCHAR: 'text',
  DATE: 'text',
} as const

/**
 * The scalars in a schema at all levels. A list counts by its length; an object without declared members is left out.
 */
const listFields = (
  schema: JsonSchema,
  path: ReadonlyArray<string>,
  isWanted: (name: string) => boolean,
): ReadonlyArray<ContentField> =>
  Object.entries(listMembers(schema))
    .filter(([name]) => isWanted(name))
    .flatMap(([name, member]): ReadonlyArray<ContentField> => {
      const inner = [...path, name]
      const type = chooseColumnType(member)
      if (type !== 'JSON') return [{ path: inner, kind: scalarKinds[type] }]
      if ([member.type].flat().includes('array')) return path.length === 0 ? [{ path: inner, kind: 'count' }] : []
      return listFields(member, inner, () => true)
    })

/** The name of a field, such as `location.name`. */
export const fieldName = ({ path }: ContentField): string => path.join('.')

/**
 * The content to compare, without these columns and members. Left: the names that are allowed, and the one that is not.
 */
export const chooseContent = (
  stream: ContentStream,
  without: ReadonlyArray<string>,
): E.Either<string, AuditedContent> => {
  const all = listContentFields(stream)
  const isIn = (name: string) => (field: ContentField) => `${fieldName(field)}.`.startsWith(`${name}.`)
  const unknown = without.find((name) => !all.some(isIn(name)))
  return unknown === undefined
    ? E.right({ fields: all.filter((field) => !without.some((name) => isIn(name)(field))), keys: stream.primaryKey })
    : E.left(`of ${all.map(fieldName).join(', ')}, or what is before a dot in them, not ${unknown}`)
}

/** Decimal numbers below this are compared to 6 places. */
const finest = 1_000_000

/** Numbers below this are compared as whole numbers, larger ones only by their sign. */
const coarsest = 1_000_000_000_000_000
const billion = 1_000_000_000

const nullPiece = '~'
const textMark = '"'

/** Like `Dialect.hexNumber` for the first 15 digits of a hash. */
const hashNumber = (digest: string): bigint => BigInt(`0x${digest.slice(0, 15)}`)

/** Digests of single fields are small, so that a statement has room for those of every field. */
const fieldDigests = 0x1000_0000

/**
 * Both sides calculate with the same doubles. A value is first rounded to 9 places, as decimal columns are, then
 * rounded down at an unusual offset. So a value whose 9th place a loader has rounded gives a different result only once
 * in a thousand times.
 */
const numberPiece = (value: number): string => {
  if (Math.abs(value) < finest) return String(Math.floor((Math.floor(value * billion + 0.5) + 372) / 1000))
  if (Math.abs(value) < coarsest) return `${Math.floor(value + 0.372)}.`
  return value > 0 ? '+' : '-'
}

/** How values are read on the table's side: its clock, and if it distinguishes strings from numbers inside JSON. */
type Reading = { readonly clock: ZoneClock; readonly marksTexts: boolean }

const toPiece = ({ path, kind }: ContentField, record: unknown, { clock, marksTexts }: Reading): string => {
  const value = path.reduce<unknown>(
    (parent, name) => (parent as Readonly<Record<string, unknown>> | null | undefined)?.[name],
    record,
  )
  if (value === null || value === undefined) return nullPiece
  if (kind === 'count') return Array.isArray(value) ? String(value.length) : nullPiece
  if (kind === 'number' && typeof value !== 'string') return numberPiece(Number(value))
  if (path.length > 1) return `${marksTexts && typeof value === 'string' ? textMark : ''}${md5Of(String(value))}`
  if (kind === 'time') return String(clock.show(Date.parse(String(value))))
  return kind === 'integer' || kind === 'boolean' ? String(value) : md5Of(String(value))
}

/** The digest of a review's rows: the sum of their hashes, and the sums for each field, one after the other. */
export type ContentDigest = { readonly content: bigint; readonly fields: string }

/**
 * Digests the rows of one review. `buckets`: in their reviews, the single fields are digested too. Each field has
 * `fieldDigestWidth` characters.
 */
export const createContentDigest = (
  { fields, keys }: AuditedContent,
  bucketCount: number,
  buckets: ReadonlyArray<number> | undefined,
  table: AuditedTable | undefined,
): ((id: string, rows: ReadonlyArray<Row>) => ContentDigest) => {
  const reading: Reading = {
    clock: createClock(table && clockZone(table)),
    marksTexts: table !== undefined && contentDialects[table.dialect].isText !== undefined,
  }
  return (id, rows) => {
    const needsFields = buckets?.includes(Number(hashNumber(md5Of(id)) % BigInt(bucketCount))) === true
    let content = 0n
    const sums = needsFields ? fields.map(() => 0) : []
    for (const { json } of rows) {
      const record = parseExactJson(Buffer.from(json).toString())
      const pieces = fields.map((field) => toPiece(field, record, reading))
      content += hashNumber(md5Of(`${id}:${pieces.join(',')}`))
      if (needsFields) {
        const key = pieces.filter((_, i) => keys.includes(fieldName(fields[i] as ContentField))).join(',')
        pieces.forEach((piece, i) => {
          sums[i] = (sums[i] ?? 0) + Number(hashNumber(md5Of(`${id}:${key}:${piece}`)) % BigInt(fieldDigests))
        })
      }
    }
    return { content, fields: sums.map((sum) => String(sum).padStart(fieldDigestWidth)).join('') }
  }
}

export const fieldDigestWidth = 16

/** How each dialect reads the content of a column. Arguments and results are SQL. */
type ContentDialect = {
  readonly double: string
  /** A text as a double; null if it is not a number. */
  readonly parseDouble: (text: string) => string
  /** The scalar at a path in a JSON column as text; null if it is absent or null. */
  readonly member: (column: string, path: ReadonlyArray<string>) => string
  /** The number of elements in a JSON column's list; null if there is no list. */
  readonly listLength: (column: string) => string
  /** True if the scalar at a path in a JSON column is a string. Undefined if the dialect cannot distinguish it. */
  readonly isText?: (column: string, path: ReadonlyArray<string>) => string
}

const jsonPath = (path: ReadonlyArray<string>): string => `'$.${path.join('.')}'`
const tryCast = (text: string): string => `TRY_CAST(${text} AS DOUBLE)`

/** Casts number-like text, for dialects without a cast that returns null on failure. */
const castNumberLike = (text: string): string =>
  `CASE WHEN ${text} ~ '^-?[0-9]+([.][0-9]+)?([eE][-+]?[0-9]{1,2})?$' THEN CAST(${text} AS DOUBLE PRECISION) END`

const contentDialects: Readonly<Record<DialectName, ContentDialect>> = {
  duckdb: {
    double: 'DOUBLE',
    parseDouble: tryCast,
    member: (column, path) => `JSON_EXTRACT_STRING(CAST(${column} AS JSON), ${jsonPath(path)})`,
    listLength: (column) =>
      `CASE WHEN JSON_TYPE(CAST(${column} AS JSON)) = 'ARRAY' THEN JSON_ARRAY_LENGTH(CAST(${column} AS JSON)) END`,
    isText: (column, path) => `JSON_TYPE(CAST(${column} AS JSON), ${jsonPath(path)}) = 'VARCHAR'`,
  },
  postgres: {
    double: 'DOUBLE PRECISION',
    parseDouble: castNumberLike,
    member: (column, path) => `(CAST(${column} AS JSONB) #>> '{${path.join(',')}}')`,
    // A list may be jsonb, or jsonb[] from Meltano's target.
    listLength: (column) =>
      `CASE WHEN JSONB_TYPEOF(TO_JSONB(${column})) = 'array' THEN JSONB_ARRAY_LENGTH(TO_JSONB(${column})) END`,
    isText: (column, path) => `JSONB_TYPEOF(CAST(${column} AS JSONB) #> '{${path.join(',')}}') = 'string'`,
  },
  snowflake: {
    double: 'DOUBLE',
    parseDouble: (text) => `TRY_TO_DOUBLE(${text})`,
    member: (column, path) => `CAST(GET_PATH(TO_VARIANT(${column}), '${path.join('.')}') AS VARCHAR)`,
    listLength: (column) => `ARRAY_SIZE(TO_VARIANT(${column}))`,
  },
  bigquery: {
    double: 'FLOAT64',
    parseDouble: (text) => `SAFE_CAST(${text} AS FLOAT64)`,
    member: (column, path) => `JSON_VALUE(${column}, ${jsonPath(path)})`,
    listLength: (column) => `ARRAY_LENGTH(JSON_QUERY_ARRAY(${column}))`,
  },
  redshift: {
    double: 'DOUBLE PRECISION',
    parseDouble: castNumberLike,
    member: (column, path) => `CAST(${[column, ...path.map((name) => `"${name}"`)].join('.')} AS VARCHAR(65535))`,
    listLength: (column) => `GET_ARRAY_LENGTH(${column})`,
  },
  databricks: {
    double: 'DOUBLE',
    parseDouble: tryCast,
    member: (column, path) => `GET_JSON_OBJECT(${column}, ${jsonPath(path)})`,
    listLength: (column) => `JSON_ARRAY_LENGTH(${column})`,
  },
}

const numberPieceSql = (value: string, integer: string, text: string): string => {
  const floor = (number: string): string => `CAST(CAST(FLOOR(${number}) AS ${integer}) AS ${text})`
  const fine = floor(`(FLOOR(${value} * ${billion} + 0.5) + 372) / 1000`)
  return (
    `CASE WHEN ABS(${value}) < ${finest} THEN ${fine} WHEN ABS(${value}) < ${coarsest} THEN ` +
    `${floor(`${value} + 0.372`)} || '.' WHEN ${value} > 0 THEN '+' WHEN ${value} < 0 THEN '-' END`
  )
}

/** The piece of a field in SQL. `alias`: of the table in the statement. */
const pieceSql = (
  table: AuditedTable,
  alias: string,
  { path: [attribute = '', ...path], kind }: ContentField,
): string => {
  const name = attributeColumn(table, attribute)
  const { text, integer, decimal, md5, quote } = dialects[table.dialect]
  const { double, parseDouble, member, listLength, isText } = contentDialects[table.dialect]
  const column = `${alias}.${quote(name)}`
  const asText = (value: string): string => `CAST(${value} AS ${text})`
  const pieces = (): ReadonlyArray<string> => {
    if (kind === 'count') return [asText(listLength(column))]
    if (path.length > 0) {
      const value = member(column, path)
      const piece =
        kind === 'number' ? `COALESCE(${numberPieceSql(parseDouble(value), integer, text)}, ${md5(value)})` : md5(value)
      return [
        isText === undefined ? piece : `CASE WHEN ${isText(column, path)} THEN '${textMark}' ELSE '' END || ${piece}`,
      ]
    }
    if (kind === 'number') return [numberPieceSql(`CAST(${column} AS ${double})`, integer, text)]
    if (kind === 'integer') return [asText(`CAST(${column} AS ${decimal})`)]
    if (kind === 'boolean') return [`CASE WHEN ${column} THEN 'true' WHEN NOT ${column} THEN 'false' END`]
    return [kind === 'time' ? asText(timeSql(table, alias, name)) : md5(asText(column))]
  }
  return `COALESCE(${[...pieces(), `'${nullPiece}'`].join(', ')})`
}

/**
 * The rows of a table with their content: `(id, version, content)` from `columns` (id and version in SQL, and what to
 * leave out), and the digests `field_0`… of single fields for reviews that meet `condition`.
 */
export const contentRowsSql = (
  table: AuditedTable,
  { fields, keys }: AuditedContent,
  rows: { readonly id: string; readonly version: string; readonly from: string },
  condition: string | undefined,
): string => {
  const { md5, hexNumber } = dialects[table.dialect]
  const number = (text: string): string => hexNumber(`SUBSTRING(${md5(text)}, 1, 15)`)
  const names = fields.map((_, i) => `piece_${i}`)
  const joined = (some: ReadonlyArray<string>): string => (some.length === 0 ? "''" : some.join(" || ',' || "))
  const key = joined(names.filter((_, i) => keys.includes(fieldName(fields[i] as ContentField))))
  const digests =
    condition === undefined
      ? []
      : names.map((name, i) => `MOD(${number(`id || ':' || ${key} || ':' || ${name}`)}, ${fieldDigests}) AS field_${i}`)
  const hashes = ['id', 'version', `${number(`id || ':' || ${joined(names)}`)} AS content`, ...digests]
  const pieces = [
    `${rows.id} AS id`,
    `${rows.version} AS version`,
    ...fields.map((field, i) => `${pieceSql(table, 'loaded', field)} AS ${names[i]}`),
  ]
  return `SELECT ${hashes.join(',\n    ')}
  FROM (
    SELECT ${pieces.join(',\n      ')}
    FROM ${rows.from}
  ) AS pieces${condition === undefined ? '' : `\n  WHERE ${condition}`}`
}

/** The columns with content digests. `isSingle`: also one for each field. */
export const digestColumns = ({ content }: AuditedTable, isSingle: boolean): ReadonlyArray<string> =>
  content === undefined ? [] : ['content', ...(isSingle ? content.fields.map((_, i) => `field_${i}`) : [])]

/** Describes in one line which content is compared. */
export const describeContent = ({ fields }: AuditedContent): string => {
  const names = (isCount: boolean): string =>
    fields.flatMap((field) => ((field.kind === 'count') === isCount ? [fieldName(field)] : [])).join(', ')
  return (
    'Compares the content of each row: ' +
    `${names(false) || 'nothing'}${names(true) === '' ? '' : `; the number of elements of ${names(true)}`}.`
  )
}
