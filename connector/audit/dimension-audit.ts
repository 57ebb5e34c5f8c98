import type * as E from 'fp-ts/Either'
import { consumeFeed, type Failure, type Feed, parseExactJson, type Row } from '../cdk'
import {
  type AuditedTable,
  attributeColumn,
  clockZone,
  createClock,
  dialects,
  idSql,
  md5Of,
  timeSql,
} from './audited-table'
import { packColumns } from './entity-statement'
import { checkSqlSize, packedRows, placesSql, quoteList, unpackedSql } from './packed-rows'

/**
 * What an audit reads of a stream of objects that reviews refer to: a row for each review that refers to one and, at
 * the end, the time in milliseconds as of which it is complete.
 */
export type ServiceDimensions = {
  readonly stream: string
  readonly rows: Feed<Failure, { readonly rows: ReadonlyArray<Row>; readonly cutoff?: number }>
}

/**
 * A dimension according to its newest review. `digest`: of its name; empty if two reviews of the same time contradict
 * each other.
 */
type ExpectedDimension = { readonly id: string; readonly version: number; readonly digest: string }

type ExpectedDimensions = {
  readonly stream: string
  readonly cutoff: number
  /** The attributes that are compared beside the key. */
  readonly attributes: ReadonlyArray<string>
  /** By the hash of the id. */
  readonly dimensions: ReadonlyMap<string, ExpectedDimension>
}

/** A row of a dimension that differs, according to an audit. `dimension`: the hash of its id. */
export type DimensionDifference = { readonly dimension: string; readonly difference: string }

const digits = 15
const digestText = (text: string): string => md5Of(text).slice(0, digits)

/** True if a text is the hash of an id, as the statement's answer has it. */
export const isDimensionKey = (text: string): boolean => /^[0-9a-f]{15}$/.test(text)

/** Reads what the newest reviews refer to. Rejects with a `CommandError` if the service cannot be read. */
export const readDimensions = async (
  { stream, rows }: ServiceDimensions,
  attributes: ReadonlyArray<string>,
): Promise<ExpectedDimensions> => {
  const dimensions = new Map<string, ExpectedDimension>()
  let reached = 0
  const add = ({ json }: Row): void => {
    const record = parseExactJson(Buffer.from(json).toString()) as Readonly<Record<string, unknown>>
    const [id, version] = [String(record.id), Date.parse(String(record.reviewModifiedTime))]
    const digest = attributes.length === 0 ? '' : digestText(attributes.map((name) => record[name] ?? '').join('|'))
    const key = digestText(id.trim())
    const known = dimensions.get(key)
    if (known === undefined || known.version < version) dimensions.set(key, { id, version, digest })
    else if (known.version === version && known.digest !== digest) dimensions.set(key, { ...known, digest: '' })
  }
  await consumeFeed(rows, async (page) => {
    page.rows.forEach(add)
    reached = page.cutoff ?? reached
  })
  return { stream, cutoff: reached, attributes, dimensions }
}

const keySql = (table: AuditedTable, alias: string | undefined): string =>
  `SUBSTRING(${dialects[table.dialect].md5(`COALESCE(${idSql(table, alias, table.idColumn)}, '')`)}, 1, ${digits})`

/** Comments that say what the statement compares, and how to read its answer. */
const headSql = ({ name }: AuditedTable, { stream, cutoff, attributes }: ExpectedDimensions): string => {
  const names =
    attributes.length === 0 ? '' : `, with the ${attributes.join(' and ')} of the newest review that names it`
  return [
    `Compares ${name} with the ${stream} that the newest reviews of the service name, ` +
      `as of ${new Date(cutoff).toISOString()}.`,
    `Each must be there once${names}. Rows that no review names any more may stay, ` +
      'and a row of a newer review is not compared.',
    'Run it before the next load. No rows: nothing differs. dimension: the hash of the id, for --repair.',
  ]
    .map((line) => `-- ${line}\n`)
    .join('')
}

/** The dimensions in the table: `found`, each with its newest version. */
const tableDimensionsSql = (table: AuditedTable, attributes: ReadonlyArray<string>): string => {
  const { md5, text, quote } = dialects[table.dialect]
  const names = attributes
    .map((name) => `COALESCE(CAST(loaded.${quote(attributeColumn(table, name))} AS ${text}), '')`)
    .join(" || '|' || ")
  return `loaded_rows AS (
  SELECT ${keySql(table, 'loaded')} AS dimension,
    COALESCE(${idSql(table, 'loaded', table.idColumn)}, '') AS id,
    COALESCE(${timeSql(table, 'loaded', table.versionColumn)}, -1) AS version,
    ${attributes.length === 0 ? "''" : `SUBSTRING(${md5(names)}, 1, ${digits})`} AS digest
  FROM ${table.name} AS loaded
),
newest AS (
  SELECT dimension, MAX(id) AS id, MAX(version) AS version, COUNT(*) AS row_count
  FROM loaded_rows
  GROUP BY dimension
),
found AS (
  SELECT newest.dimension, newest.id, newest.version,
    ${table.rows === 'newest' ? '1' : 'newest.row_count'} AS row_count,
    MIN(loaded_rows.digest) AS least_digest,
    MAX(loaded_rows.digest) AS most_digest
  FROM newest
  INNER JOIN loaded_rows ON loaded_rows.dimension = newest.dimension AND loaded_rows.version = newest.version
  GROUP BY newest.dimension, newest.id, newest.version, newest.row_count
)`
}

/**
 * The statement that lists the dimensions that are missing or doubled, or whose name differs from that in the newest
 * review. No rows: nothing differs.
 */
export const dimensionStatement = (table: AuditedTable, expected: ExpectedDimensions): string => {
  const clock = createClock(clockZone(table))
  const { width, packed, column } = packColumns(
    [...expected.dimensions].map(([key, { id, version, digest }]) => [
      key,
      id.replaceAll(/[^\w .:>&/-]/g, '_').slice(0, 60),
      String(clock.show(version)),
      // The clocks show this time twice, so it is unclear if a row is from a newer review.
      clock.goBack(version) > 0 ? '' : digest,
    ]),
  )
  return `${headSql(table, expected)}WITH
${placesSql},
${packedRows('expected_parts', packed)},
${unpackedSql('expected', 'expected_parts', width, [
  `${column(0)} AS dimension`,
  `${column(1)} AS id`,
  `CAST(${column(2)} AS ${dialects[table.dialect].integer}) AS version`,
  `${column(3)} AS digest`,
])},
${tableDimensionsSql(table, expected.attributes)}
SELECT COALESCE(expected.dimension, found.dimension) AS dimension,
  CASE
    WHEN found.dimension IS NULL THEN 'missing'
    WHEN expected.dimension IS NULL THEN 'extra'
    WHEN found.row_count > 1 THEN 'doubled'
    ELSE 'changed'
  END AS difference,
  expected.version AS expected_version, found.version AS found_version, COALESCE(found.row_count, 0) AS found_rows,
  COALESCE(found.id, expected.id) AS id
FROM expected FULL OUTER JOIN found ON found.dimension = expected.dimension
WHERE found.dimension IS NULL
  OR (expected.dimension IS NULL AND found.id = '')
  OR (expected.dimension IS NOT NULL AND found.row_count > 1)
  OR (
    expected.digest <> ''
    AND found.version <= expected.version
    AND found.least_digest <> expected.digest
    AND found.most_digest <> expected.digest
  )
ORDER BY dimension;
`
}

/** The statement, or an error if it is too large for the warehouse. */
export const checkDimensionStatementSize = (sql: string, table: AuditedTable): E.Either<Failure, string> =>
  checkSqlSize(
    sql,
    table,
    '. Audit --stream reviews with --deep instead: it compares the names that each review holds.',
  )

/** The statement that deletes doubled or changed dimensions. The run from the repaired state sends them again. */
export const deleteDimensionStatement = (
  table: AuditedTable,
  differences: ReadonlyArray<DimensionDifference>,
): string => {
  const keys = differences.filter(({ difference }) => difference !== 'missing').map(({ dimension }) => dimension)
  return keys.length === 0
    ? '-- There is nothing to delete.\n'
    : `DELETE FROM ${table.name} WHERE ${keySql(table, undefined)} IN (${quoteList(keys)});\n`
}
