import { createHash } from 'node:crypto'
import { type Database, instantSql, quoteIdentifier, quoteLiteral, type Snapshot } from './database'
import { regionsTableName, scalesTableName } from './metadata'
import { deletionsTableName, foldCase, historyTableName, reviewsTableName, streamOfTable, type Table } from './tables'

// The id of a forgotten review is kept, since every run would bring it back otherwise. Ids from elsewhere, such as a
// visit's, are kept as hashes, which is enough to compare them.

/** What `_forgotten` names: `review` by its id, everything else by a SHA-256 in hexadecimal digits. */
type ForgottenKind = 'review' | 'visit_record' | 'survey' | 'comment'

/** The tombstones of what was erased on request. A file without any does not have this table. */
export const forgottenTableName = '_forgotten'

export const forgottenTableSql = (database = ''): string =>
  `CREATE TABLE IF NOT EXISTS ${database}${forgottenTableName} (kind VARCHAR, id VARCHAR, forgotten_at TIMESTAMPTZ)`

/** The file has the table; `attached`: the name of an attached file, by default the opened one. */
export const hasForgottenTable = async (db: Database, attached?: string): Promise<boolean> =>
  (await db.scalar(`
    SELECT count(*) FROM duckdb_tables()
    WHERE database_name = ${attached === undefined ? 'current_database()' : quoteLiteral(attached)}
      AND schema_name = 'main' AND table_name = '${forgottenTableName}'`)) !== 0

/** Something was forgotten in the file. */
export const hasForgotten = async (db: Database): Promise<boolean> =>
  (await hasForgottenTable(db)) && (await db.scalar(`SELECT count(*) FROM ${forgottenTableName}`)) !== 0

/**
 * Finds out if the service's rows were erased on request, by their id and, for comments, the time of their mention in
 * milliseconds.
 */
type ForgottenFilter = {
  readonly isReview: (id: string) => boolean
  readonly isComment: (id: string, mentionTime: number) => boolean
}

export const readForgotten = async ({ db }: Snapshot): Promise<ForgottenFilter> => {
  const rows = (await hasForgottenTable(db)) ? await db.query(`SELECT kind, id FROM ${forgottenTableName}`) : []
  const known = new Set(rows.map(({ kind, id }) => `${kind} ${id}`))
  return {
    isReview: (id) => known.has(`review ${id}`),
    isComment: (id, mentionTime) =>
      known.has(
        `comment ${createHash('sha256')
          .update(`${id}@${Math.floor(mentionTime / 1000)}`)
          .digest('hex')}`,
      ),
  }
}

/** An id as digits, however the number was written. */
const idSql = (text: string): string => `coalesce(TRY_CAST(${text} AS HUGEINT)::VARCHAR, ${text})`

/** What `_forgotten` keeps of a text, such as the id of a visit. */
const hashTextSql = (text: string): string => `sha256(trim(${text}))`

/**
 * What it keeps of a comment. Ids of contents and of comments may overlap, so the second of the mention is included.
 */
const hashCommentSql = (id: string, mentionTime: string): string =>
  `sha256(${idSql(id)} || '@' || floor(epoch(TRY_CAST(${mentionTime} AS TIMESTAMPTZ)))::BIGINT)`

/** A table or the records of a stream. */
export type PersonRows = {
  /** SQL for an attribute as text; undefined if there is none. */
  readonly text: (attribute: string) => string | undefined
  /** Their `id` is that of a review. */
  readonly isReview: boolean
  /** Their `id` is that of a comment. */
  readonly isComment: boolean
}

const reviewTables: ReadonlyArray<string> = [reviewsTableName, deletionsTableName, '_deletions', '_review_times']
const commentsTableName = 'comments'

/** The type of a text that may be JSON, as in Parquet files. */
export const jsonTextType = 'VARCHAR or JSON'

/** The text itself, or the text in a JSON string. */
const unquoteSql = (text: string): string =>
  `CASE WHEN starts_with(${text}, '"') THEN coalesce(TRY(json_extract_string(${text}, '$')), ${text}) ELSE ${text} END`

/** The rows of a table, read as `t`: of a stream, of its history, or of a user's copy of either. */
export const toPersonRows = (
  table: string,
  columns: ReadonlyArray<{ readonly name: string; readonly type: string }>,
): PersonRows => {
  const byName = new Map(columns.map((column) => [foldCase(column.name), column]))
  const has = (...names: ReadonlyArray<string>) => names.every((name) => byName.has(foldCase(name)))
  const stream = streamOfTable(table)
  const isCopy = has('id', 'modifiedTime') && ['contents', 'visitRecordId', 'surveyBarCode'].some((name) => has(name))
  return {
    isReview: reviewTables.includes(stream) || isCopy,
    isComment: stream === commentsTableName || has('id', 'entityId', 'mentionTime', 'comment'),
    text: (attribute) => {
      const column = byName.get(foldCase(attribute))
      if (column === undefined) return undefined
      const name = `t.${quoteIdentifier(column.name)}`
      if (column.type === jsonTextType) return unquoteSql(name)
      return column.type === 'JSON' ? `(${name}->>'$')` : `${name}::VARCHAR`
    },
  }
}

/** A table, and how its rows identify a person. */
export type StoredTable = {
  readonly schema: string
  readonly name: string
  readonly sql: string
  readonly rows: PersonRows
}

/** The tables of a database that is attached under this name. */
export const listStoredTables = async (db: Database, attached: string): Promise<ReadonlyArray<StoredTable>> =>
  (
    await db.query(`
    SELECT schema_name AS schema, table_name AS name,
      list({'name': column_name, 'type': data_type} ORDER BY column_index) AS columns
    FROM duckdb_columns() SEMI JOIN duckdb_tables() USING (database_name, schema_name, table_name)
    WHERE database_name = '${attached}' GROUP BY ALL ORDER BY ALL`)
  ).map(({ schema, name, columns }) => ({
    schema: String(schema),
    name: String(name),
    sql: `${quoteIdentifier(String(schema))}.${quoteIdentifier(String(name))}`,
    rows: toPersonRows(
      String(name),
      columns as unknown as ReadonlyArray<{ readonly name: string; readonly type: string }>,
    ),
  }))

/** Tables with states in their column `state`. */
export const stateTableNames: ReadonlyArray<string> = ['_state', '_states_log']

/** Tables with their own ids, or none at all. */
const metadataNames: ReadonlyArray<string> = [
  ...['_meta', '_streams', '_loads', '_meta_log', '_streams_log', '_loads_log', '_shares_log'],
  ...[forgottenTableName, regionsTableName, scalesTableName],
  ...stateTableNames,
]

/** A table may have rows of a person. */
export const isSearched = ({ name }: StoredTable): boolean => !metadataNames.includes(name)

/**
 * The attributes of records that identify a person, by stream. Those of other streams name reviews and visits at most.
 */
const recordAttributes: Readonly<Record<string, ReadonlyArray<string>>> = {
  [reviewsTableName]: ['id', 'visitRecordId', 'contents', 'mentionTime'],
  [deletionsTableName]: ['id'],
  [commentsTableName]: ['id', 'mentionTime', 'surveyKey'],
  transparency_reviews: ['documentId', 'surveyKey', 'comment', 'mentionTime'],
}

/**
 * The records of a stream as JSON text in `_json`. A missing attribute is null, and so is every attribute of a record
 * that is not JSON: it is refused later.
 */
const recordsOf = (stream: string): PersonRows => {
  const attributes = recordAttributes[stream] ?? ['reviewId', 'visitRecordId']
  return {
    isReview: reviewTables.includes(stream),
    isComment: stream === commentsTableName,
    text: (attribute) =>
      attributes.includes(attribute) ? `TRY(json_extract_string(_json, '$.${attribute}'))` : undefined,
  }
}

/** What identifies a person in these rows: the kind, and SQL for what `_forgotten` keeps of it. */
const listIds = (rows: PersonRows): ReadonlyArray<readonly [ForgottenKind, string]> => {
  const { text } = rows
  const find = (kind: ForgottenKind, toSql: (value: string) => string, ...attributes: ReadonlyArray<string>) =>
    attributes.flatMap((attribute) => {
      const value = text(attribute)
      return value === undefined ? [] : [[kind, toSql(value)] as const]
    })
  const mentionTime = text('mentionTime')
  return [
    ...find('review', idSql, ...(rows.isReview ? ['id'] : []), 'reviewId', 'review_id', 'documentId'),
    ...find('visit_record', hashTextSql, 'visitRecordId', 'visit_record_id'),
    ...find('survey', hashTextSql, 'surveyKey'),
    ...(rows.isComment && mentionTime !== undefined
      ? find('comment', (id) => hashCommentSql(id, mentionTime), 'id')
      : []),
  ]
}

/**
 * SQL that is true for rows of forgotten persons; undefined if nothing in them identifies a person. `forgotten`: the
 * table of the tombstones.
 */
export const forgottenRowsSql = (rows: PersonRows, forgotten = forgottenTableName): string | undefined => {
  const conditions = listIds(rows).map(
    ([kind, id]) => `coalesce(${id} IN (SELECT id FROM ${forgotten} WHERE kind = '${kind}'), false)`,
  )
  return conditions.length === 0 ? undefined : `(${conditions.join(' OR ')})`
}

/** The same for the records of a stream before they become rows: what was forgotten is never written. */
export const forgottenRecordsSql = (stream: string): string => forgottenRowsSql(recordsOf(stream)) ?? 'false'

/**
 * Removes the rows of forgotten persons from states, which remember them with a digest of what was sent. The next run
 * gets such a row once more, and skips it. `table`: one of `stateTableNames`.
 */
export const cleanStatesSql = (table: string, forgotten = forgottenTableName): string => {
  const isForgotten = `(row->>0) IN (SELECT id FROM ${forgotten} WHERE kind = 'review')`
  const statements = [[], ['scan'], ['deletions'], ['deletions', 'scan']].map((place) => {
    const recent = `json_extract(s.state, '$.${[...place, 'recent'].join('.')}')`
    const rows = `(SELECT unnest(TRY_CAST(${recent} AS JSON[])) AS row)`
    const kept = `(SELECT coalesce(json_group_array(row), '[]'::JSON) FROM ${rows} WHERE NOT ${isForgotten})`
    const patch = [...place, 'recent'].reduceRight((value, key) => `json_object('${key}', ${value})`, kept)
    return `
      UPDATE ${table} AS s SET state = json_merge_patch(s.state, ${patch})
      WHERE EXISTS (FROM ${rows} WHERE ${isForgotten})`
  })
  return statements.join('; ')
}

/** Statements that remove the rows of forgotten persons from a table and its history. */
export const removeForgottenSql = ({ name, columns, history }: Table): ReadonlyArray<string> => {
  const where = forgottenRowsSql(toPersonRows(name, columns))
  const names = where === undefined ? [] : [name, ...(history ? [historyTableName(name)] : [])]
  return names.map((each) => `DELETE FROM ${quoteIdentifier(each)} AS t WHERE ${where}`)
}

/**
 * SQL for further tombstones that follow from rows of forgotten persons, as `(kind, id)`: the id of a review that a
 * visit names, and the keys of its survey and comments. Undefined if there can be none. `from`: the rows as SQL.
 */
const furtherIdsSql = (rows: PersonRows, from: string, forgotten = forgottenTableName): string | undefined => {
  const { text } = rows
  const where = forgottenRowsSql(rows, forgotten)
  const [id, mentionTime, contents, comment, document, survey] = [
    'id',
    'mentionTime',
    'contents',
    'comment',
    'documentId',
    'surveyBarCode',
  ].map(text)
  if (where === undefined) return undefined
  const isReview = rows.isReview && id !== undefined
  const sources = [
    ...(isReview ? [`SELECT 'review' AS kind, ${idSql(id)} AS id FROM ${from} AS t WHERE ${where}`] : []),
    ...(isReview && contents !== undefined && mentionTime !== undefined
      ? [
          `SELECT 'comment' AS kind, ${hashCommentSql('content', 'mentioned')} AS id FROM (
             SELECT unnest(TRY_CAST(${contents} AS JSON)->>'$[*].id') AS content, ${mentionTime} AS mentioned
             FROM ${from} AS t WHERE ${where})`,
        ]
      : []),
    ...(document !== undefined && comment !== undefined && mentionTime !== undefined
      ? [
          `SELECT 'comment' AS kind,
             ${hashCommentSql(`(TRY_CAST(${comment} AS JSON)->>'$.commentId')`, mentionTime)} AS id
           FROM ${from} AS t WHERE ${where}`,
        ]
      : []),
    // A code that several reviews share, such as "none", identifies no one.
    ...(isReview && survey !== undefined
      ? [
          `SELECT 'survey' AS kind, ${hashTextSql('survey')} AS id FROM (
             SELECT ${survey} AS survey, ${id} AS review, ${where} AS is_forgotten
             FROM ${from} AS t WHERE trim(${survey}) <> '')
           GROUP BY survey HAVING count(DISTINCT review) = 1 AND bool_and(is_forgotten)`,
        ]
      : []),
  ]
  return sources.length === 0
    ? undefined
    : `SELECT DISTINCT kind, id FROM (${sources.join(' UNION ALL ')}) AS found
       WHERE id IS NOT NULL AND NOT EXISTS (
         SELECT 1 FROM ${forgotten} AS known WHERE known.kind = found.kind AND known.id = found.id)`
}

/** Adds tombstones. `ids`: SQL for `(kind, id)`; `now`: milliseconds since 1970. */
const addForgottenSql = (ids: string, now: number, forgotten = forgottenTableName): string =>
  `INSERT INTO ${forgotten} SELECT kind, id, ${instantSql(now)} FROM (${ids})`

/** Adds the further tombstones that follow from records of forgotten persons. Resolves to their number. */
export const addFurtherIds = async (db: Database, stream: string, records: string, now: number): Promise<number> => {
  const ids = furtherIdsSql(recordsOf(stream), records)
  if (ids === undefined) return 0
  const count = async () => Number(await db.scalar(`SELECT count(*) FROM ${forgottenTableName}`))
  const before = await count()
  await db.run(addForgottenSql(ids, now))
  return (await count()) - before
}

/**
 * Adds to the table `forgotten` the tombstones of the given persons, and those that follow from the rows of all
 * forgotten persons. `sources`: rows, and where they are in SQL. `now`: milliseconds since 1970.
 */
export const collectForgotten = async (
  db: Database,
  forgotten: string,
  { reviews, visitRecords }: { readonly reviews: ReadonlyArray<string>; readonly visitRecords: ReadonlyArray<string> },
  sources: ReadonlyArray<readonly [rows: PersonRows, from: string]>,
  now: number,
): Promise<void> => {
  const asked = [
    ...reviews.map((id) => `SELECT 'review' AS kind, ${quoteLiteral(id)} AS id`),
    ...visitRecords.map((id) => `SELECT 'visit_record' AS kind, ${hashTextSql(quoteLiteral(id))} AS id`),
  ].join(' UNION ')
  await db.run(addForgottenSql(`${asked} EXCEPT SELECT kind, id FROM ${forgotten}`, now, forgotten))
  const count = () => db.scalar(`SELECT count(*) FROM ${forgotten}`)
  for (let before = await count(), after: typeof before; ; before = after) {
    for (const [rows, from] of sources) {
      const further = furtherIdsSql(rows, from, forgotten)
      if (further !== undefined) await db.run(addForgottenSql(further, now, forgotten))
    }
    after = await count()
    if (after === before) return
  }
}
