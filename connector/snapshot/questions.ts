import { CommandError, configFailure, findNearestName, suggestName } from '../cdk'
import { provideModels } from './regions'
import { type Database, quoteIdentifier, quoteLiteral } from './store/database'
import { findReadTime, readReportingTimeZone } from './store/metadata'
import { type ModelTables, readModels, userViewNames } from './store/models'
import { findModels, localDateSql, reviewViewNames } from './store/views'

/**
 * The columns that a filter compares. One of them must have the value. A month is compared with a month or the month of
 * a time.
 */
const filterColumns = {
  region: ['region'],
  location: ['location_id', 'location_name'],
  source: ['source_id', 'source_name'],
  provider: ['provider_id', 'provider_name'],
  owner: ['owner_name', 'owner_email', 'task_owner'],
  month: ['month', 'mention_time'],
} as const

export type QuestionFilter = keyof typeof filterColumns
export const questionFilters = Object.keys(filterColumns) as ReadonlyArray<QuestionFilter>
export type FilterValues = Readonly<Partial<Record<QuestionFilter, string>>>

/**
 * A named query. `view`: the source of its rows; `sql`: the query over `selected`, the rows that pass the filters.
 * `last_read.day`: the day on which the reviews were last read, or null.
 */
export type Question = {
  readonly name: string
  readonly description: string
  readonly filters: ReadonlyArray<QuestionFilter>
  /** What to type after `feedback query --db FILE`. */
  readonly example?: string
  readonly view: string
  readonly sql: string
}

type ViewDescription = Pick<Question, 'description' | 'filters' | 'example'>

const workFilters = ['region', 'location', 'source', 'provider', 'owner', 'month'] as const

/** The models that can be queried by name, with all their rows. */
const models: Readonly<Record<string, ViewDescription>> = {
  critical_alerts: {
    description: 'What cannot wait: overdue tasks, very low scores, liabilities of high severity',
    filters: workFilters,
  },
  review_tasks_open: { description: 'Each open task with its age, owner, region and severity', filters: workFilters },
  owner_scorecard: { description: 'The tasks of each owner: open, closed, answered, and how fast', filters: ['owner'] },
  region_monthly: { description: 'The figures of each region and month', filters: ['region', 'month'] },
  location_monthly: { description: 'The figures of each location and month', filters: ['location', 'month'] },
  source_monthly: { description: 'The figures of each source and month', filters: ['source', 'month'] },
  month_over_month: { description: 'Each figure of a month beside that of the month before', filters: ['month'] },
  location_scorecard: { description: 'The ratings of each location, with their intervals', filters: ['location'] },
  provider_scorecard: {
    description: 'The ratings of each provider with enough reviews, with their intervals',
    filters: ['provider'],
  },
  sentiment_by_category_monthly: { description: 'Sentiments by category and month', filters: ['month'] },
  nps_monthly: {
    description: 'The net promoter score by month: all reviews, each region, location, provider and source',
    filters: ['month'],
    example: 'nps_monthly --month 2026-10',
  },
  top_box_monthly: {
    description: 'The share of the best answer to each question by month, for the same groups',
    filters: ['month'],
    example: 'top_box_monthly --scales scales.csv --month 2026-10',
  },
  question_scales: {
    description: 'Each question with its scale, how many answers could be read, and why no figure uses it',
    filters: [],
    example: 'question_scales --scales scales.csv',
  },
  review_answers: {
    description: 'Each answer as text, and as a number, a date or a choice',
    filters: [],
    example: `"SELECT question, avg(answer_number) FROM review_answers GROUP BY ALL"`,
  },
  response_times: { description: 'How long each answered review waited', filters: ['location', 'source', 'month'] },
  open_liabilities: {
    description: 'Each liability whose review has no completed task',
    filters: ['location', 'provider', 'owner', 'month'],
  },
  review_daily: { description: 'Reviews and ratings by day and source', filters: ['source'] },
  deleted_reviews_by_source: {
    description: 'Reviews that the sources deleted, by month',
    filters: ['source', 'month'],
  },
}

const answers: ReadonlyArray<Question> = [
  {
    name: 'task-ageing',
    description: 'Open tasks of each region by age, in days',
    view: 'review_tasks_open',
    filters: workFilters,
    sql: `SELECT region, count(*) AS open_tasks, count(*) FILTER (age_days < 3) AS days_0_to_2,
        count(*) FILTER (age_days BETWEEN 3 AND 6) AS days_3_to_6,
        count(*) FILTER (age_days BETWEEN 7 AND 13) AS days_7_to_13,
        count(*) FILTER (age_days BETWEEN 14 AND 29) AS days_14_to_29,
        count(*) FILTER (age_days >= 30) AS days_30_and_more,
        max(age_days) AS oldest_days
      FROM selected GROUP BY region ORDER BY open_tasks DESC, region`,
  },
  {
    name: 'oldest-tasks',
    description: 'The 50 tasks that have been open longest',
    view: 'review_tasks_open',
    filters: workFilters,
    sql: `SELECT review_id, task_id, age_days, task_status, owner_name, region, location_name, source_name, rating,
        review_score
      FROM selected ORDER BY age_days DESC, review_id LIMIT 50`,
  },
  {
    name: 'unowned-tasks',
    description: 'Open tasks that nobody owns, the oldest first',
    view: 'review_tasks_open',
    filters: workFilters,
    sql: `SELECT review_id, task_id, age_days, task_status, region, location_name, source_name, rating, review_score
      FROM selected WHERE nullif(trim(owner_name), '') IS NULL AND nullif(trim(owner_email), '') IS NULL
      ORDER BY age_days DESC, review_id`,
  },
  {
    name: 'owner-backlog',
    description: 'Open tasks of each owner: how many, how old, how many from negative reviews',
    view: 'review_tasks_open',
    filters: workFilters,
    sql: `SELECT owner_name, owner_email, count(*) AS open_tasks,
        count(*) FILTER (age_days >= 14) AS open_14_days_and_more,
        max(age_days) AS oldest_days, round(median(age_days), 1) AS median_days,
        count(*) FILTER (sentiment = 'negative') AS negative
      FROM selected GROUP BY owner_name, owner_email ORDER BY open_tasks DESC, owner_name, owner_email`,
  },
  {
    name: 'alert-reasons',
    description: 'Alerts of each region by reason; an alert may have several',
    view: 'critical_alerts',
    filters: workFilters,
    sql: `SELECT region, count(*) AS alerts,
        count(*) FILTER (is_overdue) AS overdue,
        count(*) FILTER (is_low_score) AS low_score,
        count(*) FILTER (is_high_liability) AS high_liability
      FROM selected GROUP BY region ORDER BY alerts DESC, region`,
  },
  {
    name: 'unanswered-negatives',
    description: 'Negative reviews without an answer, the newest first',
    view: 'reviews_current',
    filters: ['location', 'source', 'provider', 'owner', 'month'],
    sql: `SELECT review_id, mention_time, location_name, source_name, rating, review_score, task_status
      FROM selected WHERE review_score < 2.5 AND review_id NOT IN (SELECT review_id FROM response_times)
      ORDER BY mention_time DESC, review_id`,
  },
  {
    name: 'response-ranking',
    description: 'How fast each location answers, the slowest first',
    view: 'response_times',
    filters: ['location', 'source', 'month'],
    sql: `SELECT location_id, arg_max(location_name, mention_time) AS location_name, count(*) AS answered,
        round(median(hours), 1) AS median_hours,
        round(count(*) FILTER (hours <= 24) / count(*), 2) AS share_within_a_day
      FROM selected GROUP BY location_id ORDER BY median_hours DESC, location_id`,
  },
  {
    name: 'location-movers',
    description: 'Locations by the change of their average rating from the month before, the largest drop first',
    view: 'month_over_month',
    filters: ['month'],
    sql: `SELECT key AS location_id, name AS location_name, month, value AS average_rating,
        previous_value AS month_before, change
      FROM selected WHERE scope = 'location' AND metric = 'average_rating' AND change IS NOT NULL
      ORDER BY month DESC, change, key`,
  },
  {
    name: 'locations-below-average',
    description: 'Locations whose whole interval is below the average rating of all',
    view: 'location_scorecard',
    filters: ['location'],
    sql: `SELECT location_id, location_name, rated, average_rating, rating_low, rating_high, open_liabilities
      FROM selected WHERE rating_high < (SELECT avg(rating) FROM reviews_current) ORDER BY rating_high, location_id`,
  },
  {
    name: 'complaint-themes',
    description: 'What negative sentiments are about, by category',
    view: 'sentiment_by_category_monthly',
    filters: ['month'],
    sql: `SELECT category, sub_category, sum(sentiments)::BIGINT AS sentiments, sum(negative)::BIGINT AS negative,
        round(sum(negative) / sum(sentiments), 2) AS share_negative
      FROM selected GROUP BY category, sub_category ORDER BY negative DESC, category, sub_category`,
  },
  {
    name: 'source-mix',
    description: 'Where reviews come from, and how they differ',
    view: 'reviews_current',
    filters: ['location', 'source', 'provider', 'owner', 'month'],
    sql: `SELECT source_id, source_name, count(*) AS reviews, round(count(*) / sum(count(*)) OVER (), 2) AS share,
        round(avg(rating), 2) AS average_rating,
        round(count(*) FILTER (review_score < 2.5) / nullif(count(review_score), 0), 2) AS share_negative,
        max(mention_time) AS last_mention
      FROM selected GROUP BY source_id, source_name ORDER BY reviews DESC, source_id`,
  },
  {
    name: 'locations-without-region',
    description: 'Locations missing from the regions file, with their reviews; a start for that file',
    view: 'review_facts',
    filters: ['location', 'source', 'provider', 'owner', 'month'],
    sql: `SELECT location_id, arg_max(location_name, modified_time) AS location_name, count(*) AS reviews,
        sum(open_task)::BIGINT AS open_tasks
      FROM selected WHERE region = '(unknown)' AND (location_id IS NOT NULL OR location_name IS NOT NULL)
      GROUP BY location_id, CASE WHEN location_id IS NULL THEN lower(trim(location_name)) END
      ORDER BY reviews DESC, location_id, location_name`,
  },
  {
    name: 'recent-deletions',
    description: 'Reviews that the sources deleted, in the last 12 months that have some, by source',
    view: 'deleted_reviews_by_source',
    filters: ['source', 'month'],
    sql: `SELECT month, source_id, source_name, deleted_reviews,
        sum(deleted_reviews) OVER (PARTITION BY month)::BIGINT AS deleted_in_month
      FROM selected WHERE month IN (SELECT DISTINCT month FROM selected ORDER BY month DESC LIMIT 12)
      ORDER BY month DESC, deleted_reviews DESC, source_id`,
  },
  {
    name: 'changes-this-month',
    description: 'What changed from the month before in the newest month, over or not: reviews, regions, sources',
    view: 'month_over_month',
    filters: ['month'],
    sql: `SELECT scope, name, month, metric, value, previous_value AS month_before, change
      FROM selected
      WHERE month = (SELECT max(month) FROM selected) AND scope IN ('all', 'region', 'source') AND change <> 0
      ORDER BY CASE scope WHEN 'all' THEN 0 WHEN 'region' THEN 1 ELSE 2 END, name, key, metric`,
  },
  {
    name: 'nps-by-location',
    description: 'The net promoter score of each location in the last full month, lowest first',
    view: 'nps_monthly',
    filters: ['month'],
    example: 'nps-by-location --month 2026-10',
    sql: `SELECT key AS location_id, name AS location_name, question, month, answers, nps, nps_low, nps_high, gap
      FROM selected
      WHERE scope = 'location' AND month = (
        SELECT coalesce(max(month) FILTER (month < date_trunc('month', last_read.day)), max(month))
        FROM selected, last_read)
      ORDER BY nps NULLS LAST, key, question`,
  },
  {
    name: 'questions-left-out',
    description: 'Questions that no figure uses, and why; a start for a file of scales',
    view: 'question_scales',
    filters: [],
    example: 'questions-left-out --scales scales.csv',
    sql: `SELECT question_id, question, question_type, answers, lowest_answer, highest_answer, gap
      FROM selected
      WHERE gap IS NOT NULL AND coalesce(kind, '') NOT IN ('text', 'date')
      ORDER BY answers DESC, question_id`,
  },
  {
    name: 'liability-backlog',
    description: 'Open liabilities by category and severity, the most severe first',
    view: 'open_liabilities',
    filters: ['location', 'provider', 'owner', 'month'],
    sql: `SELECT category, severity_level, severity, count(*) AS liabilities, count(DISTINCT review_id) AS reviews,
        min(mention_time) AS oldest
      FROM selected GROUP BY category, severity_level, severity
      ORDER BY severity_level DESC NULLS LAST, liabilities DESC, category`,
  },
]

/** Every question, in listing order. */
export const questions: ReadonlyArray<Question> = [
  ...answers,
  ...Object.entries(models).map(([name, model]) => ({ ...model, name, view: name, sql: 'FROM selected ORDER BY ALL' })),
]

const simplify = (name: string): string => name.toLowerCase().replaceAll('-', '_')

/** The question with this name, ignoring case and hyphens. */
export const findQuestion = (name: string): Question | undefined =>
  questions.find((question) => simplify(question.name) === simplify(name))

const listQuestionNames = (): ReadonlyArray<string> => questions.map(({ name }) => name)

/** ` Did you mean …?` for an unknown name, or an empty text. */
export const suggestQuestion = (name: string): string => suggestName(name, listQuestionNames())

/** The names of the models and views that a query may use, even if the file does not have them yet. */
export const listModelNames = (): ReadonlyArray<string> => [
  ...new Set([...readModels().keys(), ...userViewNames, ...reviewViewNames]),
]

const conditionSql = (
  filter: QuestionFilter,
  value: string,
  columns: ReadonlyArray<string>,
  timeZone: string,
): string =>
  `(${filterColumns[filter]
    .filter((column) => columns.includes(column))
    .map((column) => {
      if (column === 'month') return `month = DATE ${quoteLiteral(`${value}-01`)}`
      if (column === 'mention_time')
        return `date_trunc('month', ${localDateSql(column, timeZone)}) = DATE ${quoteLiteral(`${value}-01`)}`
      return `lower(trim(${column}::VARCHAR)) = lower(trim(${quoteLiteral(value)}))`
    })
    .join(' OR ')})`

/**
 * Creates the views of a question and returns its SQL. `onWarning`: called with a message if no row has a filter's
 * value, or if no review has the location of a region.
 */
export const askQuestion = async (
  db: Database,
  { name, view: wanted, filters, sql }: Question,
  values: FilterValues,
  given: ModelTables,
  onWarning: (message: string) => void,
): Promise<string> => {
  const models = await findModels(db)
  if (!models.hasReviews)
    throw new CommandError(
      configFailure(`${db.path} has no reviews, so ${name} has no data. Read the stream reviews into it first.`),
    )
  const view = models.renamed.get(wanted) ?? wanted
  const renamed = [...models.renamed].reduce(
    (text, [model, other]) => text.replaceAll(new RegExp(`\\b${model}\\b`, 'g'), other),
    sql,
  )
  await provideModels(db, models, `${view} ${renamed}`, given, onWarning)
  const rows = await db.query(
    `SELECT column_name AS name FROM duckdb_columns() WHERE table_name = ${quoteLiteral(view)}`,
  )
  const columns = rows.map((row) => String(row.name))
  const timeZone = await readReportingTimeZone(db)
  const conditions: string[] = []
  for (const filter of filters) {
    const value = values[filter]
    if (value === undefined) continue
    const condition = conditionSql(filter, value, columns, timeZone)
    conditions.push(condition)
    if (filter === 'month') continue
    const [found] = await db.query(`SELECT 1 FROM ${quoteIdentifier(view)} WHERE ${condition} LIMIT 1`)
    if (found !== undefined) continue
    const known = filterColumns[filter].filter((column) => columns.includes(column))
    const names = await db.query(
      known
        .map(
          (column) =>
            `SELECT DISTINCT ${column}::VARCHAR AS name FROM ${quoteIdentifier(view)} WHERE ${column} IS NOT NULL`,
        )
        .join(' UNION '),
    )
    const near = findNearestName(
      value,
      names.map((row) => String(row.name)),
    )
    onWarning(`No row of ${view} has the ${filter} ${value}.${near === undefined ? '' : ` Did you mean ${near}?`}`)
  }
  const readAt = await findReadTime(db, models.hasReviews)
  const readTime = readAt === null ? 'NULL::TIMESTAMPTZ' : `${quoteLiteral(readAt)}::TIMESTAMPTZ`
  const where = conditions.length === 0 ? '' : ` WHERE ${conditions.join(' AND ')}`
  return `
    WITH selected AS (SELECT * FROM ${quoteIdentifier(view)}${where}),
    last_read AS (SELECT ${localDateSql(readTime, timeZone)} AS day)
    ${renamed}`
}
