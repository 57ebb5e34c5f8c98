import { createHash } from 'node:crypto'
import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import type { TaskEither } from 'fp-ts/TaskEither'
import * as TE from 'fp-ts/TaskEither'
import { configFailure, type Failure, getOrThrow } from '../../cdk'
import { type Database, openDatabase, quoteIdentifier, quoteLiteral, type Snapshot } from './database'
import { readMeta, saveMeta, timeZoneName, viewMark, viewsHashName } from './metadata'
import {
  createUserTables,
  defineModels,
  defineVersions,
  type ModelOptions,
  type ModelTables,
  type NameOf,
  userViewNames,
} from './models'
import {
  findFreeName,
  findReviewReference,
  historyTableName,
  listStreamTables,
  reviewsTableName,
  type Table,
} from './tables'
import type { RowValues } from './values'

const findTimeZone = async (db: Database, timeZone: string): Promise<E.Either<Failure, void>> =>
  (await db.scalar('SELECT count(*) FROM pg_timezone_names() WHERE name = $timeZone', { timeZone })) === 0
    ? E.left(
        configFailure(
          `reporting_time_zone: there is no time zone ${timeZone}. Give a name such as Europe/Berlin or UTC.`,
        ),
      )
    : E.right(undefined)

/**
 * Fails for a time zone that does not exist, before a file is created. DuckDB is asked, since Node has different names.
 */
export const checkTimeZone = (timeZone: string | undefined): TaskEither<Failure, void> =>
  timeZone === undefined
    ? TE.right(undefined)
    : pipe(
        openDatabase(':memory:', { threads: 1 }),
        TE.flatMap((db) => () => findTimeZone(db, timeZone).finally(db.close)),
      )

/**
 * Sets the time zone for days and months in the file, including its existing views. Rejects with `CommandError` for a
 * zone that does not exist.
 */
export const setReportingTimeZone = async ({ db }: Snapshot, timeZone: string): Promise<void> => {
  getOrThrow(await findTimeZone(db, timeZone))
  await db.transaction(async () => {
    await saveMeta(db, timeZoneName, timeZone)
    await createViews(db)
  })
}

/** The views that the models read, besides those over user tables. */
export const reviewViewNames: ReadonlyArray<string> = [
  'reviews_current',
  'review_contents_current',
  'review_sentiments_current',
  'review_liabilities_current',
  'review_engagements_current',
  'deleted_reviews_current',
]

type ViewPlan = {
  readonly views: ReadonlyArray<{
    readonly wanted: string
    readonly name: string
    readonly comment: string
    readonly sql: string
    readonly isModel: boolean
  }>
  /** Our views in the file. */
  readonly existing: ReadonlyArray<string>
  readonly hash: string
  /** The file has all of these views as this version defines them. */
  readonly isCurrent: boolean
}

/** Compares the file's views with those that it should have. */
const planViews = async (db: Database, options?: ModelOptions): Promise<ViewPlan> => {
  const tables = await listStreamTables(db)
  const models = await defineModels(db, reviewViews(tables), options)
  const versions = await defineVersions(db, tables)
  const relations = await db.query(`
    SELECT view_name AS name, true AS view, coalesce(ends_with(comment, ${quoteLiteral(viewMark)}), false) AS marked
    FROM duckdb_views()
    WHERE database_name = current_database() AND schema_name = 'main' AND NOT internal
    UNION ALL
    SELECT table_name, false, false
    FROM duckdb_tables()
    WHERE database_name = current_database() AND schema_name = 'main'`)
  const isOurs = ({ view, marked }: RowValues): boolean => view === true && marked === true
  const taken = relations.filter((relation) => !isOurs(relation)).map(({ name }) => ({ name: String(name) }))
  const names = new Map([...versions, ...models].map(({ name }) => [name, findFreeName(taken, name)]))
  const nameOf: NameOf = (name) => names.get(name) ?? name
  const views = [...versions, ...models].map(({ name, description, toSql }) => ({
    wanted: name,
    name: nameOf(name),
    comment: [description, viewMark].filter((text) => text !== undefined).join(' '),
    sql: toSql(nameOf),
    isModel: !versions.some((other) => other.name === name),
  }))
  const hash = createHash('sha256')
    .update(JSON.stringify([tables, views]))
    .digest('hex')
  const existing = relations.filter(isOurs).map(({ name }) => String(name))
  const marked = new Set(relations.flatMap((relation) => (relation.marked === true ? [String(relation.name)] : [])))
  return {
    views,
    existing,
    hash,
    isCurrent: views.every(({ name }) => marked.has(name)) && (await readMeta(db, viewsHashName)) === hash,
  }
}

/**
 * Creates the views for users in the file: the versions of each stream with a history, those over `reviews` (null for
 * an attribute that the table lacks), and the models. DuckDB takes about a second for all of them, so they stay as long
 * as nothing has changed.
 */
export const createViews = async (db: Database): Promise<void> => {
  const found = await planViews(db)
  if (found.isCurrent) return
  if (found.views.some(({ isModel }) => isModel)) await createUserTables(db)
  const { views, existing, hash } = await planViews(db)
  const names = new Set(views.map(({ name }) => name))
  for (const name of existing) if (!names.has(name)) await db.run(`DROP VIEW IF EXISTS ${quoteIdentifier(name)}`)
  for (const { name, comment, sql } of views)
    await db.run(`
      CREATE OR REPLACE VIEW ${quoteIdentifier(name)} AS ${sql};
      COMMENT ON VIEW ${quoteIdentifier(name)} IS ${quoteLiteral(comment)}`)
  await saveMeta(db, viewsHashName, hash)
}

const createTemporary = async (
  db: Database,
  views: ReadonlyArray<{ readonly name: string; readonly sql: string }>,
): Promise<void> => {
  for (const { name, sql } of views) await db.run(`CREATE OR REPLACE TEMP VIEW ${quoteIdentifier(name)} AS ${sql}`)
}

/**
 * Creates the views over `reviews` for this connection only, as this version defines them. Works on read-only files
 * too. Hides tables with their names.
 */
export const createTemporaryViews = async (db: Database): Promise<void> =>
  createTemporary(
    db,
    Object.entries(reviewViews(await listStreamTables(db))).map(([name, sql]) => ({ name, sql })),
  )

/** Also creates the models, hiding tables with their names. Returns false if the file has no reviews. */
export const createModelViews = async (db: Database, options?: ModelOptions): Promise<boolean> => {
  const models = await defineModels(db, reviewViews(await listStreamTables(db)), options)
  await createTemporary(
    db,
    models.map(({ name, toSql }) => ({ name, sql: toSql((other) => other) })),
  )
  return models.length > 0
}

/** The models as a query may name them. */
export type FileModels = {
  readonly hasReviews: boolean
  /** The models and views whose names the user has used for tables or views, each with its name instead. */
  readonly renamed: ReadonlyMap<string, string>
  /**
   * Makes sure that the models and views named in a query exist: those of the file if they are current, otherwise
   * temporary ones for this connection. Resolves to true if the query names any.
   */
  readonly provide: (words: ReadonlySet<string>, given: ModelTables) => Promise<boolean>
}

export const findModels = async (db: Database): Promise<FileModels> => {
  const plan = await planViews(db)
  const models = plan.views.filter(({ isModel }) => isModel)
  return {
    hasReviews: models.length > 0,
    renamed: new Map(models.flatMap(({ wanted, name }) => (wanted === name ? [] : [[wanted, name] as const]))),
    provide: async (words, given) => {
      const named = models.filter(({ name }) => words.has(name))
      if (named.length === 0) return false
      const isGiven = (name: string) => userViewNames.includes(name) && given[name as keyof ModelTables] !== undefined
      if (plan.isCurrent && !userViewNames.some(isGiven)) return true
      const { views } = await planViews(db, { ...given, names: named.map(({ wanted }) => wanted) })
      // The views of the file read this connection's tables, if it has some.
      await createTemporary(
        db,
        views.filter(({ isModel, wanted }) => isModel && (!plan.isCurrent || isGiven(wanted))),
      )
      return true
    },
  }
}

const reviewViews = (tables: ReadonlyArray<Table>): Readonly<Record<string, string>> => {
  const reviews = tables.find(({ name }) => name === reviewsTableName)
  return reviews !== undefined && findReviewReference(reviews) !== undefined
    ? { ...reviewViewSql(reviews), deleted_reviews_current: deletionsSql(tables) }
    : {}
}

const hasColumn = ({ columns }: Table, name: string): boolean => columns.some((column) => column.name === name)

const reviewViewSql = (reviews: Table): Readonly<Record<string, string>> => {
  const column = (name: string, type: string) =>
    reviews.columns.some((other) => other.name === name && other.type === type)
      ? quoteIdentifier(name)
      : `NULL::${type}`
  const member = (name: string, path: string) => `${column(name, 'JSON')}->>${quoteLiteral(`$.${path}`)}`
  // A list of unknown type would have no members, so a missing column is an empty list.
  const list = (name: string, shape: object) =>
    `from_json(${column(name, 'JSON').startsWith('NULL') ? "'[]'::JSON" : column(name, 'JSON')}, ` +
    `${quoteLiteral(JSON.stringify([shape]))})`
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
        ${member('taskDetails', 'ownerEmail')} AS owner_email,
        TRY_CAST(${member('taskDetails', 'id')} AS BIGINT) AS task_id,
        coalesce(json_type(${column('taskDetails', 'JSON')}) = 'OBJECT', false) AS has_task
      FROM ${reviewsTableName}`,
    review_contents_current: `
      SELECT review_id, content.id AS content_id, position, content."questionCode" AS question_code, content.question,
        content."questionType" AS question_type, content.response
      FROM (
        SELECT review_id, generate_subscripts(contents, 1) - 1 AS position, unnest(contents) AS content
        FROM (SELECT id AS review_id, ${list('contents', contentShape)} AS contents FROM ${reviewsTableName})
      ) AS found`,
    review_sentiments_current: `
      SELECT review_id, content_id, sentiment.id AS sentiment_id, sentiment.score, sentiment.category,
        sentiment."subCategory" AS sub_category, sentiment.tonality
      FROM (
        SELECT id AS review_id, content.id AS content_id, unnest(content.sentiments) AS sentiment
        FROM (
          SELECT id, unnest(${list('contents', { id: 'BIGINT', sentiments: [sentimentShape] })}) AS content
          FROM ${reviewsTableName}
        )
      ) AS found`,
    review_liabilities_current: `
      SELECT review_id, content_id, liability."liabilityId" AS liability_id, liability.severity.level AS severity_level,
        liability.severity.name AS severity, liability."categoryName" AS category, liability.justification
      FROM (
        SELECT id AS review_id, content.id AS content_id, unnest(content.liabilities) AS liability
        FROM (
          SELECT id, unnest(${list('contents', { id: 'BIGINT', liabilities: [liabilityShape] })}) AS content
          FROM ${reviewsTableName}
        )
      ) AS found`,
    review_engagements_current: `
      SELECT review_id, position, engagement."engagementTime" AS engagement_time
      FROM (
        SELECT review_id, generate_subscripts(engagements, 1) - 1 AS position, unnest(engagements) AS engagement
        FROM (
          SELECT id AS review_id, ${list('engagements', { engagementTime: 'TIMESTAMPTZ' })} AS engagements
          FROM ${reviewsTableName}
        )
      ) AS found`,
  }
}

const contentShape = {
  id: 'BIGINT',
  question: 'VARCHAR',
  questionType: 'VARCHAR',
  questionCode: 'VARCHAR',
  response: 'VARCHAR',
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

/**
 * The deleted reviews, with the content of their last older version if the file keeps versions. A restored one is in
 * `reviews` again.
 */
const deletionsSql = (tables: ReadonlyArray<Table>): string => {
  const deleted = tables.find(({ name }) => name === 'deleted_reviews')
  const reported =
    deleted !== undefined && findReviewReference(deleted) !== undefined
      ? 'SELECT id, "modifiedTime" AS deleted_time, "modifiedTime" AS reported_time FROM deleted_reviews'
      : 'SELECT NULL::BIGINT AS id, NULL::TIMESTAMPTZ AS deleted_time, NULL::TIMESTAMPTZ AS reported_time WHERE false'
  const history = tables.find(({ name, history }) => name === reviewsTableName && history)
  const versions = (name: string, type: string) =>
    history !== undefined && hasColumn(history, name) ? quoteIdentifier(name) : `NULL::${type}`
  const source = versions('source', 'JSON')
  const kept =
    history === undefined
      ? `
        SELECT NULL::BIGINT AS id, NULL::TIMESTAMPTZ AS modified_time, NULL::TIMESTAMPTZ AS mention_time,
          NULL::JSON AS source
        WHERE false`
      : `
        SELECT id,
          max("modifiedTime") AS modified_time,
          arg_max(${versions('mentionTime', 'TIMESTAMPTZ')}, "modifiedTime") AS mention_time,
          arg_max(${source}, "modifiedTime") FILTER (
            coalesce(${source}->>'$.id', nullif(trim(${source}->>'$.name'), '')) IS NOT NULL
          ) AS source
        FROM ${quoteIdentifier(historyTableName(reviewsTableName))}
        GROUP BY id`
  return `
      SELECT deletion.id AS review_id,
        CASE WHEN reported_time > modified_time THEN reported_time ELSE deleted_time END AS deleted_time,
        TRY_CAST(source->>'$.id' AS BIGINT) AS source_id, source->>'$.name' AS source_name, mention_time
      FROM (
        SELECT id, max(deleted_time) AS deleted_time, max(reported_time) AS reported_time
        FROM (${reported})
        GROUP BY id
      ) AS deletion
      LEFT JOIN (${kept}) AS kept ON kept.id = deletion.id
      WHERE deletion.id NOT IN (SELECT id FROM ${reviewsTableName})`
}

/** The day of a time, whatever the time zone of the querying session. */
export const localDateSql = (time: string, timeZone: string): string =>
  `(${time} AT TIME ZONE ${quoteLiteral(timeZone)})::DATE`

/**
 * What the reviewer wrote, one line for each response. Leaves out responses that are numbers or belong to rating
 * questions, unless the question is a free-form one.
 */
const writtenTextSql = (contents: string): string => {
  const response = `content->>'$.response'`
  const isFree = `coalesce(lower(content->>'$.questionType') LIKE 'free form%', false)`
  const isNumber = `regexp_full_match(${response}, '\\s*[-+]?[0-9]+([.,][0-9]+)?\\s*(%|(/|of|out of)\\s*[0-9]+)?\\s*')`
  const isRating =
    `coalesce(regexp_matches(lower(content->>'$.questionType'), ` +
    `'rating|scale|score|nps|number|numeric|rank|slider'), false)`
  return `array_to_string(list_transform(
          list_filter(
            json_extract(${contents}, '$[*]')::JSON[],
            lambda content: ${response} IS NOT NULL AND (${isFree} OR NOT (${isNumber} OR ${isRating}))),
          lambda content: ${response}), chr(10))`
}
