import type { Database } from '../snapshot/store'
import { cellToNumber, cellToTextOrNull } from '../snapshot/store'
import {
  accentColor,
  axisBounds,
  barChartAxes,
  barChartHeight,
  barSeries,
  baselineStyle,
  chartGrid,
  chartHeight,
  createTimeAxis,
  type Figure,
  hatchColor,
  hiddenAxis,
  inkColor,
  labelText,
  plotLine,
  staticSeries,
  valueAxis,
} from './charts'
import { compareRows, type FigureGroup, type FocusMonth, type MetricName, type MonthPair } from './comparisons'
import {
  formatCount,
  formatMonth,
  formatPlural,
  formatRating,
  formatShare,
  type Html,
  html,
  renderFigure,
  renderLegend,
  renderSection,
  shortenName,
} from './html'

/** A month in the curves; `month` as 2026-10, null where nothing was rated or mentioned. */
export type TrendMonth = {
  readonly month: string
  readonly reviews: number
  readonly average_rating: number | null
  readonly share_answered: number | null
}

const maxTrendMonths = 24

/** The groups of a distribution, each with how many reviews it has in both months. */
export const toDistribution = (
  keys: ReadonlyArray<readonly [key: string, name: string]>,
  metric: MetricName,
  value: ReadonlyMap<string, number>,
  previous: ReadonlyMap<string, number>,
): ReadonlyArray<FigureGroup> =>
  keys.map(([key, name]) => ({
    key,
    name,
    figures: compareRows([metric], { [metric]: value.get(key) ?? 0 }, { [metric]: previous.get(key) ?? 0 }),
  }))

export const readCounts = async (db: Database, sql: string): Promise<ReadonlyMap<string, number>> =>
  new Map((await db.query(sql)).map((row) => [String(row.key), cellToNumber(row.reviews)]))

/** Each bucket's upper bound in hours; the last bucket has none. An answer that is older than its review is in none. */
const responseBuckets: ReadonlyArray<readonly [label: string, hours: number]> = [
  ['< 1 h', 1],
  ['1–4 h', 4],
  ['4–24 h', 24],
  ['1–3 d', 72],
  ['3–7 d', 168],
  ['1–4 w', 672],
  ['> 4 w', Number.POSITIVE_INFINITY],
]

const responsesSql = `SELECT CASE ${responseBuckets
  .map(([label, hours]) => (Number.isFinite(hours) ? `WHEN hours < ${hours} THEN '${label}'` : `ELSE '${label}'`))
  .join(' ')} END AS key, count(*) AS reviews FROM response_times WHERE hours >= 0 GROUP BY 1`

/** Reads response_times: the time from a review to its first answer. */
export const readResponses = async (
  db: Database,
  { month, previous }: MonthPair,
  focusMonth: FocusMonth,
): Promise<ReadonlyArray<FigureGroup>> =>
  toDistribution(
    responseBuckets.map(([label]) => [label, label]),
    'answered',
    await focusMonth(month, () => readCounts(db, responsesSql)),
    await focusMonth(previous, () => readCounts(db, responsesSql)),
  )

const listMonths = (trend: ReadonlyArray<TrendMonth>): ReadonlyArray<string> => trend.map(({ month }) => month)

const plotReviewCounts = (trend: ReadonlyArray<TrendMonth>, isOver: boolean): Figure => ({
  height: chartHeight,
  option: (width) => ({
    grid: chartGrid,
    xAxis: createTimeAxis(listMonths(trend), width),
    yAxis: { ...valueAxis, minInterval: 1 },
    series: {
      ...staticSeries,
      type: 'bar',
      data: trend.map(({ reviews }, i) =>
        !isOver && i === trend.length - 1 ? { value: reviews, itemStyle: { color: hatchColor } } : reviews,
      ),
      barCategoryGap: '25%',
      barMaxWidth: 40,
      itemStyle: { color: accentColor },
    },
  }),
})

/** A curve in words, for readers who cannot see it. */
const describeTrend = (trend: ReadonlyArray<TrendMonth>, value: (point: TrendMonth) => string): string =>
  `${trend.map((point) => `${point.month}: ${value(point)}`).join('; ')}.`

/** Keeps the last months up to that of the report. */
export const limitTrend = (trend: ReadonlyArray<TrendMonth>, month: string): ReadonlyArray<TrendMonth> =>
  trend.filter((point) => point.month <= month).slice(-maxTrendMonths)

export const renderTrend = (trend: ReadonlyArray<TrendMonth>, isOver: boolean): Html | undefined => {
  if (trend.length < 2) return undefined
  const counts = renderFigure(
    'Reviews by month',
    describeTrend(trend, ({ reviews }) => formatCount(reviews)),
    plotReviewCounts(trend, isOver),
    isOver ? {} : { below: 'The last month, hatched, was not over when the reviews were read.' },
  )
  const ratings = renderFigure(
    'Average rating by month',
    describeTrend(trend, (point) => formatRating(point.average_rating)),
    plotLine(
      listMonths(trend),
      { min: ({ min }) => (min < 1 ? 0 : 1), max: 5 },
      trend.map((point) => point.average_rating ?? '-'),
    ),
  )
  const answers = renderFigure(
    'Reviews with an answer',
    describeTrend(trend, (point) => formatShare(point.share_answered)),
    plotLine(
      listMonths(trend),
      { min: 0, axisLabel: { ...labelText, formatter: '{value} %' } },
      trend.map((point) => (point.share_answered === null ? '-' : 100 * point.share_answered)),
    ),
    { below: 'Answers that come later still raise the last values.' },
  )
  return renderSection('Over time', html`<div class="three">${[counts, ratings, answers]}</div>`)
}

/** The bars of the month, and hatched ones of the month before. */
export const hatchedPair = (groups: ReadonlyArray<FigureGroup>, metric: MetricName) =>
  (['value', 'previous'] as const).map((at) => ({
    at,
    data: groups.map(({ figures }) => figures[metric]?.[at] ?? 0),
    color: at === 'value' ? accentColor : hatchColor,
  }))

export const describeGroups = (groups: ReadonlyArray<FigureGroup>, metric: MetricName): string =>
  `${groups.map(({ name, figures }) => `${name}: ${formatCount(figures[metric]?.value ?? 0)}, month before ${formatCount(figures[metric]?.previous ?? 0)}`).join('; ')}.`

export const sumOf = (groups: ReadonlyArray<FigureGroup>, metric: MetricName, at: 'value' | 'previous'): number =>
  groups.reduce((sum, { figures }) => sum + (figures[metric]?.[at] ?? 0), 0)

export const explainHatch = (previous: string): string => `Hatched: ${formatMonth(previous)}.`

const plotResponses = (responses: ReadonlyArray<FigureGroup>): Figure => ({
  height: chartHeight,
  option: () => ({
    grid: { left: 8, right: 8, top: 24, bottom: 4, ...axisBounds },
    xAxis: {
      type: 'category',
      data: responses.map(({ name }) => name ?? ''),
      axisTick: hiddenAxis,
      axisLine: baselineStyle,
      axisLabel: { ...labelText, fontSize: 11.5, interval: 0 },
    },
    yAxis: { type: 'value', show: false },
    series: hatchedPair(responses, 'answered').map(({ data, color }) => ({
      ...staticSeries,
      type: 'bar' as const,
      barCategoryGap: '25%',
      itemStyle: { color },
      data,
      label: { ...labelText, fontSize: 11.5, show: true, position: 'top' as const, color: inkColor },
    })),
  }),
})

export const renderResponses = (responses: ReadonlyArray<FigureGroup>, { previous }: MonthPair): Html | undefined =>
  sumOf(responses, 'answered', 'value') + sumOf(responses, 'answered', 'previous') === 0
    ? undefined
    : renderSection(
        'Response times',
        renderFigure(undefined, describeGroups(responses, 'answered'), plotResponses(responses), {
          below: `From a review to its first answer. ${explainHatch(previous)}`,
        }),
      )

/** The highest first. `other`: a severity that the service does not document. */
const severities = ['high', 'medium', 'low', 'other'] as const
type Severity = (typeof severities)[number]

/** Open liabilities of all months by category, that with the most first; null: they have none. */
export type LiabilityCounts = ReadonlyArray<{ readonly category: string | null } & Readonly<Record<Severity, number>>>

const severitySql = `CASE
  WHEN severity_level = 3 OR lower(severity) = 'high' THEN 'high'
  WHEN severity_level = 2 OR lower(severity) = 'medium' THEN 'medium'
  WHEN severity_level = 1 OR lower(severity) = 'low' THEN 'low' ELSE 'other' END`

/** Reads the view open_liabilities, without the justifications, since these quote patients. */
export const readLiabilities = async (db: Database): Promise<LiabilityCounts> =>
  (
    await db.query(`
      SELECT nullif(trim(category), '') AS category, ${severities.map((name) => `count(*) FILTER (grade = '${name}') AS ${name}`).join(', ')}
      FROM (SELECT category, ${severitySql} AS grade FROM open_liabilities) GROUP BY 1 ORDER BY count(*) DESC, high DESC, category`)
  ).map((row) => ({
    category: cellToTextOrNull(row.category),
    high: cellToNumber(row.high),
    medium: cellToNumber(row.medium),
    low: cellToNumber(row.low),
    other: cellToNumber(row.other),
  }))

const maxCategories = 8

/** Open liabilities by category, each bar divided by severity. */
const plotLiabilities = (categories: LiabilityCounts): Figure => ({
  height: barChartHeight(categories.length),
  option: (width) => {
    const max = Math.max(...categories.map((counts) => severities.reduce((sum, name) => sum + counts[name], 0)))
    return {
      ...barChartAxes(
        categories.map(({ category }) => shortenName(category ?? 'No category')),
        8,
        max,
      ),
      series: severities.map((severity) => ({
        ...barSeries,
        stack: 'all',
        itemStyle: { color: `var(--${severity})` },
        data: categories.map((counts) => ({
          value: counts[severity],
          label: { show: (counts[severity] / max) * width > 40 },
        })),
        label: { ...labelText, color: `var(--on-${severity})` },
      })),
    }
  },
})

export const renderLiabilities = (all: LiabilityCounts): Html | undefined => {
  if (all.length === 0) return undefined
  const counted = (name: Severity) => all.reduce((sum, counts) => sum + counts[name], 0)
  const present = severities.filter((name) => counted(name) > 0)
  const describe = (counts: Readonly<Record<Severity, number>>) =>
    present
      .filter((name) => counts[name] > 0)
      .map((name) => `${formatCount(counts[name])} ${name}`)
      .join(', ')
  const shown = all.slice(0, maxCategories)
  return renderFigure(
    'Open liabilities by category and severity',
    shown.map((counts) => `${counts.category ?? 'No category'}: ${describe(counts)}`).join('; '),
    plotLiabilities(shown),
    {
      above: renderLegend(present),
      below: `${present.map((name) => `${formatCount(counted(name))} ${name}`).join(', ')}, of all months, in reviews whose task is not completed or that have none.${
        all.length > shown.length
          ? ` ${formatPlural(all.length - shown.length, 'smaller category', 'smaller categories')} left out.`
          : ''
      }`,
    },
  )
}
