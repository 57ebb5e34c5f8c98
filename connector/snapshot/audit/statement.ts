import { type AuditedTable, attributeColumn, type DialectName, dialects, hashSql } from './audited-table'

/** Which rows an audit is about; times in milliseconds since 1970. */
export type AuditScope = {
  readonly stream: string
  /** Older versions are left out. */
  readonly from: number
  /** Later versions are left out. */
  readonly cutoff: number
  /** The reviews that have changed since the cutoff, left out whatever version the table has. */
  readonly changedIds: ReadonlyArray<string>
  readonly bucketCount: number
}

/** What the service has of a bucket of ids; digests are sums, so the order of rows does not matter. */
export type ExpectedBucket = {
  readonly bucket: number
  readonly ids: bigint
  readonly rows: bigint
  readonly idDigest: bigint
  readonly versionDigest: bigint
  readonly rowDigest: bigint
}

/** What the service has of one review: its version, and how many rows the stream has of it. */
export type ExpectedReview = { readonly id: string; readonly version: number; readonly rows: number }

const instant = (millis: number): string => new Date(millis).toISOString()

/** A literal of SQL; the texts are digits and spaces. */
const literal = (text: string): string => `'${text}'`

const pack = (value: bigint | number | string, width: number): string => String(value).padStart(width)

/** So few that finding a place in a part costs little where a text is searched from its beginning, as in PostgreSQL. */
const rowsPerPart = 50

/**
 * A list of rows as text in columns of fixed width, since not every dialect takes thousands of rows of VALUES.
 */
const packedRows = (name: string, rows: ReadonlyArray<string>): string => {
  const parts: string[] = []
  for (let from = 0; from === 0 || from < rows.length; from += rowsPerPart)
    parts.push(`SELECT ${from} AS first_place, ${literal(rows.slice(from, from + rowsPerPart).join(''))} AS packed`)
  return `${name} AS (\n  ${parts.join('\n  UNION ALL ')}\n)`
}

const placesSql = `digits AS (
  SELECT 0 AS digit UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4
  UNION ALL SELECT 5 UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9
),
places AS (
  SELECT ones.digit + 10 * tens.digit AS place
  FROM digits AS ones CROSS JOIN digits AS tens
  WHERE tens.digit < ${rowsPerPart / 10}
)`

/** The field of a packed row from `start`, counted from 0, as a text without its padding. */
const field = (width: number, start: number, length: number): string =>
  `TRIM(SUBSTRING(packed, place * ${width} + ${start + 1}, ${length}))`

/** Unpacks rows of `width` characters into columns. */
const unpackedSql = (name: string, from: string, width: number, columns: ReadonlyArray<string>): string => `${name} AS (
  SELECT ${columns.join(', ')}
  FROM ${from} CROSS JOIN places
  WHERE LENGTH(packed) >= (place + 1) * ${width}
)`

const idWidth = 20
const versionWidth = 16

/** The reviews of the table: `reviews (id, version, row_count)`, without those that the audit leaves out. */
const tableReviewsSql = (table: AuditedTable, { from, cutoff, changedIds }: AuditScope): string => {
  const dialect = dialects[table.dialect]
  const id = (alias: string, name: string): string => {
    const column = `${alias}.${dialect.quote(name)}`
    return table.idType === 'text'
      ? `TRIM(CAST(${column} AS ${dialect.text}))`
      : `CAST(CAST(${column} AS ${dialect.integer}) AS ${dialect.text})`
  }
  const version = (alias: string, name: string): string => {
    const column = `${alias}.${dialect.quote(name)}`
    if (table.versionType === 'millis') return `CAST(${column} AS ${dialect.integer})`
    const isElsewhere = table.versionType === 'timestamp' && table.timeZone !== 'UTC'
    return dialect.millis(
      ...(isElsewhere ? dialect.fromZone(column, table.timeZone) : ([column, table.versionType] as const)),
    )
  }
  const isPart = table.rows === 'parts'
  const marked = table.deletedColumn === undefined ? undefined : dialect.quote(table.deletedColumn)
  const unmarked = marked === undefined ? '' : `\n  WHERE loaded.${marked} IS NULL`
  // Where every version is kept, a marked row deletes the versions before it.
  const sources = [
    ...(table.deletionsName === undefined ? [] : [`${table.deletionsName} AS deleted`]),
    ...(table.rows === 'newest' && marked !== undefined
      ? [`${table.name} AS deleted WHERE deleted.${marked} IS NOT NULL`]
      : []),
  ].map(
    (source) =>
      `SELECT ${id('deleted', isPart ? 'id' : table.idColumn)} AS id, ${version('deleted', isPart ? attributeColumn(table, 'modifiedTime') : table.versionColumn)} AS version FROM ${source}`,
  )
  const deletions =
    sources.length === 0
      ? []
      : [
          `deletions AS (\n  SELECT id, MAX(version) AS version FROM (\n    ${sources.join('\n    UNION ALL ')}\n  ) AS listed GROUP BY id\n)`,
        ]
  const isNotDeleted =
    sources.length === 0
      ? ''
      : `\n    AND NOT EXISTS (SELECT 1 FROM deletions WHERE deletions.id = loaded_rows.id AND deletions.version > loaded_rows.version)`
  // A row without an id or a version is none of the service: it stays, and shows as extra or stale.
  return [
    `loaded_rows AS (
  SELECT COALESCE(${id('loaded', table.idColumn)}, '') AS id, COALESCE(${version('loaded', table.versionColumn)}, -1) AS version
  FROM ${table.name} AS loaded${unmarked}
)`,
    ...deletions,
    packedRows(
      'changed_parts',
      changedIds.map((changed) => pack(changed, idWidth)),
    ),
    unpackedSql('changed', 'changed_parts', idWidth, [`${field(idWidth, 0, idWidth)} AS id`]),
    `compared_rows AS (
  SELECT id, version FROM loaded_rows
  WHERE (version BETWEEN ${from} AND ${cutoff} OR version = -1)
    AND NOT EXISTS (SELECT 1 FROM changed WHERE changed.id = loaded_rows.id)${isNotDeleted}
)`,
    ...(table.rows === 'one'
      ? [`reviews AS (\n  SELECT id, MAX(version) AS version, COUNT(*) AS row_count FROM compared_rows GROUP BY id\n)`]
      : [
          `newest AS (\n  SELECT id, MAX(version) AS version FROM compared_rows GROUP BY id\n)`,
          `reviews AS (
  SELECT newest.id, newest.version, ${table.rows === 'newest' ? '1' : 'COUNT(*)'} AS row_count
  FROM newest INNER JOIN compared_rows ON compared_rows.id = newest.id AND compared_rows.version = newest.version
  GROUP BY newest.id, newest.version
)`,
        ]),
  ].join(',\n')
}

/** What `buckets` holds of each bucket of `reviews (id, version, row_count)`. Also what the service's own reviews are counted with. */
export const bucketsSql = (dialectName: DialectName, bucketCount: number): string => {
  const dialect = dialects[dialectName]
  const hash = hashSql(dialect)
  const sum = (value: string): string => `SUM(CAST(${value} AS ${dialect.decimal}))`
  return `hashed AS (
  SELECT row_count, ${hash.bucket('id', bucketCount)} AS bucket, ${hash.id('id')} AS id_hash, ${hash.version('id', 'version')} AS version_hash
  FROM reviews
),
buckets AS (
  SELECT bucket, COUNT(*) AS ids, SUM(row_count) AS row_count, ${sum('id_hash')} AS id_digest, ${sum('version_hash')} AS version_digest,
    SUM(CAST(id_hash AS ${dialect.decimal}) * row_count) AS row_digest
  FROM hashed GROUP BY bucket
)`
}

/** The bucket of the column `id`. */
export const bucketOfSql = (dialectName: DialectName, bucketCount: number): string =>
  hashSql(dialects[dialectName]).bucket('id', bucketCount)

const countWidth = 10
const digestWidth = 28
const bucketWidth = 2 * countWidth + 3 * digestWidth

/** Head of both statements: what they compare, and how to read the answer. */
const headSql = (
  table: AuditedTable,
  { stream, from, cutoff, changedIds }: AuditScope,
  lines: ReadonlyArray<string>,
): string =>
  [
    `Compares ${table.name} with the stream ${stream} of the service, as of ${instant(cutoff)}.`,
    `Left out on both sides: versions before ${instant(from)} or after the time above${changedIds.length === 0 ? '.' : `, and the ${changedIds.length} reviews that have changed since.`}`,
    ...lines,
  ]
    .map((line) => `-- ${line}\n`)
    .join('')

/** The statement that lists the buckets in which the table differs from the service; no row: they are equal. */
export const bucketStatement = (
  table: AuditedTable,
  scope: AuditScope,
  expected: ReadonlyArray<ExpectedBucket>,
): string => {
  const { decimal, integer } = dialects[table.dialect]
  const byBucket = new Map(expected.map((each) => [each.bucket, each]))
  const packed = Array.from({ length: scope.bucketCount }, (_, bucket) => {
    const { ids = 0n, rows = 0n, idDigest = 0n, versionDigest = 0n, rowDigest = 0n } = byBucket.get(bucket) ?? {}
    return (
      pack(ids, countWidth) +
      pack(rows, countWidth) +
      pack(idDigest, digestWidth) +
      pack(versionDigest, digestWidth) +
      pack(rowDigest, digestWidth)
    )
  })
  const number = (start: number, length: number, type: string): string =>
    `CAST(${field(bucketWidth, start, length)} AS ${type})`
  const found = (column: string): string => `COALESCE(buckets.${column}, 0)`
  return `${headSql(table, scope, ['Run it before the next load. No rows: equal. Otherwise the buckets of ids that differ; --ids BUCKET,… prints the statement that names their reviews.'])}WITH
${placesSql},
${packedRows('expected_parts', packed)},
${unpackedSql('expected', 'expected_parts', bucketWidth, [
  'first_place + place AS bucket',
  `${number(0, countWidth, integer)} AS ids`,
  `${number(countWidth, countWidth, integer)} AS row_count`,
  `${number(2 * countWidth, digestWidth, decimal)} AS id_digest`,
  `${number(2 * countWidth + digestWidth, digestWidth, decimal)} AS version_digest`,
  `${number(2 * countWidth + 2 * digestWidth, digestWidth, decimal)} AS row_digest`,
])},
${tableReviewsSql(table, scope)},
${bucketsSql(table.dialect, scope.bucketCount)}
SELECT expected.bucket,
  CASE
    WHEN ${found('ids')} < expected.ids THEN 'missing'
    WHEN ${found('ids')} > expected.ids THEN 'extra'
    WHEN ${found('id_digest')} <> expected.id_digest THEN 'missing and extra'
    WHEN ${found('version_digest')} <> expected.version_digest THEN 'stale'
    WHEN ${found('row_count')} < expected.row_count THEN 'rows missing'
    WHEN ${found('row_count')} > expected.row_count THEN 'doubled'
    ELSE 'rows missing and doubled'
  END AS difference,
  expected.ids AS expected_reviews, ${found('ids')} AS found_reviews, expected.row_count AS expected_rows, ${found('row_count')} AS found_rows
FROM expected LEFT JOIN buckets ON buckets.bucket = expected.bucket
WHERE ${found('ids')} <> expected.ids OR ${found('row_count')} <> expected.row_count OR ${found('id_digest')} <> expected.id_digest
  OR ${found('version_digest')} <> expected.version_digest OR ${found('row_digest')} <> expected.row_digest
ORDER BY expected.bucket;
`
}

const reviewWidth = idWidth + versionWidth + countWidth

/** The statement that names the reviews of some buckets that are missing, extra, stale or doubled; `expected`: the service's reviews in them. */
export const reviewStatement = (
  table: AuditedTable,
  scope: AuditScope,
  buckets: ReadonlyArray<number>,
  expected: ReadonlyArray<ExpectedReview>,
): string => {
  const { integer } = dialects[table.dialect]
  const packed = expected.map(
    ({ id, version, rows }) => pack(id, idWidth) + pack(version, versionWidth) + pack(rows, countWidth),
  )
  return `${headSql(table, scope, [`Names the reviews that differ in ${buckets.length === 1 ? 'bucket' : 'buckets'} ${buckets.join(', ')}. Versions are milliseconds since 1970; newer: loaded after the audit, or wrong.`])}WITH
${placesSql},
${packedRows('expected_parts', packed)},
${unpackedSql('expected', 'expected_parts', reviewWidth, [
  `${field(reviewWidth, 0, idWidth)} AS id`,
  `CAST(${field(reviewWidth, idWidth, versionWidth)} AS ${integer}) AS version`,
  `CAST(${field(reviewWidth, idWidth + versionWidth, countWidth)} AS ${integer}) AS row_count`,
])},
${tableReviewsSql(table, scope)},
found AS (
  SELECT id, version, row_count FROM reviews WHERE ${bucketOfSql(table.dialect, scope.bucketCount)} IN (${buckets.join(', ')})
),
later AS (
  SELECT id, MAX(version) AS version, COUNT(*) AS row_count FROM loaded_rows WHERE version > ${scope.cutoff} GROUP BY id
),
both_sides AS (
  SELECT COALESCE(expected.id, found.id) AS id, expected.version AS expected_version, found.version AS found_version,
    COALESCE(expected.row_count, 0) AS expected_rows, COALESCE(found.row_count, 0) AS found_rows
  FROM expected FULL OUTER JOIN found ON found.id = expected.id
),
compared AS (
  SELECT both_sides.id, expected_version, COALESCE(found_version, later.version) AS found_version, expected_rows,
    CASE WHEN found_version IS NULL THEN COALESCE(later.row_count, 0) ELSE found_rows END AS found_rows
  FROM both_sides LEFT JOIN later ON later.id = both_sides.id
)
SELECT id,
  CASE
    WHEN found_version IS NULL THEN 'missing'
    WHEN expected_version IS NULL THEN 'extra'
    WHEN found_version > ${scope.cutoff} THEN 'newer'
    WHEN found_version <> expected_version THEN 'stale'
    WHEN found_rows < expected_rows THEN 'rows missing'
    ELSE 'doubled'
  END AS difference,
  expected_version, found_version, expected_rows, found_rows
FROM compared
WHERE expected_version IS NULL OR found_version IS NULL OR found_version <> expected_version OR found_rows <> expected_rows
ORDER BY id;
`
}
