import {
  cellToNumber,
  cellToTextOrNull,
  type Database,
  historyTableName,
  listStreamTables,
  quoteIdentifier,
  quoteLiteral,
  type RowValues,
  reviewsTableName,
} from '../snapshot/store'
import type { Sample } from './chance'
import type { MonthPair } from './months'

/** The figures that are judged and compared at the same age, from the samples. */
export const sampledMetrics = [
  'average_rating',
  'share_negative',
  'share_answered_7',
  'share_answered_30',
  'share_closed_7',
  'share_closed_30',
] as const
export type SampledMetric = (typeof sampledMetrics)[number]

/** The samples of one group in one month. */
export type Samples = Readonly<Partial<Record<SampledMetric, Sample>>>

/** The ages in days at which months are compared. */
const ages = [7, 30] as const

/** The reviews and what had happened to them at each age: a temporary view of the connection. */
export const outcomes = '_report_outcomes'

/** When tasks were closed, as far as known: a temporary table of the connection. */
const closingsTable = '_report_closings'

/** The same for sentiments: a row for each category and review. */
export const categoryOutcomes = '_report_category_outcomes'

/**
 * The versions of tasks in the file. The service sends no closing time, so a task counts as closed when the first
 * version that shows it as completed was modified.
 */
const taskVersionsSql = async (db: Database): Promise<string> => {
  const table = (await listStreamTables(db)).find(({ name }) => name === reviewsTableName)
  const names = [reviewsTableName, ...(table?.history ? [historyTableName(reviewsTableName)] : [])]
  if (!table?.columns.some(({ name, type }) => name === 'taskDetails' && type === 'JSON'))
    return `SELECT NULL::BIGINT AS review_id, NULL::TIMESTAMPTZ AS modified, NULL::BOOLEAN AS is_closed WHERE false`
  return names
    .map(
      (name) => `
      SELECT id AS review_id, "modifiedTime" AS modified,
        coalesce(lower(trim("taskDetails"->>'$.status')) = 'completed', false) AS is_closed
      FROM ${quoteIdentifier(name)}`,
    )
    .join(' UNION ALL ')
}

const monthList = (months: ReadonlyArray<string>): string =>
  months.map((month) => `${quoteLiteral(`${month}-01`)}::DATE`).join(', ')

/**
 * Creates the views from which the samples are counted. `facts`: the table of review_facts; `readAt`: when the reviews
 * were read, in ISO 8601. A review counts at an age only if it had reached it by then. `closed_7` and `closed_30` are
 * null if they are unknown: the file's first version of the task was modified after that age and shows it closed.
 */
export const createOutcomes = async (
  db: Database,
  facts: string,
  readAt: string,
  { month, previous }: MonthPair,
): Promise<void> => {
  await db.query(`
    CREATE OR REPLACE TEMP TABLE ${closingsTable} AS
    SELECT review_id, min(modified) AS first_known, min(modified) FILTER (is_closed) AS closed
    FROM (${await taskVersionsSql(db)})
    WHERE review_id IN (SELECT review_id FROM ${facts} WHERE task = 1 AND month IN (${monthList([month, previous])}))
    GROUP BY review_id`)
  const columns = ages.map(
    (days) => `
      mention_time + to_hours(${24 * days}) <= ${quoteLiteral(readAt)}::TIMESTAMPTZ AS had_${days},
      coalesce(first_response_time <= mention_time + to_hours(${24 * days}), false) AS answered_${days},
      CASE
        WHEN closed IS NULL THEN CASE WHEN closed_task = 0 THEN false END
        WHEN closed <= mention_time + to_hours(${24 * days}) THEN true
        WHEN first_known < closed THEN false
      END AS closed_${days}`,
  )
  await db.run(`
    CREATE OR REPLACE TEMP VIEW ${outcomes} AS
    SELECT facts.*, ${columns.join(', ')}
    FROM ${facts} AS facts LEFT JOIN ${closingsTable} USING (review_id);
    CREATE OR REPLACE TEMP VIEW ${categoryOutcomes} AS
    SELECT facts.month, review_id,
      nullif(trim(category), '') AS category, nullif(trim(sub_category), '') AS sub_category,
      CASE WHEN bool_or(lower(trim(tonality)) = 'negative') THEN 'negative' ELSE 'other' END AS sentiment
    FROM review_sentiments_current JOIN ${facts} AS facts USING (review_id)
    GROUP BY ALL`)
}

export const dropOutcomes = (db: Database): Promise<void> =>
  db.run(`
    DROP VIEW IF EXISTS temp.${categoryOutcomes};
    DROP VIEW IF EXISTS temp.${outcomes};
    DROP TABLE IF EXISTS temp.${closingsTable}`)

/** The reviews that a share is based on, and which of them it counts; null if unknown. */
const shares: Readonly<Record<Exclude<SampledMetric, 'average_rating'>, readonly [of: string, counts: string]>> = {
  share_negative: ['sentiment IS NOT NULL', `sentiment = 'negative'`],
  share_answered_7: ['had_7', 'answered_7'],
  share_answered_30: ['had_30', 'answered_30'],
  share_closed_7: ['had_7 AND task = 1', 'closed_7'],
  share_closed_30: ['had_30 AND task = 1', 'closed_30'],
}

/** The source for counting the samples of some groups. */
type SampleSource = {
  /** SQL that identifies a group; null for reviews without one. */
  readonly identity: string
  readonly from?: string
  readonly where?: string
  readonly metrics: ReadonlyArray<SampledMetric>
}

const columnsOf = (metric: SampledMetric): string => {
  if (metric === 'average_rating')
    return `count(rating) AS ${metric}_n, avg(rating) AS ${metric}_mean,
      coalesce(var_pop(rating), 0) * count(rating) AS ${metric}_squares`
  const [of, counts] = shares[metric]
  return `count(*) FILTER (${of}) AS ${metric}_n, count(*) FILTER (${of} AND ${counts}) AS ${metric}_low,
      count(*) FILTER (${of} AND coalesce(${counts}, true)) AS ${metric}_high`
}

const toSample = (row: RowValues, metric: SampledMetric): Sample => {
  const read = (name: string) => cellToNumber(row[`${metric}_${name}`])
  return metric === 'average_rating'
    ? { kind: 'average', n: read('n'), mean: read('mean'), squares: read('squares') }
    : { kind: 'share', n: read('n'), low: read('low'), high: read('high') }
}

/** Reads the samples of each group in each month. */
export const readSamples = async (
  db: Database,
  { identity, from = outcomes, where = 'true', metrics }: SampleSource,
  months: ReadonlyArray<string>,
): Promise<(month: string, identity: string | null) => Samples> => {
  const rows = await db.query(`
    SELECT (${identity})::VARCHAR AS group_id, strftime(month, '%Y-%m') AS month, ${metrics.map(columnsOf).join(', ')}
    FROM ${from}
    WHERE ${where} AND month IN (${monthList(months)})
    GROUP BY ALL`)
  const toKey = (month: string, group: string | null) => JSON.stringify([month, group])
  const samples = new Map(
    rows.map((row) => [
      toKey(String(row.month), cellToTextOrNull(row.group_id)),
      Object.fromEntries(metrics.map((metric) => [metric, toSample(row, metric)])) as Samples,
    ]),
  )
  return (month, group) => samples.get(toKey(month, group)) ?? {}
}
