import type { ChartOption } from '../../../charts'
import type { ChartPeriod, PeriodStatistics, ReviewStatistics } from '../../reviews'
import { accentColor, axisBounds, baselineStyle, type Figure, hiddenAxis, labelText, staticSeries } from './figure'

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
