import {
  type AuditedTable,
  attributeColumn,
  type DialectName,
  dialects,
  hashSql,
  idSql,
  timeSql,
} from './audited-table'
import {
  type ContentDigest,
  contentRowsSql,
  describeContent,
  digestColumns,
  fieldDigestWidth,
  fieldName,
} from './content'
import { field, type PackedColumn, pack, packedColumns, packedRows, placesSql, unpackedSql } from './packed-rows'

/** The rows that an audit covers. Times are in milliseconds since 1970. */
export type AuditScope = {
  readonly stream: string
  /** Older versions are left out. */
  readonly from: number
  /** Later versions are left out. */
  readonly cutoff: number
  /** Both bounds as the clocks of the table's zone show them. */
  readonly shown: { readonly from: number; readonly cutoff: number }
  /** The reviews that changed since the cutoff. They are left out, whatever version the table has. */
  readonly changedIds: ReadonlyArray<string>
  readonly bucketCount: number
}

/** What the service has in a bucket of ids. Digests are sums, so the order of rows does not matter. */
export type ExpectedBucket = {
  readonly bucket: number
  readonly ids: bigint
  readonly rows: bigint
  readonly idDigest: bigint
  readonly versionDigest: bigint
  readonly rowDigest: bigint
  readonly contentDigest: bigint
}

/**
 * What the service has of one review: its version, how many rows the stream has for it, and the digests of their
 * content.
 */
export type ExpectedReview = {
  readonly id: string
  readonly version: number
  readonly rows: number
} & ContentDigest

const instant = (millis: number): string => new Date(millis).toISOString()

const idWidth = 20
const versionWidth = 16

/** The column that marks deleted rows, quoted; undefined if rows are not marked. */
const markColumn = ({ dialect, deletedColumn }: AuditedTable): string | undefined =>
  deletedColumn === undefined ? undefined : dialects[dialect].quote(deletedColumn)

/** The rows of the table as loaded: `loaded_rows (id, version)`, with their content if it is compared. */
const loadedRowsSql = (table: AuditedTable, condition: string | undefined): string => {
  const mark = markColumn(table)
  // A row without an id or a version does not come from the service. It stays, and shows as extra or stale.
  const id = `COALESCE(${idSql(table, 'loaded', table.idColumn)}, '')`
  const version = `COALESCE(${timeSql(table, 'loaded', table.versionColumn)}, -1)`
  const from = `${table.name} AS loaded${mark === undefined ? '' : `\n  WHERE loaded.${mark} IS NULL`}`
  if (table.content !== undefined)
    return `loaded_rows AS (
  ${contentRowsSql(table, table.content, { id, version, from }, condition)}
)`
  return `loaded_rows AS (
  SELECT ${id} AS id, ${version} AS version
  FROM ${from}
)`
}

/** The deletions that apply to the table's reviews: `deletions (id, version)`; undefined if there are none. */
const deletionsSql = (table: AuditedTable): string | undefined => {
  const isPart = table.rows === 'parts'
  const mark = markColumn(table)
  const id = idSql(table, 'deleted', isPart ? 'id' : table.idColumn)
  const version = timeSql(table, 'deleted', isPart ? attributeColumn(table, 'modifiedTime') : table.versionColumn)
  const sources = [
    ...(table.deletionsName === undefined ? [] : [`${table.deletionsName} AS deleted`]),
    // If every version is kept, a marked row deletes the versions before it.
    ...(table.rows === 'newest' && mark !== undefined
      ? [`${table.name} AS deleted WHERE deleted.${mark} IS NOT NULL`]
      : []),
  ].map((source) => `SELECT ${id} AS id, ${version} AS version FROM ${source}`)
  if (sources.length === 0) return undefined
  return `deletions AS (
  SELECT id, MAX(version) AS version
  FROM (
    ${sources.join('\n    UNION ALL ')}
  ) AS listed
  GROUP BY id
)`
}

/** The rows of the table to compare: without deleted ones and those outside the scope. */
const comparedRowsSql = (
  { shown }: AuditScope,
  digests: ReadonlyArray<string>,
  deletions: string | undefined,
): string => `compared_rows AS (
  SELECT ${['id', 'version', ...digests].join(', ')}
  FROM loaded_rows
  WHERE (version BETWEEN ${shown.from} AND ${shown.cutoff} OR version = -1)
    AND NOT EXISTS (SELECT 1 FROM changed WHERE changed.id = loaded_rows.id)${
      deletions === undefined
        ? ''
        : `
    AND NOT EXISTS (
      SELECT 1 FROM deletions WHERE deletions.id = loaded_rows.id AND deletions.version > loaded_rows.version
    )`
    }
)`

/** The newest version of each review, its number of rows, and the sums of their digests. */
const newestReviewsSql = ({ rows, dialect }: AuditedTable, digests: ReadonlyArray<string>): string => {
  const sums = (kind = ''): string =>
    digests.map((name) => `, SUM(${kind}CAST(${name} AS ${dialects[dialect].decimal})) AS ${name}`).join('')
  if (rows === 'one')
    return `reviews AS (
  SELECT id, MAX(version) AS version, COUNT(*) AS row_count${sums()}
  FROM compared_rows
  GROUP BY id
)`
  return `newest AS (
  SELECT id, MAX(version) AS version
  FROM compared_rows
  GROUP BY id
),
reviews AS (
  SELECT newest.id, newest.version, ${
    rows === 'newest' ? `1 AS row_count${sums('DISTINCT ')}` : `COUNT(*) AS row_count${sums()}`
  }
  FROM newest INNER JOIN compared_rows ON compared_rows.id = newest.id AND compared_rows.version = newest.version
  GROUP BY newest.id, newest.version
)`
}

/**
 * The reviews of the table: `reviews (id, version, row_count)`, with their content if it is compared, without those
 * that the audit leaves out. `condition`: selects the reviews by the column `id`; their single fields are digested too.
 */
const tableReviewsSql = (table: AuditedTable, scope: AuditScope, condition: string | undefined): string => {
  const digests = digestColumns(table, condition !== undefined)
  const deletions = deletionsSql(table)
  return [
    loadedRowsSql(table, condition),
    ...(deletions === undefined ? [] : [deletions]),
    packedRows('changed_parts', scope.changedIds, (changed) => pack(changed, idWidth)),
    unpackedSql('changed', 'changed_parts', idWidth, [`${field(idWidth, 0, idWidth)} AS id`]),
    comparedRowsSql(scope, digests, deletions),
    newestReviewsSql(table, digests),
  ].join(',\n')
}

/**
 * The columns of `buckets` for each bucket of `reviews (id, version, row_count)`, with `content` if `isDeep`. The
 * service's own reviews are counted with it too.
 */
export const bucketsSql = (dialectName: DialectName, bucketCount: number, isDeep: boolean): string => {
  const dialect = dialects[dialectName]
  const hash = hashSql(dialect)
  const sum = (value: string): string => `SUM(CAST(${value} AS ${dialect.decimal}))`
  return `hashed AS (
  SELECT row_count,${isDeep ? ' content,' : ''}
    ${hash.bucket('id', bucketCount)} AS bucket,
    ${hash.id('id')} AS id_hash,
    ${hash.version('id', 'version')} AS version_hash
  FROM reviews
),
buckets AS (
  SELECT bucket, COUNT(*) AS ids, SUM(row_count) AS row_count,
    ${sum('id_hash')} AS id_digest,
    ${sum('version_hash')} AS version_digest,
    ${sum(`CAST(version_hash AS ${dialect.decimal}) * row_count`)} AS row_digest${
      isDeep ? `,\n    ${sum('content')} AS content_digest` : ''
    }
  FROM hashed
  GROUP BY bucket
)`
}

/** The bucket of the column `id`. */
export const bucketOfSql = (dialectName: DialectName, bucketCount: number): string =>
  hashSql(dialects[dialectName]).bucket('id', bucketCount)

const countWidth = 10
const digestWidth = 28

/** The comments at the top of both statements: what they compare, and how to read the answer. */
const headSql = (
  table: AuditedTable,
  { stream, from, cutoff, changedIds }: AuditScope,
  lines: ReadonlyArray<string>,
): string =>
  [
    `Compares ${table.name} with the stream ${stream} of the service, as of ${instant(cutoff)}.`,
    ...(table.content === undefined ? [] : [describeContent(table.content)]),
    `Left out on both sides: versions before ${instant(from)} or after the time ` +
      `above${changedIds.length === 0 ? '.' : `, and the ${changedIds.length} reviews that have changed since.`}`,
    ...lines,
  ]
    .map((line) => `-- ${line}\n`)
    .join('')

/** The digests of a bucket, by their names here and in SQL. The last one exists only if the content is compared. */
const bucketDigests = [
  ['idDigest', 'id_digest'],
  ['versionDigest', 'version_digest'],
  ['rowDigest', 'row_digest'],
  ['contentDigest', 'content_digest'],
] as const

/** The statement that lists the buckets in which the table differs from the service. No rows: they are equal. */
export const bucketStatement = (
  table: AuditedTable,
  scope: AuditScope,
  expected: ReadonlyArray<ExpectedBucket>,
): string => {
  const { decimal, integer } = dialects[table.dialect]
  const isDeep = table.content !== undefined
  const byBucket = new Map(expected.map((each) => [each.bucket, each]))
  const digests = bucketDigests.slice(0, isDeep ? 4 : 3)
  const [bucketWidth, columns] = packedColumns([
    ['ids', countWidth, integer],
    ['row_count', countWidth, integer],
    ...digests.map(([, name]) => [name, digestWidth, decimal] as const),
  ])
  const packed = Array.from({ length: scope.bucketCount }, (_, bucket) => {
    const found = byBucket.get(bucket)
    const counts = pack(found?.ids ?? 0n, countWidth) + pack(found?.rows ?? 0n, countWidth)
    return counts + digests.map(([name]) => pack(found?.[name] ?? 0n, digestWidth)).join('')
  })
  return `${headSql(table, scope, [
    'Run it before the next load. No rows: equal. Otherwise the buckets of ids ' +
      'that differ; --ids BUCKET,… prints the statement that names their reviews.',
  ])}WITH
${placesSql},
${packedRows('expected_parts', packed)},
${unpackedSql('expected', 'expected_parts', bucketWidth, ['first_place + place AS bucket', ...columns])},
${tableReviewsSql(table, scope, undefined)},
${bucketsSql(table.dialect, scope.bucketCount, isDeep)}
${bucketDifferencesSql(isDeep)}`
}

/** The differences between `expected` and `buckets`. */
const bucketDifferencesSql = (isDeep: boolean): string => {
  const found = (column: string): string => `COALESCE(buckets.${column}, 0)`
  return `SELECT expected.bucket,
  CASE
    WHEN ${found('ids')} < expected.ids THEN 'missing'
    WHEN ${found('ids')} > expected.ids THEN 'extra'
    WHEN ${found('id_digest')} <> expected.id_digest THEN 'missing and extra'
    WHEN ${found('version_digest')} <> expected.version_digest THEN 'stale'
    WHEN ${found('row_count')} < expected.row_count THEN 'rows missing'
    WHEN ${found('row_count')} > expected.row_count THEN 'doubled'
    ${
      isDeep ? `WHEN ${found('row_digest')} = expected.row_digest THEN 'changed'\n    ` : ''
    }ELSE 'rows missing and doubled'
  END AS difference,
  expected.ids AS expected_reviews,
  ${found('ids')} AS found_reviews,
  expected.row_count AS expected_rows,
  ${found('row_count')} AS found_rows
FROM expected LEFT JOIN buckets ON buckets.bucket = expected.bucket
WHERE ${found('ids')} <> expected.ids
  OR ${found('row_count')} <> expected.row_count
  OR ${found('id_digest')} <> expected.id_digest
  OR ${found('version_digest')} <> expected.version_digest
  OR ${found('row_digest')} <> expected.row_digest${
    isDeep ? `\n  OR ${found('content_digest')} <> expected.content_digest` : ''
  }
ORDER BY expected.bucket;
`
}

/**
 * The statement that lists the missing, extra, stale, doubled or changed reviews in some buckets. `expected`: the
 * service's reviews in them.
 */
export const reviewStatement = (
  table: AuditedTable,
  scope: AuditScope,
  buckets: ReadonlyArray<number>,
  expected: ReadonlyArray<ExpectedReview>,
): string => {
  const { integer, decimal } = dialects[table.dialect]
  const packReview = ({ id, version, rows, content, fields }: ExpectedReview): string =>
    pack(id, idWidth) +
    pack(version, versionWidth) +
    pack(rows, countWidth) +
    (table.content === undefined ? '' : pack(content, digestWidth) + fields)
  const digests = digestColumns(table, true)
  const [reviewWidth, columns] = packedColumns([
    ['id', idWidth],
    ['version', versionWidth, integer],
    ['row_count', countWidth, integer],
    ...digests.map(
      (name, i): PackedColumn => (i === 0 ? [name, digestWidth, decimal] : [name, fieldDigestWidth, integer]),
    ),
  ])
  const condition = `${bucketOfSql(table.dialect, scope.bucketCount)} IN (${buckets.join(', ')})`
  return `${headSql(table, scope, [
    `Names the reviews that differ in ${buckets.length === 1 ? 'bucket' : 'buckets'} ` +
      `${buckets.join(', ')}. Versions are milliseconds since 1970, by clocks of ` +
      `${table.timeZone}; newer: loaded after the audit, or wrong.`,
  ])}WITH
${placesSql},
${packedRows('expected_parts', expected, packReview)},
${unpackedSql('expected', 'expected_parts', reviewWidth, columns)},
${tableReviewsSql(table, scope, condition)},
found AS (
  SELECT ${['id', 'version', 'row_count', ...digests].join(', ')}
  FROM reviews
  WHERE ${condition}
),
later AS (
  SELECT id, MAX(version) AS version, COUNT(*) AS row_count
  FROM loaded_rows
  WHERE version > ${scope.shown.cutoff}
  GROUP BY id
),
${bothSidesSql(table.content)}
${reviewDifferencesSql(scope, table.content !== undefined)}`
}

/** Each review in `expected` or `found` with the versions and rows of both sides, and the columns that have changed. */
const bothSidesSql = (content: AuditedTable['content']): string => {
  const differs = (name: string): string => `expected.${name} <> found.${name}`
  const changedNames = content?.fields.map(
    (each, i) => `CASE WHEN ${differs(`field_${i}`)} THEN ' ${fieldName(each)}' ELSE '' END`,
  )
  const changes = changedNames && [
    `CASE WHEN ${differs('content')} THEN 1 ELSE 0 END AS is_changed`,
    `TRIM(${["''", ...changedNames].join('\n      || ')}) AS changed_columns`,
  ]
  return `both_sides AS (
  SELECT ${[
    'COALESCE(expected.id, found.id) AS id',
    'expected.version AS expected_version',
    'found.version AS found_version',
    'COALESCE(expected.row_count, 0) AS expected_rows',
    'COALESCE(found.row_count, 0) AS found_rows',
    ...(changes ?? []),
  ].join(',\n    ')}
  FROM expected FULL OUTER JOIN found ON found.id = expected.id
),
compared AS (
  SELECT both_sides.id, expected_version, COALESCE(found_version, later.version) AS found_version, expected_rows,
    CASE WHEN found_version IS NULL THEN COALESCE(later.row_count, 0) ELSE found_rows END AS found_rows${
      changes === undefined ? '' : ', is_changed, changed_columns'
    }
  FROM both_sides LEFT JOIN later ON later.id = both_sides.id
)`
}

/** The differences between the reviews in `compared`. */
const reviewDifferencesSql = ({ shown }: AuditScope, isDeep: boolean): string => `SELECT id,
  CASE
    WHEN found_version IS NULL THEN 'missing'
    WHEN expected_version IS NULL THEN 'extra'
    WHEN found_version > ${shown.cutoff} THEN 'newer'
    WHEN found_version <> expected_version THEN 'stale'
    WHEN found_rows < expected_rows THEN 'rows missing'
    ${isDeep ? `WHEN found_rows = expected_rows THEN 'changed'\n    ` : ''}ELSE 'doubled'
  END AS difference,
  expected_version, found_version, expected_rows, found_rows${
    isDeep
      ? `,
  CASE
    WHEN found_rows = expected_rows AND found_version = expected_version THEN changed_columns
    ELSE ''
  END AS changed_columns`
      : ''
  }
FROM compared
WHERE expected_version IS NULL
  OR found_version IS NULL
  OR found_version <> expected_version
  OR found_rows <> expected_rows${isDeep ? '\n  OR is_changed = 1' : ''}
ORDER BY id;
`
