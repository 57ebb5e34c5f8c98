import { cellToNumber, cellToNumberOrNull, type Database, quoteLiteral } from '../snapshot/store'
import {
  accentColor,
  chartGrid,
  chartHeight,
  createTimeAxis,
  type Figure,
  hatchColor,
  labelText,
  plotLine,
  staticSeries,
  valueAxis,
} from './charts'
import { valueOf } from './comparisons'
import { formatCount, formatRating, formatShare, type Html, html, renderFigure, renderSection } from './html'
import { addMonths } from './months'
import { readSamples } from './samples'

/** A month in the curves; `month` as 2026-10. Null if nothing was rated or had enough time to be answered. */
export type TrendMonth = {
  readonly month: string
  readonly reviews: number
  readonly average_rating: number | null
  /** Of the reviews that are at least 7 days old. */
  readonly share_answered_7: number | null
}

const maxTrendMonths = 24

/** Reads the months up to this one, oldest first, including months without reviews in between. */
export const readTrend = async (db: Database, month: string): Promise<ReadonlyArray<TrendMonth>> => {
  const first = addMonths(month, 1 - maxTrendMonths)
  const rows = await db.query(`
    SELECT strftime(month, '%Y-%m') AS month, reviews, average_rating
    FROM scope_monthly
    WHERE scope = 'all'
      AND month BETWEEN ${quoteLiteral(`${first}-01`)}::DATE AND ${quoteLiteral(`${month}-01`)}::DATE
    ORDER BY month`)
  if (rows.length === 0) return []
  const byMonth = new Map(rows.map((row) => [String(row.month), row]))
  const samplesOf = await readSamples(db, { identity: 'NULL', metrics: ['share_answered_7'] }, [...byMonth.keys()])
  const months = Array.from({ length: maxTrendMonths }, (_, i) => addMonths(first, i))
  return months
    .filter((name) => name >= String(rows[0]?.month) && name <= String(rows.at(-1)?.month))
    .map((name) => {
      const row = byMonth.get(name)
      const answers = samplesOf(name, null).share_answered_7
      return {
        month: name,
        reviews: cellToNumber(row?.reviews ?? 0),
        average_rating: cellToNumberOrNull(row?.average_rating),
        share_answered_7: answers === undefined ? null : valueOf(answers),
      }
    })
}

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
    'Answered within 7 days',
    describeTrend(trend, (point) => formatShare(point.share_answered_7)),
    plotLine(
      listMonths(trend),
      { min: 0, axisLabel: { ...labelText, formatter: '{value} %' } },
      trend.map((point) => (point.share_answered_7 === null ? '-' : 100 * point.share_answered_7)),
    ),
    { below: 'Of the reviews that are at least 7 days old.' },
  )
  return renderSection('Over time', html`<div class="three">${[counts, ratings, answers]}</div>`)
}
