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
 * The content of a row as a text that the service's side (TypeScript) and the warehouse (SQL) make alike. Each field
 * gives a piece: `~` for a null, the digits of a whole number or of the number of elements of a list, milliseconds of a
 * time, millionths of a decimal number, and the MD5 of a text or of a member of a JSON column. A member that is a text
 * in JSON has a quote before it, in dialects that tell. Pieces have no comma, so that they can be joined by commas.
 */
const listContentFields = ({ schema, primaryKey, cursor }: ContentStream): ReadonlyArray<ContentField> => {
  const omitted = new Set([primaryKey[0], O.toUndefined(cursor), ...tombstoneColumnNames])
  return listFields(schema, [], (name) => !omitted.has(name))
}

/** A stream whose rows are compared: all but the id and the version of its reviews, which the audit compares anyway. */
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
 * The scalars at and below the members of a schema. A list gives the number of its elements; an object without declared
 * members gives nothing.
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
 * What is compared of a stream's rows without these columns and members of them; left: what may be named, and what is
 * not.
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

/** Below it a decimal number is compared to 6 places, */
const finest = 1_000_000

/** below it as a whole number, and beyond it by its sign alone. */
const coarsest = 1_000_000_000_000_000
const billion = 1_000_000_000

const nullPiece = '~'
const textMark = '"'

/** As `Dialect.hexNumber` of the first 15 digits of a hash. */
const hashNumber = (digest: string): bigint => BigInt(`0x${digest.slice(0, 15)}`)

/** The digests of single fields are so small that a statement has room for those of every field. */
const fieldDigests = 0x1000_0000

/**
 * Both sides calculate with the same doubles. First it is rounded to 9 places, as decimal columns are, then down from
 * an odd place: a value that a loader has rounded lies on the other side of it once in a thousand times that its 9th
 * place differs.
 */
const numberPiece = (value: number): string => {
  if (Math.abs(value) < finest) return String(Math.floor((Math.floor(value * billion + 0.5) + 372) / 1000))
  if (Math.abs(value) < coarsest) return `${Math.floor(value + 0.372)}.`
  return value > 0 ? '+' : '-'
}

/** How values of the table's side are read: its clock, and whether it tells the texts inside JSON from numbers. */
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

/**
 * What the rows of a review contain: the sum of the hashes of the rows, and the sum of those of each field, one after
 * the other.
 */
export type ContentDigest = { readonly content: bigint; readonly fields: string }

/**
 * Digests the rows of one review. `buckets`: those in whose reviews the single fields are digested too; a field has
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

/** What the content of a column is read with in each dialect. Arguments and results are SQL. */
type ContentDialect = {
  readonly double: string
  /** A text as a double; null where it is no number. */
  readonly parseDouble: (text: string) => string
  /** The scalar at a path of a JSON column as a text; null where it is absent or null. */
  readonly member: (column: string, path: ReadonlyArray<string>) => string
  /** How many elements the list in a JSON column has; null where it has none. */
  readonly listLength: (column: string) => string
  /** Whether the scalar at a path of a JSON column is a text there; undefined where the dialect does not tell. */
  readonly isText?: (column: string, path: ReadonlyArray<string>) => string
}

const jsonPath = (path: ReadonlyArray<string>): string => `'$.${path.join('.')}'`
const tryCast = (text: string): string => `TRY_CAST(${text} AS DOUBLE)`

/** Without a cast that tries: a text that looks like a number. */
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
    // A list may be jsonb, or jsonb[] of Meltano's target.
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

/** The piece of a field in SQL; `alias`: of the table in the statement. */
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
 * The rows of a table with its content: `(id, version, content)` of `columns` (id and version in SQL, and what is to be
 * left out), and the digests `field_0`… of single fields, where `condition` picks the reviews for which they are
 * wanted.
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

/** The columns with digests of the content; `isSingle`: also of each field. */
export const digestColumns = ({ content }: AuditedTable, isSingle: boolean): ReadonlyArray<string> =>
  content === undefined ? [] : ['content', ...(isSingle ? content.fields.map((_, i) => `field_${i}`) : [])]

/** What is compared of the content, in a line. */
export const describeContent = ({ fields }: AuditedContent): string => {
  const names = (isCount: boolean): string =>
    fields.flatMap((field) => ((field.kind === 'count') === isCount ? [fieldName(field)] : [])).join(', ')
  return (
    'Compares the content of each row: ' +
    `${names(false) || 'nothing'}${names(true) === '' ? '' : `; the number of elements of ${names(true)}`}.`
  )
}
