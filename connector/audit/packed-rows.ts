import * as E from 'fp-ts/Either'
import { configFailure, type Failure } from '../cdk'
import { type AuditedTable, dialects } from './audited-table'

/** An SQL literal. The texts consist of digits and spaces. */
const literal = (text: string): string => `'${text}'`

/** Texts without quotes as an SQL list. */
export const quoteList = (texts: ReadonlyArray<string>): string => texts.map((text) => `'${text}'`).join(', ')

/** A value in a column of fixed width. */
export const pack = (value: bigint | number | string, width: number): string => String(value).padStart(width)

/** Few enough that finding a row is cheap even if text is searched from its start, as in PostgreSQL. */
const rowsPerPart = 50

/**
 * A list of rows as text in columns of fixed width, because not every dialect accepts thousands of rows of VALUES.
 * Packs the rows of one part at a time, to limit memory.
 */
export const packedRows = <A>(name: string, rows: ReadonlyArray<A>, packRow: (row: A) => string = String): string => {
  const parts: string[] = []
  for (let from = 0; from === 0 || from < rows.length; from += rowsPerPart)
    parts.push(
      `SELECT ${from} AS first_place, ${literal(
        rows
          .slice(from, from + rowsPerPart)
          .map(packRow)
          .join(''),
      )} AS packed`,
    )
  return `${name} AS (\n  ${parts.join('\n  UNION ALL ')}\n)`
}

/** The positions of the rows in a part. */
export const placesSql = `digits AS (
  SELECT 0 AS digit UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4
  UNION ALL SELECT 5 UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9
),
places AS (
  SELECT ones.digit + 10 * tens.digit AS place
  FROM digits AS ones CROSS JOIN digits AS tens
  WHERE tens.digit < ${rowsPerPart / 10}
)`

/**
 * The field of a packed row from `start`, counted from 0, as text without padding. Null if it consists of spaces, as
 * after the last row: a warehouse may cast it to a number before it drops rows that do not exist.
 */
export const field = (width: number, start: number, length: number): string =>
  `NULLIF(TRIM(SUBSTRING(packed, place * ${width} + ${start + 1}, ${length})), '')`

/** Unpacks rows of `width` characters into columns. */
export const unpackedSql = (
  name: string,
  from: string,
  width: number,
  columns: ReadonlyArray<string>,
): string => `${name} AS (
  SELECT ${columns.join(', ')}
  FROM ${from} CROSS JOIN places
  WHERE LENGTH(packed) >= (place + 1) * ${width}
)`

/** A column of packed rows; text if no type is given. */
export type PackedColumn = readonly [name: string, width: number, type?: string]

/** The width of rows with these columns, and the columns in SQL. */
export const packedColumns = (columns: ReadonlyArray<PackedColumn>): readonly [number, ReadonlyArray<string>] => {
  const width = columns.reduce((sum, [, each]) => sum + each, 0)
  let start = 0
  const sql = columns.map(([name, length, type]) => {
    const value = field(width, start, length)
    start += length
    return `${type === undefined ? value : `CAST(${value} AS ${type})`} AS ${name}`
  })
  return [width, sql]
}

const megabytes = (bytes: number): string => (bytes / 1e6).toFixed(1)

/** The statement, or an error if it is too large for the warehouse. `advice` continues the message after both sizes. */
export const checkSqlSize = (
  sql: string,
  { dialect }: Pick<AuditedTable, 'dialect'>,
  advice: string,
): E.Either<Failure, string> => {
  const { maxBytes } = dialects[dialect]
  return sql.length <= maxBytes
    ? E.right(sql)
    : E.left(
        configFailure(
          `The statement would have ${megabytes(sql.length)} MB, and ${dialect} takes ${megabytes(maxBytes)}${advice}`,
        ),
      )
}
