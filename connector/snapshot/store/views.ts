import { CommandError, configFailure } from '../../cdk'
import { type Database, quoteIdentifier, quoteLiteral, type Snapshot } from './database'
import { readReportingTimeZone, saveReportingTimeZone } from './metadata'
import {
  airbyteColumns,
  endedColumnName,
  findFreeName,
  foldCase,
  hasTombstonesSql,
  historyTableName,
  listStreamTables,
  reviewsTableName,
  type Table,
} from './tables'

/** Creates the stream's history table; from then on every version of its rows is kept. */
export const createHistoryTable = async (db: Database, { name }: Table): Promise<void> => {
  await db.run(
    `CREATE TABLE IF NOT EXISTS ${quoteIdentifier(historyTableName(name))} AS FROM ${quoteIdentifier(name)} LIMIT 0`,
  )
  await db.run(
    `ALTER TABLE ${quoteIdentifier(historyTableName(name))} ADD COLUMN IF NOT EXISTS ${endedColumnName} TIMESTAMPTZ`,
  )
}

/**
 * SQL to run before rows are deleted: copies the rows that `where` selects into the history table, if there is one. `source`:
 * the table as `t`, joined with the tables that `ended` (the time at which a row ended) and `where` need. A row that the history
 * already has is not copied again, and a tombstone is never copied.
 */
export const archiveSql = (table: Table, source: string, where: string, ended: string): string => {
  if (!table.history) return ''
  const tombstone = hasTombstonesSql(table, 't')
  const columns = [...table.columns.map(({ name }) => name), ...airbyteColumns.map(([name]) => name)]
  return `
  INSERT INTO ${quoteIdentifier(historyTableName(table.name))} BY NAME
  SELECT DISTINCT ON (t._airbyte_raw_id) ${columns.map((name) => `t.${quoteIdentifier(name)}`).join(', ')}, ${ended} AS _ended
  FROM ${source}
  WHERE ${where}${tombstone === undefined ? '' : ` AND NOT ${tombstone}`} AND NOT EXISTS (
    SELECT 1 FROM ${quoteIdentifier(historyTableName(table.name))} AS archived WHERE archived._airbyte_raw_id = t._airbyte_raw_id);`
}

/**
 * Every version of a stream's rows with `valid_from` and `valid_to`: until the next version of its key, or until it was deleted. A
 * cursor that is no time only orders the versions: they are valid from the time at which they were read.
 */
export const versionsViewSql = (
  { name, columns }: Table,
  key: ReadonlyArray<string>,
  cursor: string | undefined,
): string => {
  const columnList = [...columns.map((column) => column.name), ...airbyteColumns.map(([column]) => column)]
    .map(quoteIdentifier)
    .join(', ')
  const type = columns.find((column) => column.name === cursor)?.type
  const isTime = type === 'TIMESTAMPTZ' || type === 'DATE'
  const cursorSql = cursor === undefined || type === undefined ? [] : [`v.${quoteIdentifier(cursor)}`]
  const from = isTime ? `${cursorSql[0]}::TIMESTAMPTZ` : 'v._airbyte_extracted_at'
  const order = [...cursorSql, 'v._airbyte_extracted_at'].join(', ')
  const keys = key.map((column) => `v.${quoteIdentifier(column)}`).join(', ')
  return `
  SELECT ${columnList}, ${from} AS ${quoteIdentifier(findFreeName(columns, 'valid_from'))},
    least(v.${endedColumnName}, lead(${from}) OVER (PARTITION BY ${keys} ORDER BY ${order})) AS ${quoteIdentifier(findFreeName(columns, 'valid_to'))}
  FROM (
    SELECT ${columnList}, NULL::TIMESTAMPTZ AS ${endedColumnName} FROM ${quoteIdentifier(name)}
    UNION ALL SELECT ${columnList}, ${endedColumnName} FROM ${quoteIdentifier(historyTableName(name))}) AS v`
}

/** Sets the time zone of the file's days and months, in the views that it has too. Rejects with `CommandError` for a zone that does not exist. */
export const setReportingTimeZone = async ({ db }: Snapshot, timeZone: string): Promise<void> => {
  if ((await db.scalar('SELECT count(*) FROM pg_timezone_names() WHERE name = $timeZone', { timeZone })) === 0)
    throw new CommandError(
      configFailure(
        `reporting_time_zone: there is no time zone ${timeZone}. Give a name such as Europe/Berlin or UTC.`,
      ),
    )
  await db.transaction(async () => {
    await saveReportingTimeZone(db, timeZone)
    await createViews(db)
  })
}

/** Creates the views for people: the versions of each stream with a history, and those over `reviews`, where an attribute that the table does not have is null. */
export const createViews = async (db: Database): Promise<void> => {
  const tables = await listStreamTables(db)
  for (const stream of await db.query('SELECT stream, primary_key, cursor FROM _streams')) {
    const table = tables.find(({ name, history }) => history && name === stream.stream)
    if (table === undefined || !Array.isArray(stream.primary_key) || stream.primary_key.length === 0) continue
    const cursor = stream.cursor === null ? undefined : String(stream.cursor)
    await db.run(
      `CREATE OR REPLACE VIEW ${quoteIdentifier(findFreeName(tables, `${table.name}_versions`))} AS ${versionsViewSql(table, stream.primary_key.map(String), cursor)}`,
    )
  }
  const taken = tables.map(({ name }) => foldCase(name)).filter((name) => name !== reviewsTableName)
  const allViews = reviewViews(tables, await readReportingTimeZone(db))
  const views = Object.entries(allViews).filter(([name]) => !taken.includes(name))
  for (const [name, sql] of views)
    if (!Object.keys(allViews).some((other) => taken.includes(other) && sql.includes(other)))
      await db.run(`CREATE OR REPLACE VIEW ${quoteIdentifier(name)} AS ${sql}`)
}

/** Creates the views over `reviews` for this connection only, as this version of the package defines them; works on read-only files too. Returns false if the file has no reviews. */
export const createTemporaryViews = async (db: Database): Promise<boolean> => {
  const views = Object.entries(reviewViews(await listStreamTables(db), await readReportingTimeZone(db)))
  for (const [name, sql] of views) await db.run(`CREATE OR REPLACE TEMP VIEW ${quoteIdentifier(name)} AS ${sql}`)
  return views.length > 0
}

const reviewViews = (tables: ReadonlyArray<Table>, timeZone: string): Readonly<Record<string, string>> => {
  const reviews = tables.find(({ name }) => name === reviewsTableName)
  return reviews !== undefined && ['id', 'modifiedTime'].every((name) => hasColumn(reviews, name))
    ? { ...reviewViewSql(reviews, timeZone), deleted_reviews_current: deletionsSql(tables) }
    : {}
}

const hasColumn = ({ columns }: Table, name: string): boolean => columns.some((column) => column.name === name)

const reviewViewSql = (reviews: Table, timeZone: string): Readonly<Record<string, string>> => {
  const column = (name: string, type: string) =>
    reviews.columns.some((other) => other.name === name && other.type === type)
      ? quoteIdentifier(name)
      : `NULL::${type}`
  const member = (name: string, path: string) => `${column(name, 'JSON')}->>${quoteLiteral(`$.${path}`)}`
  // A list of no known type would have no members, so a missing column is an empty list.
  const list = (name: string, shape: object) =>
    `from_json(${column(name, 'JSON').startsWith('NULL') ? "'[]'::JSON" : column(name, 'JSON')}, ${quoteLiteral(JSON.stringify([shape]))})`
  return {
    reviews_current: `
      SELECT id AS review_id, ${column('mentionTime', 'TIMESTAMPTZ')} AS mention_time, "modifiedTime" AS modified_time,
        nullif(${column('rating', 'DOUBLE')}, 0) AS rating, ${column('reviewScore', 'DOUBLE')} AS review_score,
        TRY_CAST(${member('location', 'id')} AS BIGINT) AS location_id, ${member('location', 'name')} AS location_name,
        TRY_CAST(${member('provider', 'id')} AS BIGINT) AS provider_id, ${member('provider', 'name')} AS provider_name,
        ${member('provider', 'npi')} AS provider_npi,
        TRY_CAST(${member('source', 'id')} AS BIGINT) AS source_id, ${member('source', 'name')} AS source_name,
        ${writtenTextSql(column('contents', 'JSON'))} AS text,
        ${member('taskDetails', 'status')} AS task_status, ${member('taskDetails', 'ownerName')} AS task_owner,
        nullif(${column('visitRecordId', 'VARCHAR')}, '') AS visit_record_id,
        ${member('taskDetails', 'ownerEmail')} AS owner_email, TRY_CAST(${member('taskDetails', 'id')} AS BIGINT) AS task_id,
        coalesce(json_type(${column('taskDetails', 'JSON')}) = 'OBJECT', false) AS has_task
      FROM ${reviewsTableName}`,
    review_sentiments_current: `
      SELECT review_id, content_id, sentiment.id AS sentiment_id, sentiment.score, sentiment.category, sentiment."subCategory" AS sub_category,
        sentiment.tonality
      FROM (
        SELECT id AS review_id, content.id AS content_id, unnest(content.sentiments) AS sentiment
        FROM (SELECT id, unnest(${list('contents', { id: 'BIGINT', sentiments: [sentimentShape] })}) AS content FROM ${reviewsTableName})
      ) AS found`,
    review_liabilities_current: `
      SELECT review_id, content_id, liability."liabilityId" AS liability_id, liability.severity.level AS severity_level,
        liability.severity.name AS severity, liability."categoryName" AS category
      FROM (
        SELECT id AS review_id, content.id AS content_id, unnest(content.liabilities) AS liability
        FROM (SELECT id, unnest(${list('contents', { id: 'BIGINT', liabilities: [liabilityShape] })}) AS content FROM ${reviewsTableName})
      ) AS found`,
    review_engagements_current: `
      SELECT review_id, position, engagement."engagementTime" AS engagement_time
      FROM (
        SELECT review_id, generate_subscripts(engagements, 1) - 1 AS position, unnest(engagements) AS engagement
        FROM (SELECT id AS review_id, ${list('engagements', { engagementTime: 'TIMESTAMPTZ' })} AS engagements FROM ${reviewsTableName})
      ) AS found`,
    review_daily: `
      SELECT ${localDateSql('mention_time', timeZone)} AS day, source_name, count(*) AS reviews, count(rating) AS rated,
        round(avg(rating), 2) AS average_rating, round(avg(review_score), 2) AS average_score,
        count(*) FILTER (review_score < 2.5) AS negative
      FROM reviews_current GROUP BY ALL`,
    open_liabilities: `
      SELECT found.liability."liabilityId" AS liability_id, id AS review_id, found.content_id,
        found.liability."categoryName" AS category, found.liability.severity.level AS severity_level,
        found.liability.severity.name AS severity, found.liability.justification, location_id, location_name, provider_name,
        mention_time, task_status, task_owner
      FROM (
        SELECT id, content.id AS content_id, unnest(content.liabilities) AS liability
        FROM (SELECT id, unnest(${list('contents', { id: 'BIGINT', liabilities: [liabilityShape] })}) AS content FROM ${reviewsTableName})
      ) AS found JOIN reviews_current ON review_id = id
      WHERE lower(trim(coalesce(task_status, 'pending'))) <> 'completed'`,
    response_times: `
      SELECT id AS review_id, location_id, location_name, source_name, mention_time, first_response_time,
        round(epoch(first_response_time - mention_time) / 3600, 1) AS hours
      FROM (
        SELECT id, min(answer."engagementTime") AS first_response_time
        FROM (SELECT id, unnest(${list('engagements', { engagementTime: 'TIMESTAMPTZ' })}) AS answer FROM ${reviewsTableName})
        GROUP BY id HAVING first_response_time IS NOT NULL
      ) JOIN reviews_current ON review_id = id`,
    location_scorecard: `
      SELECT location_id, arg_max(location_name, modified_time) AS location_name, count(*) AS reviews, count(rating) AS rated,
        round(avg(rating), 2) AS average_rating, ${ratingEstimateSql()} AS rating_estimate,
        ${ratingEstimateSql('-')} AS rating_low, ${ratingEstimateSql('+')} AS rating_high,
        round(avg(review_score), 2) AS average_score,
        round(count(first_response_time) / count(*), 2) AS answered, round(median(hours), 1) AS median_hours_to_answer,
        coalesce(sum(liabilities), 0)::BIGINT AS open_liabilities, max(mention_time) AS last_mention
      FROM reviews_current
      CROSS JOIN (
        SELECT avg(rating) AS overall, sqrt((${priorRatings * priorVariance} + count(rating) * coalesce(var_pop(rating), 0)) / (${priorRatings} + count(rating))) AS deviation
        FROM reviews_current) AS ratings
      LEFT JOIN (SELECT review_id, first_response_time, hours FROM response_times) USING (review_id)
      LEFT JOIN (SELECT review_id, count(*) AS liabilities FROM open_liabilities GROUP BY review_id) USING (review_id)
      WHERE location_id IS NOT NULL GROUP BY location_id`,
  }
}

const sentimentShape = {
  id: 'BIGINT',
  score: 'DOUBLE',
  category: 'VARCHAR',
  subCategory: 'VARCHAR',
  tonality: 'VARCHAR',
}
const liabilityShape = {
  liabilityId: 'BIGINT',
  severity: { level: 'BIGINT', name: 'VARCHAR' },
  categoryName: 'VARCHAR',
  justification: 'VARCHAR',
}

/** The reviews that are deleted, with what their last older version says, where the file keeps versions. A restored one is in `reviews` again. */
const deletionsSql = (tables: ReadonlyArray<Table>): string => {
  const deleted = tables.find(({ name }) => name === 'deleted_reviews')
  const reported =
    deleted !== undefined && ['id', 'modifiedTime'].every((name) => hasColumn(deleted, name))
      ? 'SELECT id, "modifiedTime" AS deleted_time, "modifiedTime" AS reported_time FROM deleted_reviews'
      : 'SELECT NULL::BIGINT AS id, NULL::TIMESTAMPTZ AS deleted_time, NULL::TIMESTAMPTZ AS reported_time WHERE false'
  const history = tables.find(({ name, history }) => name === reviewsTableName && history)
  const versions = (name: string, type: string) =>
    history !== undefined && hasColumn(history, name) ? quoteIdentifier(name) : `NULL::${type}`
  const kept =
    history === undefined
      ? 'SELECT NULL::BIGINT AS id, NULL::TIMESTAMPTZ AS modified_time, NULL::TIMESTAMPTZ AS mention_time, NULL::JSON AS source WHERE false'
      : `SELECT id, max("modifiedTime") AS modified_time, arg_max(${versions('mentionTime', 'TIMESTAMPTZ')}, "modifiedTime") AS mention_time,
          arg_max(${versions('source', 'JSON')}, "modifiedTime") AS source FROM ${quoteIdentifier(historyTableName(reviewsTableName))} GROUP BY id`
  return `
      SELECT deletion.id AS review_id, CASE WHEN reported_time > modified_time THEN reported_time ELSE deleted_time END AS deleted_time,
        TRY_CAST(source->>'$.id' AS BIGINT) AS source_id, source->>'$.name' AS source_name, mention_time
      FROM (SELECT id, max(deleted_time) AS deleted_time, max(reported_time) AS reported_time FROM (${reported}) GROUP BY id) AS deletion
      LEFT JOIN (${kept}) AS kept ON kept.id = deletion.id
      WHERE deletion.id NOT IN (SELECT id FROM ${reviewsTableName})`
}

/** The weight of what is assumed before any rating is known: as many ratings, at the mean of all reviews, are added to each location's own. */
export const priorRatings = 10
/** Their variance: that of ratings spread evenly over 1 to 5. With it, few or equal ratings do not seem certain. */
const priorVariance = 2

/**
 * The Bayesian mean of a location's ratings or a bound of its 95 % interval, within 0 to 5; null for a location without ratings. The
 * estimate from few ratings stays near the mean of all reviews and has a wide interval.
 */
const ratingEstimateSql = (sign?: '-' | '+'): string => {
  const weight = `(${priorRatings} + count(rating))`
  const estimate = `(${priorRatings} * any_value(overall) + sum(rating)) / ${weight}`
  const margin = sign === undefined ? '' : ` ${sign} 1.96 * any_value(deviation) / sqrt(${weight})`
  return `CASE WHEN count(rating) > 0 THEN round(least(5, greatest(0, ${estimate}${margin})), 2) END`
}

/** The day that a time lies in, whatever the time zone of the session that asks. */
export const localDateSql = (time: string, timeZone: string): string =>
  `(${time} AT TIME ZONE ${quoteLiteral(timeZone)})::DATE`

/** What the reviewer wrote, a line for each response. A response that is a number or of a rating question is left out, unless the question is a free one. */
const writtenTextSql = (contents: string): string => {
  const response = `content->>'$.response'`
  const isFree = `coalesce(lower(content->>'$.questionType') LIKE 'free form%', false)`
  const isNumber = `regexp_full_match(${response}, '\\s*[-+]?[0-9]+([.,][0-9]+)?\\s*(%|(/|of|out of)\\s*[0-9]+)?\\s*')`
  const isRating = `coalesce(regexp_matches(lower(content->>'$.questionType'), 'rating|scale|score|nps|number|numeric|rank|slider'), false)`
  return `array_to_string(list_transform(
          list_filter(json_extract(${contents}, '$[*]')::JSON[], lambda content: ${response} IS NOT NULL AND (${isFree} OR NOT (${isNumber} OR ${isRating}))),
          lambda content: ${response}), chr(10))`
}
