import type { ChartOption } from '../../../charts'
import type { Period, Point, Reviews } from '../../reviews'
import { accent, baseline, bounds, type Figure, none, still, text } from './figure'

const names: Readonly<Record<Period, (start: string) => string>> = {
  day: (start) => start,
  week: (start) => start,
  month: (start) => start.slice(0, 7),
  quarter: (start) => `${start.slice(0, 4)} Q${Math.ceil(Number(start.slice(5, 7)) / 3)}`,
  year: (start) => start.slice(0, 4),
}

export const periodName = (period: Period, { start }: Point): string => names[period](start)

const height = 200
const grid = { left: 8, right: 30, top: 12, bottom: 4, ...bounds }
const valueAxis = { type: 'value', axisLabel: text, splitNumber: 4, splitLine: baseline } as const

/** An axis that names as many periods as it has room for, the last one always. */
const timeAxis = ({ period, points }: Reviews, width: number): NonNullable<ChartOption['xAxis']> => {
  const step = Math.ceil(points.length / Math.max(1, Math.floor(width / 85)))
  return {
    type: 'category',
    data: points.map((point) => periodName(period, point)),
    axisTick: none,
    axisLine: baseline,
    axisLabel: { ...text, interval: (index: number) => (points.length - 1 - index) % step === 0 },
  }
}

export const reviewsOverTime = (reviews: Reviews): Figure => ({
  height,
  option: (width) => ({
    grid,
    xAxis: timeAxis(reviews, width),
    yAxis: { ...valueAxis, minInterval: 1 },
    series: {
      ...still,
      type: 'bar',
      data: reviews.points.map((point) => point.reviews),
      barCategoryGap: '25%',
      barMaxWidth: 40,
      itemStyle: { color: accent },
    },
  }),
})

type Scale = {
  readonly min: number | ((found: { readonly min: number }) => number)
  readonly max?: number
  readonly axisLabel?: typeof text & { readonly formatter: string }
}

const line = (reviews: Reviews, scale: Scale, data: ReadonlyArray<number | '-'>): Figure => ({
  height,
  option: (width) => ({
    grid,
    xAxis: timeAxis(reviews, width),
    yAxis: { ...valueAxis, ...scale },
    series: {
      ...still,
      type: 'line',
      data: [...data],
      symbol: 'circle',
      symbolSize: Math.min(5, width / reviews.points.length / 2.5),
      showAllSymbol: true,
      lineStyle: { color: accent, width: 2 },
      itemStyle: { color: accent },
    },
  }),
})

export const ratingOverTime = (reviews: Reviews): Figure =>
  line(
    reviews,
    { min: ({ min }) => (min < 1 ? 0 : 1), max: 5 },
    reviews.points.map(({ meanRating }) => meanRating ?? '-'),
  )

export const answeredOverTime = (reviews: Reviews): Figure =>
  line(
    reviews,
    { min: 0, axisLabel: { ...text, formatter: '{value} %' } },
    reviews.points.map((point) => (point.reviews === 0 ? '-' : (100 * point.answered) / point.reviews)),
  )

/** What a reader who does not see a line is told of it: where it starts and ends. */
export const lineWords = ({ points, period }: Reviews, value: (point: Point) => string): string => {
  const [first, last] = [points[0], points.at(-1)]
  return first === undefined || last === undefined
    ? 'Nothing.'
    : `${value(first)} in ${periodName(period, first)}, ${value(last)} in ${periodName(period, last)}.`
}
