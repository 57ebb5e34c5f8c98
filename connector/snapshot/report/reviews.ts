import type { Database } from '../store/database'
import { cellToNumber, cellToNumberOrNull, cellToTextOrNull, cellToTimeOrNull } from '../store/values'
import type { ChartOption } from './charts'
import {
  accentColor,
  axisBounds,
  baselineStyle,
  type Figure,
  hiddenAxis,
  labelText,
  plotRatingDistribution,
  staticSeries,
} from './figures'
import {
  formatCount,
  formatPlural,
  formatRating,
  formatShare,
  type Html,
  html,
  renderFigure,
  renderNotice,
  renderSection,
} from './html'

export type ChartPeriod = 'day' | 'week' | 'month' | 'quarter' | 'year'

export type ReviewStatistics = {
  readonly reviews: number
  /** Those that carry a rating; 0 means none. */
  readonly rated: number
  readonly meanRating: number | null
  /** The standard deviation of the ratings; null for fewer than two. */
  readonly deviation: number | null
  readonly lastMention: string | null
  /** How many have a rating that rounds to 1, 2, 3, 4 and 5. */
  readonly ratings: ReadonlyArray<number>
  readonly period: ChartPeriod
  /** Without a gap, oldest first; `start` as 2026-11-21. */
  readonly points: ReadonlyArray<PeriodStatistics>
  /** Those without a mention time, which are in no point. */
  readonly undated: number
}
/** The reviews mentioned in a period; `meanRating` is null where none of them is rated. */
export type PeriodStatistics = {
  readonly start: string
  readonly reviews: number
  readonly answered: number
  readonly meanRating: number | null
}

/** The longest span of days that a chart shows by each period. */
const maxDaysByPeriod: ReadonlyArray<readonly [ChartPeriod, number]> = [
  ['day', 45],
  ['week', 300],
  ['month', 1_500],
  ['quarter', 4_500],
]

const choosePeriod = (days: number): ChartPeriod => maxDaysByPeriod.find(([, most]) => days <= most)?.[0] ?? 'year'

/** Asks the views reviews_current and response_times. */
export const readReviewStatistics = async (db: Database): Promise<ReviewStatistics> => {
  const [sums] = await db.query(`
    SELECT count(*) AS reviews, count(rating) AS rated, avg(rating) AS mean, stddev_samp(rating) AS deviation,
      max(mention_time) AS last, date_diff('day', min(mention_time), max(mention_time)) AS days,
      count(*) - count(mention_time) AS undated
    FROM reviews_current`)
  const ratings = await db.query(
    `SELECT least(5, greatest(1, round(rating)))::INT AS rating, count(*) AS reviews FROM reviews_current WHERE rating IS NOT NULL GROUP BY 1`,
  )
  const period = choosePeriod(cellToNumber(sums?.days))
  const points = await db.query(`
    WITH found AS (
      SELECT date_trunc('${period}', mention_time)::DATE AS start, count(*) AS reviews, avg(rating) AS mean,
        count(*) FILTER (review_id IN (SELECT review_id FROM response_times)) AS answered
      FROM reviews_current WHERE mention_time IS NOT NULL GROUP BY 1)
    SELECT strftime(start, '%Y-%m-%d') AS start, coalesce(reviews, 0) AS reviews, coalesce(answered, 0) AS answered, mean
    FROM (SELECT unnest(generate_series(min(start), max(start), INTERVAL 1 ${period}))::DATE AS start FROM found)
    LEFT JOIN found USING (start) ORDER BY start`)
  return {
    reviews: cellToNumber(sums?.reviews),
    rated: cellToNumber(sums?.rated),
    meanRating: cellToNumberOrNull(sums?.mean),
    deviation: cellToNumberOrNull(sums?.deviation),
    lastMention: cellToTimeOrNull(sums?.last),
    ratings: [1, 2, 3, 4, 5].map((rating) => cellToNumber(ratings.find((row) => row.rating === rating)?.reviews)),
    period,
    points: points.map(({ start, reviews, answered, mean }) => ({
      start: cellToTextOrNull(start) ?? '',
      reviews: cellToNumber(reviews),
      answered: cellToNumber(answered),
      meanRating: cellToNumberOrNull(mean),
    })),
    undated: cellToNumber(sums?.undated),
  }
}

const periodFormats: Readonly<Record<ChartPeriod, (start: string) => string>> = {
  day: (start) => start,
  week: (start) => start,
  month: (start) => start.slice(0, 7),
  quarter: (start) => `${start.slice(0, 4)} Q${Math.ceil(Number(start.slice(5, 7)) / 3)}`,
  year: (start) => start.slice(0, 4),
}

export const formatPeriod = (period: ChartPeriod, { start }: PeriodStatistics): string => periodFormats[period](start)

const lineChartHeight = 200
const chartGrid = { left: 8, right: 30, top: 12, bottom: 4, ...axisBounds }
const valueAxis = { type: 'value', axisLabel: labelText, splitNumber: 4, splitLine: baselineStyle } as const

/** An axis that names as many periods as it has room for, the last one always. */
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

export const plotReviewCounts = (reviews: ReviewStatistics): Figure => ({
  height: lineChartHeight,
  option: (width) => ({
    grid: chartGrid,
    xAxis: createTimeAxis(reviews, width),
    yAxis: { ...valueAxis, minInterval: 1 },
    series: {
      ...staticSeries,
      type: 'bar',
      data: reviews.points.map((point) => point.reviews),
      barCategoryGap: '25%',
      barMaxWidth: 40,
      itemStyle: { color: accentColor },
    },
  }),
})

type ValueScale = {
  readonly min: number | ((found: { readonly min: number }) => number)
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
      data: [...data],
      symbol: 'circle',
      symbolSize: Math.min(5, width / reviews.points.length / 2.5),
      showAllSymbol: true,
      lineStyle: { color: accentColor, width: 2 },
      itemStyle: { color: accentColor },
    },
  }),
})

export const plotMeanRatings = (reviews: ReviewStatistics): Figure =>
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

/** What a reader who does not see a line is told of it: where it starts and ends. */
export const describeLine = (
  { points, period }: ReviewStatistics,
  value: (point: PeriodStatistics) => string,
): string => {
  const [first, last] = [points[0], points.at(-1)]
  return first === undefined || last === undefined
    ? 'Nothing.'
    : `${value(first)} in ${formatPeriod(period, first)}, ${value(last)} in ${formatPeriod(period, last)}.`
}

export const renderReviews = (reviews: ReviewStatistics | null): Html => {
  const title = 'Reviews over time'
  if (reviews === null) return renderSection(title, renderNotice('This file does not hold the stream reviews.'))
  return renderSection(
    title,
    reviews.reviews === 0 ? renderNotice('This file holds no reviews yet.') : renderTimeline(reviews),
  )
}

export const renderRatings = (reviews: ReviewStatistics | null): Html => {
  const title = 'Ratings'
  if (reviews === null) return renderSection(title, renderNotice('This file does not hold the stream reviews.'))
  const { ratings: counts, rated, reviews: all, meanRating } = reviews
  if (rated === 0) return renderSection(title, renderNotice('No review carries a rating.'))
  const words = counts.map((count, i) => `${i + 1}: ${formatCount(count)}, ${formatShare(count, rated)}`).toReversed()
  return renderSection(
    title,
    renderFigure(undefined, `${words.join('; ')}.`, plotRatingDistribution(reviews), {
      below: `To the nearest whole rating; the mean is ${formatRating(meanRating)}. ${formatPlural(all - rated, 'review carries', 'reviews carry')} no rating.`,
    }),
  )
}

const renderTimeline = (reviews: ReviewStatistics): Html => {
  const { points, period, undated } = reviews
  const [first, last] = [points[0], points.at(-1)]
  if (first === undefined || last === undefined) return renderNotice('No review has a mention time.')
  const span = `${formatPeriod(period, first)} to ${formatPeriod(period, last)}`
  const most = points.reduce((a, b) => (b.reviews > a.reviews ? b : a))
  const without =
    undated === 0
      ? ''
      : ` ${formatPlural(undated, 'review')} without a mention time ${undated === 1 ? 'is' : 'are'} left out.`
  return html`<div class="pair">${renderFigure(
    `Reviews by ${period}`,
    `Reviews by ${period}, ${span}; most in ${formatPeriod(period, most)}: ${formatCount(most.reviews)}.`,
    plotReviewCounts(reviews),
    { below: `By the time of mention. The first and the last ${period} may be incomplete.${without}` },
  )}${
    reviews.rated === 0
      ? undefined
      : renderFigure(
          `Mean rating by ${period}`,
          describeLine(reviews, ({ meanRating }) => formatRating(meanRating)),
          plotMeanRatings(reviews),
          {
            below: 'Of the reviews that carry a rating; a gap where there is none.',
          },
        )
  }</div>`
}
