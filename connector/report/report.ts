import { basename } from 'node:path'
import { CommandError, configFailure } from '../cdk'
import type { FindStateProblem } from '../snapshot'
import { findUnknownRegions } from '../snapshot'
import {
  cellToNumber,
  cellToNumberOrNull,
  cellToTextOrNull,
  cellToTimeOrNull,
  createModelViews,
  createTemporaryViews,
  type Database,
  defaultModelVariables,
  quoteLiteral,
  type Region,
  readReportingTimeZone,
  reviewsTableName,
  type Snapshot,
} from '../snapshot/store'
import {
  addMonths,
  compareRows,
  earlierMonth,
  type FigureGroup,
  type FocusMonth,
  type GroupSectionName,
  groupSections,
  laterMonth,
  type MonthPair,
  monthlyMetrics,
  readGroups,
} from './comparisons'
import { type DataHealth, readDataHealth } from './health'
import { type Figures, formatMinute } from './html'
import { type Alerts, addTexts, readAlerts, readOpenTasks, type WorkItem, type WorkList } from './open-work'
import { type LocationEstimate, readLocationEstimates, readRatings } from './ratings'
import { type LiabilityCounts, limitTrend, readLiabilities, readResponses, type TrendMonth } from './reviews'

/**
 * The report as plain data, as `--format json` prints it; times in ISO 8601, UTC; months such as 2026-10, of the time
 * zone.
 */
export type Report = {
  /** The version of this shape: higher once a key changes its meaning or goes. */
  readonly format: 1
  readonly file: string
  /** The time at which ages end. */
  readonly made_at: string
  readonly time_zone: string
  /** When the reviews were last read; null if they never were. */
  readonly read_at: string | null
  readonly month: string
  readonly previous_month: string
  /** Whether the month was over when the reviews were last read. */
  readonly is_over: boolean
  readonly has_regions: boolean
  /** What the regions file names and no review has. */
  readonly unknown_regions: ReadonlyArray<string>
  readonly has_text: boolean
  /** All reviews of the file, and the months of the first and the last; null if it has no table of reviews. */
  readonly data: ReviewRange | null
  /** The figures of all reviews of the month. */
  readonly figures: Figures
  readonly alerts: Alerts
  readonly open_tasks: WorkList
  readonly ratings: ReadonlyArray<FigureGroup>
  readonly response_times: ReadonlyArray<FigureGroup>
  /** The last months up to that of the report, the oldest first. */
  readonly trend: ReadonlyArray<TrendMonth>
  readonly location_estimates: ReadonlyArray<LocationEstimate>
  readonly open_liabilities: LiabilityCounts
  readonly health: DataHealth
} & Readonly<Record<GroupSectionName, ReadonlyArray<FigureGroup>>>

type ReviewRange = {
  readonly reviews: number
  /** Reviews without a mention time that a review can have, which are in no month. */
  readonly undated: number
  readonly first_month: string | null
  readonly last_month: string | null
}

export type ReportOptions = {
  /** Milliseconds since 1970. */
  readonly now: number
  /** Such as 2026-10; left out: the last full month. */
  readonly month?: string | undefined
  readonly withText?: boolean
  readonly regions?: ReadonlyArray<Region> | undefined
  readonly findStateProblem?: FindStateProblem
  /** Called before each section is read. */
  readonly onSection?: (name: string) => void
}

/**
 * The last month that was over when the reviews were read; an earlier one if the reviews end earlier, a later one if
 * they begin later.
 */
const chooseMonth = (readAt: string | null, now: number, timeZone: string, data: ReviewRange | null): string => {
  const readMonth = formatMinute(readAt ?? new Date(now).toISOString(), timeZone).slice(0, 7)
  const lastFull = addMonths(
    earlierMonth(readMonth, formatMinute(new Date(now).toISOString(), timeZone).slice(0, 7)),
    -1,
  )
  return laterMonth(earlierMonth(lastFull, data?.last_month ?? lastFull), data?.first_month ?? lastFull)
}

const readRange = async (db: Database): Promise<ReviewRange> => {
  const [row] = await db.query(`
    SELECT count(*) AS reviews, count(*) - count(month) AS undated, strftime(min(month), '%Y-%m') AS first, strftime(max(month), '%Y-%m') AS last
    FROM review_facts`)
  return {
    reviews: cellToNumber(row?.reviews),
    undated: cellToNumber(row?.undated),
    first_month: cellToTextOrNull(row?.first),
    last_month: cellToTextOrNull(row?.last),
  }
}

/** When the last complete load of the reviews began; without one, when their last row was read. */
const findReadTime = async (db: Database, hasReviews: boolean): Promise<string | null> => {
  const loaded = await db.scalar(
    `SELECT max(started) FROM _loads WHERE stream = ${quoteLiteral(reviewsTableName)} AND status = 'complete'`,
  )
  const extracted =
    loaded === null && hasReviews
      ? await db.scalar(`SELECT max(_airbyte_extracted_at) FROM ${reviewsTableName}`)
      : loaded
  return cellToTimeOrNull(extracted)
}

/** Reads the figures of all reviews: those of the month, and the curves up to it. */
const readOverall = async (
  db: Database,
  { month }: MonthPair,
): Promise<{ readonly figures: Figures; readonly trend: ReadonlyArray<TrendMonth> }> => {
  const rows = await db.query(
    `SELECT strftime(month, '%Y-%m') AS month, metric, value, previous_value FROM month_over_month WHERE scope = 'all' ORDER BY 1`,
  )
  const of = (name: string) => rows.filter((row) => row.month === name)
  const find = (name: string, metric: string) =>
    cellToNumberOrNull(of(name).find((row) => row.metric === metric)?.value)
  const own = of(month)
  const column = (name: 'value' | 'previous_value') =>
    own.length === 0 ? undefined : Object.fromEntries(own.map((row) => [String(row.metric), row[name] ?? null]))
  const months = [...new Set(rows.map((row) => String(row.month)))]
  return {
    figures: compareRows(monthlyMetrics, column('value'), column('previous_value')),
    trend: limitTrend(
      months.map((name) => ({
        month: name,
        reviews: find(name, 'reviews') ?? 0,
        average_rating: find(name, 'average_rating'),
        share_answered: find(name, 'share_answered'),
      })),
      month,
    ),
  }
}

const factsCopy = '_report_facts'
const sentimentsCopy = '_report_sentiments'

/**
 * Copies the model that the others read, so that the JSON of a review is taken apart once; views over `reviews` read
 * the copy too.
 */
const copyFacts = async (db: Database): Promise<void> => {
  await db.query(`CREATE OR REPLACE TEMP TABLE ${factsCopy} AS FROM review_facts`)
  await db.run(`
    CREATE OR REPLACE TEMP VIEW review_facts AS FROM ${factsCopy};
    CREATE OR REPLACE TEMP VIEW reviews_current AS 
      SELECT review_id, mention_time, modified_time, rating, review_score, location_id, location_name, provider_id, provider_name, provider_npi,
        source_id, source_name, task_status, owner_name AS task_owner FROM ${factsCopy}`)
}

/** Copies the sentiments of the two months. */
const copySentiments = async (db: Database, { month, previous }: MonthPair): Promise<void> => {
  const months = [month, previous].map((of) => `${quoteLiteral(`${of}-01`)}::DATE`).join(', ')
  await db.query(`
    CREATE OR REPLACE TEMP TABLE ${sentimentsCopy} AS
    FROM review_sentiments_current WHERE review_id IN (SELECT review_id FROM ${factsCopy} WHERE month IN (${months}))`)
  await db.run(`CREATE OR REPLACE TEMP VIEW review_sentiments_current AS FROM ${sentimentsCopy}`)
}

const dropCopies = async (db: Database): Promise<void> => {
  await createTemporaryViews(db)
  await db.run(
    `DROP VIEW IF EXISTS temp.review_facts; DROP TABLE IF EXISTS ${factsCopy}; DROP TABLE IF EXISTS ${sentimentsCopy}`,
  )
}

/**
 * Evaluates the models over the reviews of one month: the model that they read is restricted for as long as `body`
 * runs.
 */
const createFocus =
  (db: Database): FocusMonth =>
  async (month, body) => {
    const select = `CREATE OR REPLACE TEMP VIEW review_facts AS FROM ${factsCopy}`
    await db.run(`${select} WHERE month = ${quoteLiteral(`${month}-01`)}::DATE`)
    try {
      return await body()
    } finally {
      await db.run(select)
    }
  }

/** What some reviewers wrote. It is read on a connection of its own, whose views still have the texts. */
const readTexts = async (db: Database, items: ReadonlyArray<WorkItem>): Promise<ReadonlyArray<WorkItem>> => {
  const connection = await db.connect()
  try {
    await createTemporaryViews(connection)
    return await addTexts(connection, items)
  } finally {
    connection.close()
  }
}

/** What the report asks the models. */
type ModelSections = Pick<
  Report,
  | GroupSectionName
  | 'figures'
  | 'alerts'
  | 'open_tasks'
  | 'ratings'
  | 'response_times'
  | 'trend'
  | 'location_estimates'
  | 'open_liabilities'
>

const noGroups = { regions: [], owners: [], locations: [], sources: [], providers: [], categories: [] }
const noFigures = { figures: {}, trend: [], ratings: [], response_times: [], location_estimates: [] }
const noWork = { total: 0, listed: [] }
const noSections: ModelSections = {
  ...{ ...noGroups, ...noFigures, deleted_reviews: [], open_liabilities: [] },
  ...{ alerts: { ...noWork, counts: [] }, open_tasks: noWork },
}

const readSections = async (
  db: Database,
  months: MonthPair,
  { withText = false, onSection = () => undefined }: ReportOptions,
): Promise<ModelSections> => {
  const focusMonth = createFocus(db)
  const read = <A>(name: string, body: () => Promise<A>): Promise<A> => {
    onSection(name)
    return db.withMemory(`the section ${name} of the report`, body)
  }
  const groups = (name: GroupSectionName) =>
    read(groupSections[name].title.toLowerCase(), () => readGroups(db, groupSections[name], months, focusMonth))
  const addTextsTo = async <L extends WorkList>(list: L): Promise<L> =>
    withText ? { ...list, listed: await readTexts(db, list.listed) } : list
  return {
    ...(await read('figures', () => readOverall(db, months))),
    alerts: await read('alerts', async () => addTextsTo(await readAlerts(db, months, defaultModelVariables))),
    open_tasks: await read('open tasks', async () => addTextsTo(await readOpenTasks(db))),
    regions: await groups('regions'),
    owners: await groups('owners'),
    locations: await groups('locations'),
    location_estimates: await read('ratings of locations', () => readLocationEstimates(db)),
    sources: await groups('sources'),
    providers: await groups('providers'),
    categories: await groups('categories'),
    response_times: await read('response times', () => readResponses(db, months, focusMonth)),
    ratings: await read('ratings', () => readRatings(db, months, focusMonth)),
    open_liabilities: await read('open liabilities', () => readLiabilities(db)),
    deleted_reviews: await groups('deleted_reviews'),
  }
}

/**
 * Reads the report's numbers from a snapshot, without changing it. Rejects with `CommandError` for a month in the
 * future.
 */
export const readReport = async (snapshot: Snapshot, options: ReportOptions): Promise<Report> => {
  const { db } = snapshot
  const { now, regions, onSection, findStateProblem } = options
  await db.lake?.freeze()
  const made_at = new Date(now).toISOString()
  const time_zone = await readReportingTimeZone(db)
  const toMonth = (time: string) => formatMinute(time, time_zone).slice(0, 7)
  if (options.month !== undefined && options.month > toMonth(made_at))
    throw new CommandError(
      configFailure(
        `--month ${options.month} is in the future: it is ${toMonth(made_at)} in ${time_zone}. Give an earlier month.`,
      ),
      2,
    )
  onSection?.('reviews')
  const hasReviews = await createModelViews(db, { asOf: new Date(now), regions })
  try {
    if (hasReviews) await db.withMemory('the section reviews of the report', () => copyFacts(db))
    const data = hasReviews ? await readRange(db) : null
    const read_at = await findReadTime(db, hasReviews)
    const month = options.month ?? chooseMonth(read_at, now, time_zone, data)
    const months = { month, previous: addMonths(month, -1) }
    if (hasReviews) await db.withMemory('the section sentiments of the report', () => copySentiments(db, months))
    const unknown_regions = hasReviews && regions !== undefined ? await findUnknownRegions(db, regions) : []
    const sections = hasReviews ? await readSections(db, months, options) : noSections
    if (hasReviews) await dropCopies(db)
    onSection?.('health of the data')
    return {
      format: 1,
      file: basename(db.path),
      made_at,
      time_zone,
      read_at,
      month,
      previous_month: months.previous,
      is_over: month < toMonth(read_at ?? made_at),
      has_regions: regions !== undefined || (hasReviews && (await db.scalar('SELECT 1 FROM regions')) !== undefined),
      unknown_regions,
      has_text: options.withText === true,
      data,
      ...sections,
      health: await readDataHealth(snapshot, findStateProblem, (step) => onSection?.(`health of the data. ${step}`)),
    }
  } finally {
    if (hasReviews) await dropCopies(db)
  }
}
