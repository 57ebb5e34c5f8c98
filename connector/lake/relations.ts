import {
  airbyteColumns,
  deletedAtSql,
  deletionsTableName,
  findReviewReference,
  hasTombstonesSql,
  historyTableName,
  isChildTable,
  loadColumnName,
  quoteIdentifier,
  quoteLiteral,
  reviewsTableName,
  type Table,
  versionsTableName,
} from '../snapshot/store'

/** A stream of a lake: the columns of its versions, and what decides which of them is shown. */
export type LakeStream = {
  readonly table: Table
  /** The columns of the key; empty if every record is a row. */
  readonly key: ReadonlyArray<string>
  readonly cursor: string | undefined
}

type View = { readonly name: string; readonly sql: string }

const columnNames = ({ columns }: Table): ReadonlyArray<string> => [
  ...columns.map(({ name }) => name),
  ...airbyteColumns.map(([name]) => name),
]

/** The columns of a stream's view, from its versions `v`. */
export const columnListSql = (table: Table): string =>
  columnNames(table)
    .map((name) => `v.${quoteIdentifier(name)}`)
    .join(', ')

/** The table of a stream's versions, quoted. */
export const versionsOf = (stream: string): string => quoteIdentifier(versionsTableName(stream))

/** SQL that creates the table of a stream's versions. Only a compaction or an erasure rewrites it. */
export const createVersionsSql = ({ name, columns }: Table): string => {
  const definitions = [
    ...columns.map((column) => [column.name, column.type] as const),
    ...airbyteColumns,
    [loadColumnName, 'BIGINT'] as const,
  ]
  const columnsSql = definitions.map(([column, type]) => `${quoteIdentifier(column)} ${type}`).join(', ')
  return `CREATE TABLE ${versionsOf(name)} (${columnsSql})`
}

const boundSql = (stream: string, bound: 'shown_from' | 'shown_to' | 'refreshed'): string =>
  `(SELECT ${bound} FROM _streams WHERE stream = ${quoteLiteral(stream)})`

/** True for the rows `v` of the newest complete generation, and for later ones that replace nothing. */
const isShownGenerationSql = (stream: string): string =>
  `v._airbyte_generation_id BETWEEN ${boundSql(stream, 'shown_from')} AND ${boundSql(stream, 'shown_to')}`

/** The order of the versions of a key: by generation, then cursor, then order of appending. */
const newestFirstSql = ({ table, cursor }: LakeStream): string => {
  const column = table.columns.find(({ name }) => name === cursor)
  return [
    'v._airbyte_generation_id DESC',
    ...(column === undefined ? [] : [`v.${quoteIdentifier(column.name)} DESC NULLS LAST`]),
    'v.rowid DESC',
  ].join(', ')
}

/** Keeps the newest version of each key. A key with a null equals no other. */
const newestSql = (stream: LakeStream): string => {
  const columns = stream.key.map((name) => `v.${quoteIdentifier(name)}`)
  const isNull = columns.map((column) => `${column} IS NULL`).join(' OR ')
  return `QUALIFY row_number() OVER (
      PARTITION BY ${columns.join(', ')}, CASE WHEN ${isNull} THEN v.rowid END ORDER BY ${newestFirstSql(stream)}) = 1`
}

/** The shown rows, by their number in the table of versions, of a stream that neither is nor belongs to reviews. */
const plainRowsSql = (stream: LakeStream): string => `
    SELECT v.rowid AS row FROM ${versionsOf(stream.table.name)} AS v
    WHERE ${isShownGenerationSql(stream.table.name)}
    ${stream.key.length === 0 ? '' : newestSql(stream)}`

/**
 * Rows that belong to reviews: those of the shown version of their review, and those of a later version than known,
 * which may come before their review.
 */
const childRowsSql = (stream: LakeStream, id: string, time: string): string => {
  const { table, key } = stream
  const [idSql, timeSql] = [`v.${quoteIdentifier(id)}`, `v.${quoteIdentifier(time)}`]
  return `
    SELECT v.rowid AS row FROM ${versionsOf(table.name)} AS v
    LEFT JOIN _review_heads AS head ON head.id = ${idSql}
    WHERE ${isShownGenerationSql(table.name)} AND (
      head.id IS NULL OR ${timeSql} IS NULL OR ${timeSql} > head.latest OR coalesce(${timeSql} = head.shown, false))
    ${key.length === 0 ? '' : newestSql(stream)}`
}

/** The tombstones among the reviews: when they delete earlier versions, and in `since` also later ones. */
const tombstonesSql = (reviews: Table, id: string, time: string, tombstone: string): string => {
  const [timeSql, markSql] = [`v.${quoteIdentifier(time)}`, deletedAtSql(reviews, 'v')]
  return `
  SELECT v.${quoteIdentifier(id)} AS id, v.rowid AS row,
    coalesce(${timeSql}, ${markSql}) AS time, least(${timeSql}, ${markSql}) AS since
  FROM ${versionsOf(reviewsTableName)} AS v WHERE ${tombstone}`
}

type Relations = {
  readonly reviews: LakeStream | undefined
  readonly deletions: LakeStream | undefined
}

/**
 * What all tables of reviews read. A review is deleted if a deletion is later than it, whichever was read first. A
 * version from the deletion's millisecond stays, since the service returns it only if the review was restored.
 */
const sharedViews = ({ reviews, deletions }: Relations): ReadonlyArray<View> => {
  const review = reviews && findReviewReference(reviews.table)
  const deletion = deletions && findReviewReference(deletions.table)
  const tombstone = reviews && review && hasTombstonesSql(reviews.table, 'v')
  const noneSql = 'SELECT NULL::BIGINT AS id, NULL::TIMESTAMPTZ AS time WHERE false'
  const tombstones = review && tombstone && tombstonesSql(review.table, review.id, review.time, tombstone)
  const timesSql = (table: Table, id: string, time: string) =>
    `SELECT v.${quoteIdentifier(id)} AS id, v.${quoteIdentifier(time)} AS time FROM ${versionsOf(table.name)} AS v`
  const deletionTimes = deletion ? timesSql(deletion.table, deletion.id, deletion.time) : noneSql
  const reviewTimes = review ? timesSql(review.table, review.id, review.time) : noneSql
  return [
    {
      name: '_deletions',
      sql: tombstones
        ? `SELECT id, max(since) AS time FROM (${tombstones}) WHERE since IS NOT NULL GROUP BY id`
        : noneSql,
    },
    {
      name: '_gone',
      sql: `SELECT id, max(time) AS time FROM (${deletionTimes} UNION ALL SELECT id, time FROM _deletions) GROUP BY id`,
    },
    {
      // What ends a version: a deletion, or a later version of the review.
      name: '_review_events',
      sql: `
  SELECT id, time, true AS deletes FROM (${deletionTimes})
  ${tombstones ? `UNION ALL SELECT id, time, true FROM (${tombstones})` : ''}
  UNION ALL SELECT id, time, false FROM (${reviewTimes})
  UNION ALL SELECT id, time, false FROM _review_times`,
    },
    ...(reviews && review
      ? [{ name: '_shown_reviews', sql: shownReviewsSql(reviews, review, tombstone, tombstones) }]
      : []),
    { name: '_review_heads', sql: reviewHeadsSql(reviewTimes, review !== undefined) },
  ]
}

/** The shown version of each review: its row in the table of versions, and its time. */
const shownReviewsSql = (
  stream: LakeStream,
  { id, time }: { readonly id: string; readonly time: string },
  tombstone: string | undefined,
  tombstones: string | undefined,
): string => `
  SELECT v.${quoteIdentifier(id)} AS id, v.rowid AS row, v.${quoteIdentifier(time)} AS time
  FROM ${versionsOf(reviewsTableName)} AS v
  LEFT JOIN _gone AS gone ON gone.id = v.${quoteIdentifier(id)}
  ${
    tombstones === undefined
      ? ''
      : `ANTI JOIN (${tombstones}) AS mark
    ON mark.id = v.${quoteIdentifier(id)} AND mark.row > v.rowid AND v.${quoteIdentifier(time)} < mark.time`
  }
  WHERE ${isShownGenerationSql(reviewsTableName)} AND (v.${quoteIdentifier(time)} < gone.time) IS NOT TRUE
    ${tombstone === undefined ? '' : `AND NOT ${tombstone}`}
  ${stream.key.length === 0 ? '' : newestSql(stream)}`

/**
 * For each known review: the time of the shown version (null if deleted) and the last known time. If reviews were not
 * read, the rows that belong to them show its versions.
 */
const reviewHeadsSql = (reviewTimes: string, hasReviews: boolean): string => `
  SELECT id, greatest(max(read), max(named), max(gone) - INTERVAL 1 MICROSECOND) AS latest,
    CASE
      WHEN coalesce(max(named) > max(read), max(named) IS NOT NULL)
        THEN CASE WHEN (max(named) < max(gone)) IS NOT TRUE THEN max(named) END
      ELSE max(shown)
    END AS shown
  FROM (
    SELECT id, time AS read, NULL::TIMESTAMPTZ AS shown, NULL::TIMESTAMPTZ AS named, NULL::TIMESTAMPTZ AS gone
    FROM (${reviewTimes})
    ${hasReviews ? 'UNION ALL SELECT id, NULL, time, NULL, NULL FROM _shown_reviews' : ''}
    UNION ALL SELECT id, NULL, NULL, time, NULL FROM _review_times
    UNION ALL SELECT id, NULL, NULL, NULL, time FROM _gone)
  GROUP BY id`

/** The versions that are not shown, each once, and when they ended if no later version of their key shows it. */
const historySql = ({ table }: LakeStream): string => {
  const { name } = table
  const reference = findReviewReference(table)
  const tombstone = hasTombstonesSql(table, 'v')
  const isOldSql = `v._airbyte_generation_id < ${boundSql(name, 'shown_from')}`
  const endedSql = `CASE WHEN ${isOldSql} THEN ${boundSql(name, 'refreshed')} END`
  const events =
    reference === undefined || name === deletionsTableName
      ? undefined
      : `ASOF LEFT JOIN (FROM _review_events${name === reviewsTableName ? ' WHERE deletes' : ''}) AS event
    ON event.id = v.${quoteIdentifier(reference.id)} AND event.time > v.${quoteIdentifier(reference.time)}`
  return `
  SELECT ${columnListSql(table)}, ${events === undefined ? endedSql : `least(event.time, ${endedSql})`} AS _ended
  FROM (
    SELECT v.* FROM ${versionsOf(name)} AS v
    ANTI JOIN ${quoteIdentifier(name)} AS shown ON shown._airbyte_raw_id = v._airbyte_raw_id
    WHERE v._airbyte_generation_id <= ${boundSql(name, 'shown_to')} AND NOT ${tombstone ?? 'false'}
    QUALIFY row_number() OVER (PARTITION BY v._airbyte_raw_id ORDER BY v.rowid) = 1) AS v
  ${events ?? ''}`
}

/** The shown rows of a stream, by their number in the table of its versions. */
export const shownRowsSql = (stream: LakeStream): string => {
  const { table } = stream
  const reference = findReviewReference(table)
  if (reference === undefined || table.name === deletionsTableName) return plainRowsSql(stream)
  if (isChildTable(table)) return childRowsSql(stream, reference.id, reference.time)
  return 'SELECT row FROM _shown_reviews'
}

const rowsSql = (stream: LakeStream): string => {
  const { table, key } = stream
  const versions = `SELECT ${columnListSql(table)} FROM ${versionsOf(table.name)} AS v`
  // Without a key all rows of a generation are shown, so there is nothing to look up.
  return key.length === 0 && findReviewReference(table) === undefined
    ? `${versions} WHERE ${isShownGenerationSql(table.name)}`
    : `${versions} JOIN (${shownRowsSql(stream)}) AS shown ON shown.row = v.rowid`
}

/** True for versions `v` that are not shown but still needed: tombstones, and rows of an unfinished refresh. */
export const isNeededSql = ({ table }: LakeStream): string => {
  const tombstone = table.name === reviewsTableName ? hasTombstonesSql(table, 'v') : undefined
  return `(v._airbyte_generation_id > ${boundSql(table.name, 'shown_to')} OR ${tombstone ?? 'false'})`
}

/** The views of a stream, plus the shared ones if it belongs to reviews. `streams`: all of the lake. */
const listViews = (stream: LakeStream, streams: ReadonlyArray<LakeStream>): ReadonlyArray<View> => {
  const { name } = stream.table
  const find = (wanted: string) => streams.find(({ table }) => table.name === wanted)
  const shared = [reviewsTableName, deletionsTableName].includes(name)
    ? sharedViews({ reviews: find(reviewsTableName), deletions: find(deletionsTableName) })
    : []
  return [
    ...shared,
    { name, sql: rowsSql(stream) },
    ...(stream.key.length === 0 ? [] : [{ name: historyTableName(name), sql: historySql(stream) }]),
  ]
}

/** The views that every lake has before its first stream. */
export const firstViewsSql = (): string => createSql(sharedViews({ reviews: undefined, deletions: undefined }))

/** Recreates the views of a stream with its current columns, key and cursor. */
export const replaceViewsSql = (stream: LakeStream, streams: ReadonlyArray<LakeStream>): string =>
  createSql(listViews(stream, streams))

const createSql = (views: ReadonlyArray<View>): string =>
  views.map(({ name, sql }) => `CREATE OR REPLACE VIEW ${quoteIdentifier(name)} AS ${sql}`).join(';\n')
