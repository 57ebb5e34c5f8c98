import {
  type AuditedTable,
  attributeColumn,
  type DialectName,
  dialects,
  hashSql,
  idSql,
  md5Of,
  timeSql,
  type ZoneClock,
} from './audited-table'
import { field, packedRows, placesSql, quoteList, unpackedSql } from './packed-rows'

/** The calendar windows, in the table's time zone, that group the rows of an entity by time. */
export const auditWindows = ['month', 'year'] as const
export type AuditWindow = (typeof auditWindows)[number]

/** An entity to compare. `name`: the entity in characters that are safe in every dialect and shell. */
type AuditedEntity = { readonly entity: string; readonly name: string; readonly cutoff: number }

export type FeedbackScope = {
  readonly stream: string
  readonly from: number
  readonly window: AuditWindow
  readonly entities: ReadonlyArray<AuditedEntity>
  /** Of the table's time zone. It shows no bound twice. */
  readonly clock: ZoneClock
  /** The entities that are left out, with reasons. */
  readonly leftOut: ReadonlyArray<{ readonly entity: string; readonly reason: string }>
}

/** What the service has of an entity in one window. */
export type ExpectedGroup = {
  readonly bucket: string
  readonly ids: string
  readonly idDigest: string
  readonly versionDigest: string
}

/** A row by its entity's name. `version`: its time. */
export type NamedFeedback = { readonly name: string; readonly id: string; readonly version: string }

/** The name for rows without an entity, and the window for rows without a time. */
const nobody = 'none'

/** An entity's name in statements and on the command line. */
export const toEntityName = (entity: string): string => entity.replaceAll(/[^\w.:@-]/g, '_')

const bucketPattern = /^(?:none|(?:person|location|entity):[\w.:@-]+)\/(?:\d{4}(?:-\d{2})?|none)$/

/** True if a text is an entity's name as `toEntityName` returns it, or the name for none. */
export const isEntityName = (text: string): boolean => bucketPattern.test(`${text}/${nobody}`)

/** True if a text is a bucket as the statement names it, such as `location:1034/2026-03`. */
export const isFeedbackBucket = (text: string): boolean => bucketPattern.test(text)

/**
 * The SQL that counts both sides: the bucket of each row of `feedback (name, id, version, row_count)`, and the sums.
 */
export const groupsSql = (dialectName: DialectName, window: AuditWindow): string => {
  const dialect = dialects[dialectName]
  const hash = hashSql(dialect)
  const month = dialect.month('version')
  const sum = (value: string): string => `SUM(CAST(${value} AS ${dialect.decimal}))`
  const key = `name || ':' || id`
  return `placed AS (
  SELECT name, id, version, row_count, name || '/' || CASE
      WHEN version < 0 THEN '${nobody}'
      ELSE ${window === 'month' ? month : `SUBSTRING(${month}, 1, 4)`}
    END AS bucket
  FROM feedback
),
buckets AS (
  SELECT bucket, COUNT(*) AS ids, SUM(row_count) AS row_count,
    ${sum(hash.id(key))} AS id_digest,
    ${sum(hash.version(key, 'version'))} AS version_digest
  FROM placed
  GROUP BY bucket
)`
}

/** Packs rows of texts into columns as wide as their widest text. `column`: the SQL of one. */
export const packColumns = (rows: ReadonlyArray<ReadonlyArray<string>>) => {
  const widths = (rows[0] ?? ['']).map((_, i) => rows.reduce((most, row) => Math.max(most, row[i]?.length ?? 0), 1))
  const width = widths.reduce((sum, each) => sum + each, 0)
  return {
    width,
    packed: rows.map((row) => row.map((text, i) => text.padStart(widths[i] ?? 0)).join('')),
    column: (index: number): string =>
      field(
        width,
        widths.slice(0, index).reduce((sum, each) => sum + each, 0),
        widths[index] ?? 1,
      ),
  }
}

/**
 * The hash that identifies an entity, so that the statement contains no names with characters that a dialect reads
 * differently.
 */
const entityHashSql = (table: AuditedTable, prefix: string): string => {
  const { md5, text, quote } = dialects[table.dialect]
  const column = (name: string): string => `CAST(${prefix}${quote(attributeColumn(table, name))} AS ${text})`
  return md5(`${column('entityType')} || ':' || ${column('entityId')}`)
}

/**
 * The rows of the table: `feedback (name, id, version, row_count)`, up to each entity's cutoff. `all_rows` also has
 * later ones.
 */
const tableFeedbackSql = (table: AuditedTable, { from, entities, clock }: FeedbackScope): string => {
  const { integer } = dialects[table.dialect]
  const latest = entities.reduce((most, { cutoff }) => Math.max(most, cutoff), from)
  const { width, packed, column } = packColumns([
    ['-', nobody, String(clock.show(latest))],
    ...entities.map(({ entity, name, cutoff }) => [md5Of(entity), name, String(clock.show(cutoff))]),
  ])
  // A row without entity, id or time does not come from the service. It stays, and shows as extra or stale.
  return `${packedRows('entity_parts', packed)},
${unpackedSql('audited', 'entity_parts', width, [
  `${column(0)} AS entity_hash`,
  `${column(1)} AS name`,
  `CAST(${column(2)} AS ${integer}) AS cutoff`,
])},
loaded_rows AS (
  SELECT COALESCE(${entityHashSql(table, 'loaded.')}, '-') AS entity_hash,
    COALESCE(${idSql(table, 'loaded', table.idColumn)}, '') AS id,
    COALESCE(${timeSql(table, 'loaded', table.versionColumn)}, -1) AS version
  FROM ${table.name} AS loaded
),
all_rows AS (
  SELECT audited.name, loaded_rows.id, loaded_rows.version, audited.cutoff
  FROM loaded_rows INNER JOIN audited ON audited.entity_hash = loaded_rows.entity_hash
  WHERE loaded_rows.version >= ${clock.show(from)} OR loaded_rows.version = -1
),
feedback AS (
  SELECT name, id, MAX(version) AS version, ${table.rows === 'newest' ? '1' : 'COUNT(*)'} AS row_count
  FROM all_rows
  WHERE version <= cutoff
  GROUP BY name, id
)`
}

const headSql = (
  table: AuditedTable,
  { stream, from, entities, leftOut }: FeedbackScope,
  lines: ReadonlyArray<string>,
): string => {
  const cutoffs = entities.map(({ cutoff }) => cutoff)
  const [first, last] = [Math.min(...cutoffs), Math.max(...cutoffs)].map((time) => new Date(time).toISOString())
  const named = leftOut.slice(0, 20).map(({ entity, reason }) => `${toEntityName(entity)} (${reason})`)
  const others = leftOut.length > named.length ? ` and ${leftOut.length - named.length} more` : ''
  return [
    `Compares ${table.name} with the stream ${stream} of the service for ${entities.length} entities, ` +
      `as of ${first === last ? first : `the time up to which each was read, ${first} to ${last}`}.`,
    `Left out on both sides: rows before ${new Date(from).toISOString()} or later than that, ` +
      `and other entities${named.length === 0 ? '.' : `, such as ${named.join(', ')}${others}.`}`,
    ...lines,
  ]
    .map((line) => `-- ${line}\n`)
    .join('')
}

/** The statement that lists the windows in which entities differ between table and service. No rows: they are equal. */
export const feedbackBucketStatement = (
  table: AuditedTable,
  scope: FeedbackScope,
  expected: ReadonlyArray<ExpectedGroup>,
): string => {
  const { decimal, integer } = dialects[table.dialect]
  const { width, packed, column } = packColumns(
    expected.map(({ bucket, ids, idDigest, versionDigest }) => [bucket, ids, idDigest, versionDigest]),
  )
  const either = (name: string): readonly [string, string] => [
    `COALESCE(expected.${name}, 0)`,
    `COALESCE(buckets.${name}, 0)`,
  ]
  const [[ids, foundIds], [idDigest, foundIdDigest], [versionDigest, foundVersionDigest]] = [
    either('ids'),
    either('id_digest'),
    either('version_digest'),
  ]
  return `${headSql(table, scope, [
    'Run it before the next load. No rows: equal. Otherwise each row is an entity and a ' +
      `${scope.window} that differ; --ids BUCKET,… prints the statement that names their rows.`,
  ])}WITH
${placesSql},
${packedRows('expected_parts', packed)},
${unpackedSql('expected', 'expected_parts', width, [
  `${column(0)} AS bucket`,
  `CAST(${column(1)} AS ${integer}) AS ids`,
  `CAST(${column(2)} AS ${decimal}) AS id_digest`,
  `CAST(${column(3)} AS ${decimal}) AS version_digest`,
])},
${tableFeedbackSql(table, scope)},
${groupsSql(table.dialect, scope.window)}
SELECT COALESCE(expected.bucket, buckets.bucket) AS bucket,
  CASE
    WHEN ${foundIds} < ${ids} THEN 'missing'
    WHEN ${foundIds} > ${ids} THEN 'extra'
    WHEN ${foundIdDigest} <> ${idDigest} THEN 'missing and extra'
    WHEN ${foundVersionDigest} <> ${versionDigest} THEN 'stale'
    ELSE 'doubled'
  END AS difference,
  ${ids} AS expected_rows, ${foundIds} AS found_ids, COALESCE(buckets.row_count, 0) AS found_rows
FROM expected FULL OUTER JOIN buckets ON buckets.bucket = expected.bucket
WHERE ${foundIds} <> ${ids}
  OR ${foundIdDigest} <> ${idDigest}
  OR ${foundVersionDigest} <> ${versionDigest}
  OR COALESCE(buckets.row_count, 0) <> ${foundIds}
ORDER BY bucket;
`
}

/**
 * The statement that lists the missing, extra, stale or doubled rows of some buckets. `expected`: the service's rows in
 * them.
 */
export const feedbackRowStatement = (
  table: AuditedTable,
  scope: FeedbackScope,
  buckets: ReadonlyArray<string>,
  expected: ReadonlyArray<NamedFeedback>,
): string => {
  const { width, packed, column } = packColumns(expected.map(({ name, id, version }) => [name, id, version]))
  return `${headSql(table, scope, [
    `Names the rows that differ in ${buckets.join(', ')}. Versions are times in milliseconds ` +
      `since 1970, by clocks of ${table.timeZone}; newer: loaded after the audit, or wrong.`,
  ])}WITH
${placesSql},
${packedRows('expected_parts', packed)},
${unpackedSql('expected', 'expected_parts', width, [
  `${column(0)} AS name`,
  `${column(1)} AS id`,
  `CAST(${column(2)} AS ${dialects[table.dialect].integer}) AS version`,
])},
${tableFeedbackSql(table, scope)},
${groupsSql(table.dialect, scope.window)},
found AS (
  SELECT name, id, version, row_count
  FROM placed
  WHERE bucket IN (${quoteList(buckets)})
),
later AS (
  SELECT name, id, MAX(version) AS version, COUNT(*) AS row_count
  FROM all_rows
  WHERE version > cutoff
  GROUP BY name, id
),
both_sides AS (
  SELECT COALESCE(expected.name, found.name) AS name, COALESCE(expected.id, found.id) AS id,
    expected.version AS expected_version, found.version AS found_version, COALESCE(found.row_count, 0) AS found_rows
  FROM expected FULL OUTER JOIN found ON found.name = expected.name AND found.id = expected.id
),
compared AS (
  SELECT both_sides.name, both_sides.id, expected_version, COALESCE(found_version, later.version) AS found_version,
    CASE WHEN found_version IS NULL THEN COALESCE(later.row_count, 0) ELSE found_rows END AS found_rows,
    CASE WHEN found_version IS NULL AND later.version IS NOT NULL THEN 1 ELSE 0 END AS is_later
  FROM both_sides LEFT JOIN later ON later.name = both_sides.name AND later.id = both_sides.id
)
SELECT name AS entity, id,
  CASE
    WHEN found_version IS NULL THEN 'missing'
    WHEN expected_version IS NULL THEN 'extra'
    WHEN is_later = 1 THEN 'newer'
    WHEN found_version <> expected_version THEN 'stale'
    ELSE 'doubled'
  END AS difference,
  expected_version, found_version, found_rows
FROM compared
WHERE expected_version IS NULL
  OR found_version IS NULL
  OR found_version <> expected_version
  OR found_rows <> 1
ORDER BY name, id;
`
}

/** A row that differs, according to an audit. `entity`: its name. */
export type FeedbackDifference = { readonly entity: string; readonly id: string; readonly difference: string }

const idsPerDeletion = 1000

/**
 * Statements that delete extra, stale or doubled rows. The run from the repaired state sends them again as the service
 * has them.
 */
export const deleteFeedbackStatement = (
  table: AuditedTable,
  { entities }: FeedbackScope,
  differences: ReadonlyArray<FeedbackDifference>,
): string => {
  const { quote } = dialects[table.dialect]
  const hash = entityHashSql(table, '')
  const byName = new Map<string, string[]>()
  for (const { entity, id, difference } of differences)
    if (difference !== 'missing') byName.set(entity, [...(byName.get(entity) ?? []), id])
  const statements = [...byName].flatMap(([name, ids]) => {
    const hashes = entities.filter((each) => each.name === name).map(({ entity }) => md5Of(entity))
    const ofEntity = name === nobody ? `${hash} IS NULL` : `${hash} IN (${quoteList(hashes)})`
    const column = quote(table.idColumn)
    const known = ids.filter((id) => id !== '').map((id) => (table.idType === 'text' ? `'${id}'` : id))
    const chunks = Array.from({ length: Math.ceil(known.length / idsPerDeletion) }, (_, n) =>
      known.slice(n * idsPerDeletion, (n + 1) * idsPerDeletion),
    )
    return [
      ...chunks.map((chunk) => `${column} IN (${chunk.join(', ')})`),
      ...(ids.includes('') ? [`${column} IS NULL`] : []),
    ].map((condition) => `DELETE FROM ${table.name} WHERE ${ofEntity} AND ${condition};\n`)
  })
  return statements.length === 0 ? '-- There is nothing to delete.\n' : statements.join('')
}
