import { type Database, quoteLiteral } from '../store/database'
import { reviewsTableName } from '../store/tables'
import { cellToNumber, cellToNumberOrNull, cellToTextOrNull, cellToTimeOrNull } from '../store/values'
import { localDateSql } from '../store/views'
import { type ChartOption, hatchColor } from './charts'
import {
  accentColor,
  axisBounds,
  barChartAxes,
  barChartHeight,
  barSeries,
  baselineStyle,
  type Figure,
  formatCount,
  formatPlural,
  formatRating,
  formatShare,
  type Html,
  hiddenAxis,
  html,
  inkColor,
  labelText,
  renderFigure,
  renderSection,
  staticSeries,
} from './html'

export type ChartPeriod = 'day' | 'week' | 'month' | 'quarter' | 'year'

export type ReviewStatistics = {
  readonly reviews: number
  /** Reviews with a rating; the service sends 0 for none. */
  readonly rated: number
  readonly meanRating: number | null
  /** The standard deviation of the ratings; null for fewer than two. */
  readonly deviation: number | null
  readonly lastMention: string | null
  /** How many ratings round to 1, 2, 3, 4 and 5. */
  readonly ratings: ReadonlyArray<number>
  readonly period: ChartPeriod
  /** Every period from the first to the last, oldest first. */
  readonly points: ReadonlyArray<PeriodStatistics>
  /** Whether the last period was not over when the reviews were read. */
  readonly lastIsIncomplete: boolean
  /** Reviews without a mention time, which are in no period. */
  readonly undated: number
}
/** The reviews mentioned in a period; `start` as 2026-11-21, `meanRating` null if none of them is rated. */
export type PeriodStatistics = {
  readonly start: string
  readonly reviews: number
  readonly answered: number
  readonly meanRating: number | null
}

/** The number of days up to which a chart uses each period. */
const maxDaysByPeriod: ReadonlyArray<readonly [ChartPeriod, number]> = [
  ['day', 45],
  ['week', 300],
  ['month', 1_500],
  ['quarter', 4_500],
]

const choosePeriod = (days: number): ChartPeriod => maxDaysByPeriod.find(([, max]) => days <= max)?.[0] ?? 'year'

/** Reads the views reviews_current and response_times. Periods are those of the time zone. */
export const readReviewStatistics = async (db: Database, timeZone: string): Promise<ReviewStatistics> => {
  const [totals] = await db.query(`
    SELECT count(*) AS reviews, count(rating) AS rated, avg(rating) AS mean, stddev_samp(rating) AS deviation,
      max(mention_time) AS last,
      date_diff('day', ${localDateSql('min(mention_time)', timeZone)}, ${localDateSql('max(mention_time)', timeZone)}) AS days,
      count(*) - count(mention_time) AS undated
    FROM reviews_current`)
  const ratings = await db.query(
    `SELECT least(5, greatest(1, round(rating)))::INT AS rating, count(*) AS reviews FROM reviews_current WHERE rating IS NOT NULL GROUP BY 1`,
  )
  const period = choosePeriod(cellToNumber(totals?.days))
  const points = await db.query(`
    WITH periods AS (
      SELECT date_trunc('${period}', ${localDateSql('mention_time', timeZone)})::DATE AS start, count(*) AS reviews, avg(rating) AS mean,
        count(*) FILTER (review_id IN (SELECT review_id FROM response_times)) AS answered
      FROM reviews_current WHERE mention_time IS NOT NULL GROUP BY 1)
    SELECT strftime(start, '%Y-%m-%d') AS start, coalesce(reviews, 0) AS reviews, coalesce(answered, 0) AS answered, mean
    FROM (SELECT unnest(generate_series(min(start), max(start), INTERVAL 1 ${period}))::DATE AS start FROM periods)
    LEFT JOIN periods USING (start) ORDER BY start`)
  const last = cellToTextOrNull(points.at(-1)?.start)
  const lastIsIncomplete =
    last !== null &&
    (await db.scalar(
      `SELECT $last::DATE + INTERVAL 1 ${period} > max(_airbyte_extracted_at) AT TIME ZONE ${quoteLiteral(timeZone)} FROM ${reviewsTableName}`,
      { last },
    )) === true
  return {
    reviews: cellToNumber(totals?.reviews),
    rated: cellToNumber(totals?.rated),
    meanRating: cellToNumberOrNull(totals?.mean),
    deviation: cellToNumberOrNull(totals?.deviation),
    lastMention: cellToTimeOrNull(totals?.last),
    ratings: [1, 2, 3, 4, 5].map((rating) => cellToNumber(ratings.find((row) => row.rating === rating)?.reviews)),
    period,
    points: points.map(({ start, reviews, answered, mean }) => ({
      start: cellToTextOrNull(start) ?? '',
      reviews: cellToNumber(reviews),
      answered: cellToNumber(answered),
      meanRating: cellToNumberOrNull(mean),
    })),
    lastIsIncomplete,
    undated: cellToNumber(totals?.undated),
  }
}

const periodFormats: Readonly<Record<ChartPeriod, (start: string) => string>> = {
  day: (start) => start,
  week: (start) => start,
  month: (start) => start.slice(0, 7),
  quarter: (start) => `${start.slice(0, 4)} Q${Math.ceil(Number(start.slice(5, 7)) / 3)}`,
  year: (start) => start.slice(0, 4),
}

const formatPeriod = (period: ChartPeriod, { start }: PeriodStatistics): string => periodFormats[period](start)

const lineChartHeight = 200
const chartGrid = { left: 8, right: 30, top: 12, bottom: 4, ...axisBounds }
const valueAxis = { type: 'value', axisLabel: labelText, splitNumber: 4, splitLine: baselineStyle } as const

/** An axis with as many labels as fit; the last period always has one. */
const createTimeAxis = ({ period, points }: ReviewStatistics, width: number): NonNullable<ChartOption['xAxis']> => {
  const step = Math.ceil(points.length / Math.max(1, Math.floor(width / 85)))
  return {
    type: 'category',
    data: points.map((point) => formatPeriod(period, point)),
    axisTick: hiddenAxis,
    axisLine: baselineStyle,
    axisLabel: { ...labelText, interval: (index: number) => (points.length - 1 - index) % step === 0 },
  }
}

const isIncomplete = ({ points, lastIsIncomplete }: ReviewStatistics, index: number): boolean =>
  lastIsIncomplete && index === points.length - 1

/** What a figure says of a last period that was not over; `mark`: how it is drawn. */
export const explainLastPeriod = ({ period, lastIsIncomplete }: ReviewStatistics, mark: string): string =>
  lastIsIncomplete ? ` The last ${period}, ${mark}, was not over when the reviews were read.` : ''

const plotReviewCounts = (reviews: ReviewStatistics): Figure => ({
  height: lineChartHeight,
  option: (width) => ({
    grid: chartGrid,
    xAxis: createTimeAxis(reviews, width),
    yAxis: { ...valueAxis, minInterval: 1 },
    series: {
      ...staticSeries,
      type: 'bar',
      data: reviews.points.map((point, i) =>
        isIncomplete(reviews, i) ? { value: point.reviews, itemStyle: { color: hatchColor } } : point.reviews,
      ),
      barCategoryGap: '25%',
      barMaxWidth: 40,
      itemStyle: { color: accentColor },
    },
  }),
})

type ValueScale = {
  readonly min: number | ((extent: { readonly min: number }) => number)
  readonly max?: number
  readonly axisLabel?: typeof labelText & { readonly formatter: string }
}

const plotLine = (reviews: ReviewStatistics, scale: ValueScale, data: ReadonlyArray<number | '-'>): Figure => ({
  height: lineChartHeight,
  option: (width) => ({
    grid: chartGrid,
    xAxis: createTimeAxis(reviews, width),
    yAxis: { ...valueAxis, ...scale },
    series: {
      ...staticSeries,
      type: 'line',
      data: data.map((value, i) =>
        isIncomplete(reviews, i)
          ? { value, itemStyle: { color: 'var(--paper)', borderColor: accentColor, borderWidth: 1.5 } }
          : value,
      ),
      symbol: 'circle',
      symbolSize: Math.min(5, width / reviews.points.length / 2.5),
      showAllSymbol: true,
      lineStyle: { color: accentColor, width: 2 },
      itemStyle: { color: accentColor },
    },
  }),
})

const plotMeanRatings = (reviews: ReviewStatistics): Figure =>
  plotLine(
    reviews,
    { min: ({ min }) => (min < 1 ? 0 : 1), max: 5 },
    reviews.points.map(({ meanRating }) => meanRating ?? '-'),
  )

export const plotAnswerShares = (reviews: ReviewStatistics): Figure =>
  plotLine(
    reviews,
    { min: 0, axisLabel: { ...labelText, formatter: '{value} %' } },
    reviews.points.map((point) => (point.reviews === 0 ? '-' : (100 * point.answered) / point.reviews)),
  )

/** A line in words, for readers who cannot see it: its first and its last value. */
export const describeLine = (
  { points, period }: ReviewStatistics,
  value: (point: PeriodStatistics) => string,
): string => {
  const [first, last] = [points[0], points.at(-1)]
  return first === undefined || last === undefined
    ? 'No data.'
    : `${value(first)} in ${formatPeriod(period, first)}, ${value(last)} in ${formatPeriod(period, last)}.`
}

const plotRatingDistribution = ({ ratings, rated }: ReviewStatistics): Figure => ({
  height: barChartHeight(ratings.length),
  option: () => ({
    ...barChartAxes(['5', '4', '3', '2', '1'], 100),
    series: {
      ...barSeries,
      itemStyle: { color: accentColor },
      data: ratings
        .toReversed()
        .map((value) => ({ value, label: { formatter: `${formatCount(value)}  ${formatShare(value, rated)}` } })),
      label: { ...labelText, show: true, position: 'right', color: inkColor },
    },
  }),
})

/** The sections of the report show nothing where the file has no data for them. */
export const renderReviews = (reviews: ReviewStatistics | null): Html | undefined =>
  reviews === null || reviews.points.length === 0
    ? undefined
    : renderSection('Reviews over time', renderTimeline(reviews))

export const renderRatings = (reviews: ReviewStatistics | null): Html | undefined => {
  if (reviews === null || reviews.rated === 0) return undefined
  const { ratings: counts, rated, reviews: all, meanRating } = reviews
  const descriptions = counts
    .map((count, i) => `${i + 1}: ${formatCount(count)}, ${formatShare(count, rated)}`)
    .toReversed()
  return renderSection(
    'Ratings',
    renderFigure(undefined, `${descriptions.join('; ')}.`, plotRatingDistribution(reviews), {
      below: `To the nearest whole rating; the mean is ${formatRating(meanRating)}. ${formatPlural(all - rated, 'review has', 'reviews have')} no rating.`,
    }),
  )
}

const renderTimeline = (reviews: ReviewStatistics): Html | undefined => {
  const { points, period, undated } = reviews
  const [first, last] = [points[0], points.at(-1)]
  if (first === undefined || last === undefined) return undefined
  const span = `${formatPeriod(period, first)} to ${formatPeriod(period, last)}`
  const peak = points.reduce((a, b) => (b.reviews > a.reviews ? b : a))
  const undatedNote =
    undated === 0
      ? ''
      : ` ${formatPlural(undated, 'review')} without a mention time ${undated === 1 ? 'is' : 'are'} left out.`
  return html`<div class="pair">${renderFigure(
    `Reviews by ${period}`,
    `Reviews by ${period}, ${span}; most in ${formatPeriod(period, peak)}: ${formatCount(peak.reviews)}.`,
    plotReviewCounts(reviews),
    {
      below: `By the time of mention. The first ${period} may be incomplete.${explainLastPeriod(reviews, 'hatched')}${undatedNote}`,
    },
  )}${
    reviews.rated === 0
      ? undefined
      : renderFigure(
          `Mean rating by ${period}`,
          describeLine(reviews, ({ meanRating }) => formatRating(meanRating)),
          plotMeanRatings(reviews),
          {
            below: `Of the reviews with a rating; a gap where there is none.${explainLastPeriod(reviews, 'hollow')}`,
          },
        )
  }</div>`
}
