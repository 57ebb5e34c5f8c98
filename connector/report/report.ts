import { basename } from 'node:path'
import { CommandError, configFailure } from '../cdk'
import { type FindStateProblem, findUnknownRegions } from '../snapshot'
import {
  cellToNumber,
  cellToTextOrNull,
  createModelViews,
  createTemporaryViews,
  type Database,
  defaultModelVariables,
  findReadTime,
  type Region,
  readReportingTimeZone,
  type Snapshot,
} from '../snapshot/store'
import {
  compareAllSamples,
  compareRows,
  type FigureGroup,
  type Judgement,
  judgeChanges,
  markFigures,
  readGroups,
} from './comparisons'
import { copyFacts, copyMonths, createFocus, dropCopies } from './copies'
import type { Figures } from './figures'
import { type DataHealth, readDataHealth } from './health'
import { formatMinute } from './html'
import { type LiabilityCounts, readLiabilities } from './liabilities'
import { addMonths, earlierMonth, laterMonth, type MonthPair } from './months'
import { type Alerts, addTexts, readAlerts, readOpenTasks, type WorkItem, type WorkList } from './open-work'
import { type LocationEstimate, readLocationEstimates, readRatings } from './ratings'
import { readResponses } from './responses'
import { readSamples, sampledMetrics } from './samples'
import { type GroupSectionName, groupSections, listGroupSections, monthlyMetrics } from './sections'
import { readTrend, type TrendMonth } from './trend'

/**
 * The report as plain data, as `--format json` prints it. Times are ISO 8601 in UTC; months, such as 2026-10, follow
 * the time zone.
 */
export type Report = {
  /** The version of this format. Increased if a key is removed or changes its meaning. */
  readonly format: 1
  readonly file: string
  /** The time up to which ages are counted. */
  readonly made_at: string
  readonly time_zone: string
  /** When the reviews were last read; null if never. */
  readonly read_at: string | null
  readonly month: string
  readonly previous_month: string
  /** True if the month was over when the reviews were last read. */
  readonly is_over: boolean
  readonly has_regions: boolean
  /** Regions that the regions file names but no review has. */
  readonly unknown_regions: ReadonlyArray<string>
  readonly has_text: boolean
  /** The number of reviews in the file, and their first and last month; null without a table of reviews. */
  readonly data: ReviewRange | null
  /** The figures of all reviews of the month. */
  readonly figures: Figures
  /** How it was decided which changes are marked. */
  readonly judgement: Judgement
  readonly alerts: Alerts
  readonly open_tasks: WorkList
  readonly ratings: ReadonlyArray<FigureGroup>
  readonly response_times: ReadonlyArray<FigureGroup>
  /** The months up to the report's, oldest first. */
  readonly trend: ReadonlyArray<TrendMonth>
  readonly location_estimates: ReadonlyArray<LocationEstimate>
  readonly open_liabilities: LiabilityCounts
  readonly health: DataHealth
} & Readonly<Record<GroupSectionName, ReadonlyArray<FigureGroup>>>

type ReviewRange = {
  readonly reviews: number
  /** The number of reviews with no usable mention time. They belong to no month. */
  readonly undated: number
  readonly first_month: string | null
  readonly last_month: string | null
}

export type ReportOptions = {
  /** Milliseconds since 1970. */
  readonly now: number
  /** Such as 2026-10. Defaults to the last full month. */
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
    SELECT count(*) AS reviews, count(*) - count(month) AS undated,
      strftime(min(month), '%Y-%m') AS first, strftime(max(month), '%Y-%m') AS last
    FROM review_facts`)
  return {
    reviews: cellToNumber(row?.reviews),
    undated: cellToNumber(row?.undated),
    first_month: cellToTextOrNull(row?.first),
    last_month: cellToTextOrNull(row?.last),
  }
}

/** Reads the figures of all reviews. For the first month of the data, nothing is known about the month before. */
const readFigures = async (db: Database, { month, previous }: MonthPair, isJudged: boolean): Promise<Figures> => {
  const rows = await db.query(`
    SELECT strftime(month, '%Y-%m') AS month, metric, value, previous_value
    FROM month_over_month
    WHERE scope = 'all'`)
  const column = (of: string, name: 'value' | 'previous_value') => {
    const own = rows.filter((row) => row.month === of).map((row) => [String(row.metric), row[name] ?? null] as const)
    return own.length === 0 ? undefined : Object.fromEntries(own)
  }
  const samplesOf = await readSamples(db, { identity: 'NULL', metrics: sampledMetrics }, [month, previous])
  return {
    ...compareRows(
      monthlyMetrics,
      column(month, 'value'),
      column(month, 'previous_value') ?? column(previous, 'value'),
    ),
    ...compareAllSamples(sampledMetrics, samplesOf(month, null), samplesOf(previous, null), isJudged),
  }
}

/** What some reviewers wrote. Read on a separate connection, whose views still have the texts. */
const readTexts = async (db: Database, items: ReadonlyArray<WorkItem>): Promise<ReadonlyArray<WorkItem>> => {
  const connection = await db.connect()
  try {
    await createTemporaryViews(connection)
    return await addTexts(connection, items)
  } finally {
    connection.close()
  }
}

/** The sections that the report reads from the models. */
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
const noWork: WorkList = { total: 0, listed: [] }
const noSections: ModelSections = {
  ...{ ...noGroups, ...noFigures, deleted_reviews: [], open_liabilities: [] },
  ...{ alerts: { ...noWork, backlog: noWork, counts: [] }, open_tasks: noWork },
}

const readSections = async (
  db: Database,
  months: MonthPair,
  isJudged: boolean,
  { withText = false, onSection = () => undefined }: ReportOptions,
): Promise<ModelSections> => {
  const focusMonth = createFocus(db)
  const read = <A>(name: string, body: () => Promise<A>): Promise<A> => {
    onSection(name)
    return db.withMemory(`the section ${name} of the report`, body)
  }
  const groups = (name: GroupSectionName) =>
    read(groupSections[name].title.toLowerCase(), () =>
      readGroups(db, groupSections[name], months, { focusMonth, isJudged }),
    )
  const addTextsTo = async <L extends WorkList>(list: L): Promise<L> =>
    withText ? { ...list, listed: await readTexts(db, list.listed) } : list
  const readAlertLists = async (): Promise<Alerts> => {
    const alerts = await readAlerts(db, months, defaultModelVariables)
    return addTextsTo({ ...alerts, backlog: await addTextsTo(alerts.backlog) })
  }
  return {
    figures: await read('figures', () => readFigures(db, months, isJudged)),
    trend: await read('the curves', () => readTrend(db, months.month)),
    alerts: await read('alerts', readAlertLists),
    open_tasks: await read('open tasks', async () => addTextsTo(await readOpenTasks(db))),
    regions: await groups('regions'),
    owners: await groups('owners'),
    locations: await groups('locations'),
    location_estimates: await read('ratings of locations', () => readLocationEstimates(db)),
    sources: await groups('sources'),
    providers: await groups('providers'),
    categories: await groups('categories'),
    response_times: await read('response times', () => readResponses(db, months)),
    ratings: await read('ratings', () => readRatings(db, months, focusMonth)),
    open_liabilities: await read('open liabilities', () => readLiabilities(db)),
    deleted_reviews: await groups('deleted_reviews'),
  }
}

/** Marks the changes outside chance, among all that the report shows. */
const markSections = <S extends ModelSections>(
  sections: S,
  hasRegions: boolean,
): S & { readonly judgement: Judgement } => {
  const names = listGroupSections(hasRegions).map(([name]) => name)
  const groups = names.flatMap((name) => sections[name])
  const judgement = judgeChanges([sections.figures, ...groups.map(({ figures }) => figures)])
  const mark = (group: FigureGroup): FigureGroup => ({ ...group, figures: markFigures(group.figures, judgement) })
  return {
    ...sections,
    figures: markFigures(sections.figures, judgement),
    ...Object.fromEntries(names.map((name) => [name, sections[name].map(mark)])),
    judgement,
  }
}

/** Throws a `CommandError` for a month in the future. */
const checkMonth = (month: string | undefined, current: string, timeZone: string): void => {
  if (month === undefined || month <= current) return
  throw new CommandError(
    configFailure(`--month ${month} is in the future: it is ${current} in ${timeZone}. Give an earlier month.`),
    2,
  )
}

/** Reads the report's data on the reviews, and chooses the month. */
const readReviews = async (
  db: Database,
  timeZone: string,
  options: ReportOptions,
): Promise<Omit<Report, 'format' | 'file' | 'made_at' | 'time_zone' | 'has_text' | 'health'>> => {
  const { now, regions } = options
  const made = new Date(now).toISOString()
  const hasReviews = await createModelViews(db, { asOf: new Date(now), regions })
  try {
    if (hasReviews) await db.withMemory('the section reviews of the report', () => copyFacts(db))
    const data = hasReviews ? await readRange(db) : null
    const read_at = await findReadTime(db, hasReviews)
    const month = options.month ?? chooseMonth(read_at, now, timeZone, data)
    const months = { month, previous: addMonths(month, -1) }
    const is_over = month < formatMinute(read_at ?? made, timeZone).slice(0, 7)
    const has_regions =
      regions !== undefined || (hasReviews && (await db.scalar('SELECT 1 FROM regions')) !== undefined)
    if (hasReviews)
      await db.withMemory('the section sentiments of the report', () => copyMonths(db, months, read_at ?? made))
    return {
      ...{ read_at, month, previous_month: months.previous, is_over, has_regions, data },
      unknown_regions: hasReviews && regions !== undefined ? await findUnknownRegions(db, regions) : [],
      ...markSections(hasReviews ? await readSections(db, months, is_over, options) : noSections, has_regions),
    }
  } finally {
    if (hasReviews) await dropCopies(db)
  }
}

/**
 * Reads the report's numbers from a snapshot without changing it. Rejects with `CommandError` for a month in the
 * future.
 */
export const readReport = async (snapshot: Snapshot, options: ReportOptions): Promise<Report> => {
  const { db } = snapshot
  const { now, onSection, findStateProblem } = options
  await db.lake?.freeze()
  const made_at = new Date(now).toISOString()
  const time_zone = await readReportingTimeZone(db)
  checkMonth(options.month, formatMinute(made_at, time_zone).slice(0, 7), time_zone)
  onSection?.('reviews')
  const reviews = await readReviews(db, time_zone, options)
  onSection?.('health of the data')
  return {
    ...{ format: 1, file: basename(db.path), made_at, time_zone, has_text: options.withText === true },
    ...reviews,
    health: await readDataHealth(snapshot, findStateProblem, (step) => onSection?.(`health of the data. ${step}`)),
  }
}
