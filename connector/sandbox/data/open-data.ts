import { randomUUID } from 'node:crypto'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as E from 'fp-ts/Either'
import { CommandError, configFailure, defined } from '../../cdk'
import {
  type Database,
  findAddressProblem,
  findPathProblem,
  openDatabase,
  quoteIdentifier,
  quoteLiteral,
} from '../../snapshot/store'
import { reviewIdAt, type SeedOptions, seedConstants, seedDatabase } from './generate'
import { indexDefinitions, tableDefinitions } from './review-tables'
import { applyTrend, type Trend } from './trend'

/** How to generate the data. `trend`: makes reviews differ from month to month in a known way; default none. */
type GeneratedData = SeedOptions & { readonly trend?: Trend | undefined }

/** The files that the data is read from and kept in. */
export type DataFiles = {
  /** A file that keeps the data. Without it, the data ends with the process. */
  readonly db?: string
  /** A snapshot to serve instead of generated reviews. */
  readonly from?: string
  /** What DuckDB may use for the data, in bytes; if left out, DuckDB chooses. */
  readonly memoryLimit?: number
}

const listTables = async (database: Database): Promise<ReadonlyArray<string>> =>
  (await database.query('SELECT table_name AS name FROM duckdb_tables()')).map(({ name }) => String(name))

const fillDatabase = async (database: Database, { db, from }: DataFiles, data: GeneratedData): Promise<void> => {
  const tables = await listTables(database)
  if (tables.length === 0) {
    if (from !== undefined) return importSnapshot(database, from, data.seed)
    await seedDatabase(database, data)
    if (data.trend !== undefined) await applyTrend(database, { ...data, trend: data.trend })
    return
  }
  if (!tables.includes('setting') || !tables.includes('review'))
    throw new CommandError(
      configFailure(
        `${db} has tables that do not belong to a sandbox. The file is unchanged; give another path with --db.`,
      ),
    )
  if (from !== undefined)
    throw new CommandError(configFailure(`${db} has data already, so --from ${from} cannot be read into it.`))
  if (!tables.includes('restorable')) await addRestorableTable(database)
}

/** Adds the table of deleted reviews to files of older versions, which have it under another name or not at all. */
const addRestorableTable = async (database: Database): Promise<void> => {
  const older = await database.scalar(`
    WITH tables AS (
      SELECT table_name AS name, list(column_name ORDER BY column_index) AS columns FROM duckdb_columns() GROUP BY ALL
    )
    SELECT name FROM tables
    WHERE name <> 'review' AND columns = (SELECT columns FROM tables WHERE name = 'review')`)
  await database.run(
    older === undefined
      ? 'CREATE TABLE restorable AS FROM review WHERE false'
      : `ALTER TABLE ${quoteIdentifier(String(older))} RENAME TO restorable`,
  )
}

/** Opens the data of the file, or else imports the snapshot, or else generates data. Rejects with a `CommandError`. */
export const openData = async (files: DataFiles, data: GeneratedData): Promise<Database> => {
  const { db = ':memory:', memoryLimit } = files
  const problem = findPathProblem(db) ?? (files.from === undefined ? undefined : findAddressProblem(files.from))
  if (problem !== undefined) throw new CommandError(problem)
  const opened = await openDatabase(db, {
    ...defined({ memory: memoryLimit === undefined ? undefined : [memoryLimit] }),
    ...(db === ':memory:' ? { spillPath: join(tmpdir(), `feedback-sandbox.${randomUUID()}`) } : {}),
  })()
  if (E.isLeft(opened)) throw new CommandError(opened.left)
  const database = opened.right
  try {
    await fillDatabase(database, files, data)
    return database
  } catch (error) {
    database.close()
    throw error instanceof Error && /out of memory/i.test(error.message)
      ? new CommandError(database.explainMemory('The data of the sandbox', error))
      : error
  }
}

type Column = { readonly name: string; readonly type: string }

const formatInstant = (column: string): string => `strftime(${column} AT TIME ZONE 'UTC', '%Y-%m-%dT%H:%M:%S.%gZ')`

/** SQL for a column's value as JSON text; null stays null. */
const columnJson = ({ name, type }: Column): string => {
  const column = `r.${quoteIdentifier(name)}`
  if (type === 'TIMESTAMP WITH TIME ZONE') return `'"' || ${formatInstant(column)} || '"'`
  return type === 'JSON' ? `${column}::VARCHAR` : `to_json(${column})::VARCHAR`
}

/** Attributes that the service only sends on request, and columns that `feedback snapshot` adds. */
const extraColumns = /^(_.*|brand|visitRecordId|unknown_attributes)$/

/** SQL for the JSON text of a review without its closing brace; null attributes are left out. */
const originalText = (columns: ReadonlyArray<Column>): string => {
  const members = columns
    .filter(({ name }) => !extraColumns.test(name) && name !== 'id')
    .map((column) => `coalesce(${quoteLiteral(`,${JSON.stringify(column.name)}:`)} || ${columnJson(column)}, '')`)
  const unknown = columns.some(({ name }) => name === 'unknown_attributes')
    ? [
        `coalesce(',' || nullif(substr(r.unknown_attributes::VARCHAR, ` +
          `2, length(r.unknown_attributes::VARCHAR) - 2), ''), '')`,
      ]
    : []
  return [`'{"id":' || r.id`, ...members, ...unknown].join(' || ')
}

const listColumns = async (database: Database, table: string): Promise<ReadonlyArray<Column>> =>
  (
    await database.query(
      `SELECT column_name AS name, data_type AS type FROM duckdb_columns()
       WHERE database_name = 'imported_snapshot' AND table_name = ${quoteLiteral(table)}
         AND table_oid IN (SELECT table_oid FROM duckdb_tables() WHERE database_name = 'imported_snapshot')
       ORDER BY column_index`,
    )
  ).map(({ name, type }) => ({ name: String(name), type: String(type) }))

/** SQL condition for rows that no tombstone has deleted. */
const undeletedCondition = (columns: ReadonlyArray<Column>): string =>
  columns
    .filter(({ name }) => name === '_ab_cdc_deleted_at' || name === '_sdc_deleted_at')
    .map(({ name }) => `r.${quoteIdentifier(name)} IS NULL`)
    .concat('true')
    .join(' AND ')

/** SQL for an attribute of the review; NULL if the snapshot has no such column. */
const columnOrNull = (
  columns: ReadonlyArray<Column>,
  name: string,
  expression = `r.${quoteIdentifier(name)}`,
): string => (columns.some((column) => column.name === name) ? expression : 'NULL')

/** SQL for the longest response with more than one word. */
const longestComment = `(SELECT max_by(response, length(response)) FROM (
  SELECT unnest(from_json(r.contents->'$[*].response', '["VARCHAR"]')) AS response) WHERE contains(response, ' '))`

const insertReviews = (columns: ReadonlyArray<Column>): string => {
  const get = (name: string, expression?: string): string => columnOrNull(columns, name, expression)
  const id = (object: string): string => get(object, `TRY_CAST(r.${object}->>'$.id' AS BIGINT)`)
  return `
    INSERT INTO review BY NAME
    SELECT *, coalesce(len(string_split(original_comment, ' ')), 0) AS words FROM (
      SELECT
        r.id,
        ${get('surveyBarCode')} AS survey_bar_code,
        ${id('source')} AS source_id,
        ${id('location')} AS location_id,
        ${id('provider')} AS provider_id,
        ${get('mentionTime', `r."mentionTime" AT TIME ZONE 'UTC'`)} AS mention,
        r."modifiedTime" AT TIME ZONE 'UTC' AS modified,
        ${get('rating')} AS rating,
        ${id('taskDetails')} AS task_id,
        ${get('taskDetails', `r."taskDetails"->>'$.status'`)} AS task_status,
        ${get('visitRecordId')} AS visit_record_id,
        ${originalText(columns)} AS original,
        ${get('brand', 'r.brand::VARCHAR')} AS original_brand,
        ${get('contents', longestComment)} AS original_comment
      FROM imported_snapshot.reviews r WHERE ${undeletedCondition(columns)}
    )`
}

/** SQL for the distinct objects that reviews refer to, each with its newest name. */
const selectReferences = (columns: ReadonlyArray<Column>, object: string, more = ''): string =>
  `SELECT id, arg_max(name, modified) AS name ${more} FROM (
     SELECT
       TRY_CAST(r.${object}->>'$.id' AS BIGINT) AS id,
       r.${object}->>'$.name' AS name,
       r."modifiedTime" AS modified,
       r.${object}->>'$.npi' AS npi
     FROM imported_snapshot.reviews r WHERE ${columnOrNull(columns, object, 'true')}
   ) WHERE id IS NOT NULL GROUP BY id`

const insertDimensions = (columns: ReadonlyArray<Column>): string => {
  const ifPresent = ([object, sql]: readonly [string, string]): string =>
    columns.some(({ name }) => name === object) ? `${sql};` : ''
  return [
    [
      'source',
      `INSERT INTO source ${selectReferences(columns, 'source')} ON CONFLICT DO UPDATE SET name = excluded.name`,
    ],
    ['provider', `INSERT INTO provider ${selectReferences(columns, 'provider', ', arg_max(npi, modified)')}`],
    [
      'location',
      `INSERT INTO location SELECT id, 'LOC-' || id, 'INTERNAL', name, true, 1000000 + id, 'Location',
         (SELECT min(id) FROM region) + id % (SELECT count(*) FROM region), (SELECT min(id) FROM brand), NULL
       FROM (${selectReferences(columns, 'location')})`,
    ],
  ]
    .map(([object = '', sql = '']) => ifPresent([object, sql]))
    .join('\n')
}

/** The first of a million successive positions whose ids are all unused. */
const findFreePosition = async (database: Database): Promise<number> => {
  for (let next = 0; ; next += 1_000_000) {
    const range = `BETWEEN ${reviewIdAt(String(next))} AND ${reviewIdAt(String(next + 999_995))}`
    const other = `BETWEEN ${reviewIdAt(String(next + 1))} AND ${reviewIdAt(String(next + 999_999))}`
    const taken = await database.scalar(`SELECT count(*) FROM review WHERE id ${range} OR id ${other}`)
    if (Number(taken) === 0) return next
  }
}

/** Fills all tables from a file made by `feedback snapshot`. The service then returns each review unchanged. */
const importSnapshot = async (database: Database, path: string, seed: number): Promise<void> => {
  await database.run(`ATTACH ${quoteLiteral(path)} AS imported_snapshot (READ_ONLY)`).catch((error: unknown) => {
    const detail = error instanceof Error ? error.message : String(error)
    throw new CommandError(
      configFailure(`--from ${path} cannot be opened as a snapshot: ${detail.split('\n')[0]}`, detail),
    )
  })
  try {
    const columns = await listColumns(database, 'reviews')
    if (!['id', 'modifiedTime'].every((needed) => columns.some(({ name }) => name === needed)))
      throw new CommandError(
        configFailure(`--from ${path} has no reviews. Give a file made by feedback snapshot or feedback sync.`),
      )
    await database.run(tableDefinitions)
    await seedConstants(database)
    await database.run(insertDimensions(columns))
    await database.run(insertReviews(columns))
    if ((await listColumns(database, 'deleted_reviews')).length > 0)
      await database.run(
        `INSERT INTO deleted SELECT id, NULL, "modifiedTime" AT TIME ZONE 'UTC' FROM imported_snapshot.deleted_reviews`,
      )
    const next = await findFreePosition(database)
    await database.run(`INSERT INTO setting VALUES ('seed', ${seed}), ('next', ${next})`)
    await database.run(indexDefinitions)
  } finally {
    await database.run('DETACH imported_snapshot')
  }
}
