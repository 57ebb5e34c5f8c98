import type { ChartOption } from '../../charts'
import { type Liabilities, type Severity, severities } from '../liabilities'
import type { Responses } from '../responses'
import type { Period, Point, Reviews } from '../reviews'
import type { CategorySentiment, Sentiments } from '../sentiments'
import { share, whole } from './format'

/** A chart at the width it will have on the page, so that its text keeps its size. */
export type Figure = { readonly height: number; readonly option: (width: number) => ChartOption }

const ink = 'var(--ink)'
const muted = 'var(--muted)'
const text = { fontFamily: 'inherit', fontSize: 12, color: muted }
const still = { silent: true, emphasis: { disabled: true } } as const
const noLine = { show: false } as const
const valueAxis = {
  type: 'value',
  axisLabel: text,
  splitNumber: 4,
  splitLine: { lineStyle: { color: 'var(--line)' } },
} as const
const names = (data: ReadonlyArray<string>, width = 150): NonNullable<ChartOption['yAxis']> => ({
  type: 'category',
  inverse: true,
  data: [...data],
  axisTick: noLine,
  axisLine: noLine,
  axisLabel: { ...text, color: ink, width, overflow: 'truncate', interval: 0 },
})

const labels: Readonly<Record<Period, (start: string) => string>> = {
  day: (start) => start,
  week: (start) => start,
  month: (start) => start.slice(0, 7),
  quarter: (start) => `${start.slice(0, 4)} Q${Math.ceil(Number(start.slice(5, 7)) / 3)}`,
  year: (start) => start.slice(0, 4),
}

/** The name of a period that starts on a day. */
export const periodName = (period: Period, { start }: Point): string => labels[period](start)

/** An axis that names as many periods as it has room for, the last one always. */
const timeAxis = ({ period, points }: Reviews, width: number): NonNullable<ChartOption['xAxis']> => {
  const step = Math.ceil(points.length / Math.max(1, Math.floor(width / 85)))
  return {
    type: 'category',
    data: points.map((point) => periodName(period, point)),
    axisTick: noLine,
    axisLine: { lineStyle: { color: 'var(--line)' } },
    axisLabel: { ...text, interval: (index: number) => (points.length - 1 - index) % step === 0 },
  }
}

const timeGrid = {
  left: 8,
  right: 30,
  top: 12,
  bottom: 4,
  outerBoundsMode: 'same',
  outerBoundsContain: 'axisLabel',
} as const

export const reviewsOverTime = (reviews: Reviews): Figure => ({
  height: 200,
  option: (width) => ({
    grid: timeGrid,
    xAxis: timeAxis(reviews, width),
    yAxis: { ...valueAxis, minInterval: 1 },
    series: {
      ...still,
      type: 'bar',
      data: reviews.points.map((point) => point.reviews),
      barCategoryGap: '25%',
      barMaxWidth: 40,
      itemStyle: { color: 'var(--accent)' },
    },
  }),
})

type Scale = {
  readonly min: number | ((found: { readonly min: number }) => number)
  readonly max?: number
  readonly axisLabel?: typeof text & { readonly formatter: string }
}

const line = (reviews: Reviews, scale: Scale, data: ReadonlyArray<number | '-'>): Figure => ({
  height: 200,
  option: (width) => ({
    grid: timeGrid,
    xAxis: timeAxis(reviews, width),
    yAxis: { ...valueAxis, ...scale },
    series: {
      ...still,
      type: 'line',
      data: [...data],
      symbol: 'circle',
      symbolSize: 5,
      lineStyle: { color: 'var(--accent)', width: 2 },
      itemStyle: { color: 'var(--accent)' },
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

const rowGrid = (right: number) =>
  ({ left: 12, right, top: 4, bottom: 4, outerBoundsMode: 'same', outerBoundsContain: 'axisLabel' }) as const
const rowsHeight = (rows: number): number => rows * 32 + 8

export const ratingDistribution = ({ ratings, rated }: Reviews): Figure => ({
  height: rowsHeight(5),
  option: () => ({
    grid: rowGrid(100),
    xAxis: { type: 'value', show: false },
    yAxis: names(['5', '4', '3', '2', '1']),
    series: {
      ...still,
      type: 'bar',
      barWidth: 20,
      itemStyle: { color: 'var(--accent)' },
      data: ratings.toReversed().map((value) => ({
        value,
        label: { formatter: `${whole(value)}  ${share(value, rated)}` },
      })),
      label: { ...text, show: true, position: 'right', color: ink },
    },
  }),
})

export const tonalities = ['negative', 'neutral', 'positive'] as const

/** The share of each tonality in its category. */
export const sentimentByCategory = ({ categories }: Sentiments): Figure => ({
  height: rowsHeight(categories.length),
  option: (width) => ({
    grid: rowGrid(8),
    xAxis: { type: 'value', show: false, max: 1 },
    yAxis: names(
      categories.map((found) => `${found.category ?? 'No category'}  ${whole(totalOf(found))}`),
      width / 3,
    ),
    series: tonalities.map((tonality) => ({
      ...still,
      type: 'bar',
      stack: 'all',
      barWidth: 20,
      itemStyle: { color: `var(--${tonality})` },
      data: categories.map((found) => segment(found[tonality], totalOf(found), width)),
      label: { ...text, color: `var(--on-${tonality})` },
    })),
  }),
})

const totalOf = ({ negative, neutral, positive }: CategorySentiment): number => negative + neutral + positive

const segment = (part: number, total: number, width: number) => ({
  value: part / total,
  label: { show: (part / total) * width > 70, formatter: share(part, total) },
})

/** Open liabilities by category, each bar cut by severity. */
export const liabilitiesByCategory = ({ categories }: Liabilities): Figure => ({
  height: rowsHeight(categories.length),
  option: (width) => {
    const most = Math.max(...categories.map(({ counts }) => severities.reduce((sum, name) => sum + counts[name], 0)))
    const room = (width * 0.55) / most
    const of = (severity: Severity) => categories.map(({ counts }) => counts[severity])
    return {
      grid: rowGrid(8),
      xAxis: { type: 'value', show: false, max: most },
      yAxis: names(
        categories.map(({ category }) => category ?? 'No category'),
        width / 2.4,
      ),
      series: severities.map((severity) => ({
        ...still,
        type: 'bar',
        stack: 'all',
        barWidth: 20,
        itemStyle: { color: `var(--${severity})` },
        data: of(severity).map((value) => ({ value, label: { show: value * room > 18 } })),
        label: { ...text, color: `var(--on-${severity})` },
      })),
    }
  },
})

export const responseTimes = ({ buckets }: Responses): Figure => ({
  height: 200,
  option: () => ({
    grid: { left: 8, right: 8, top: 24, bottom: 4, outerBoundsMode: 'same', outerBoundsContain: 'axisLabel' },
    xAxis: {
      type: 'category',
      data: buckets.map(({ label }) => label),
      axisTick: noLine,
      axisLine: { lineStyle: { color: 'var(--line)' } },
      axisLabel: { ...text, fontSize: 11, interval: 0 },
    },
    yAxis: { type: 'value', show: false },
    series: {
      ...still,
      type: 'bar',
      barCategoryGap: '25%',
      itemStyle: { color: 'var(--accent)' },
      data: buckets.map(({ count }) => count),
      label: { ...text, show: true, position: 'top', color: ink },
    },
  }),
})

/** What a reader who does not see a line is told of it: where it starts and ends. */
export const lineWords = ({ points, period }: Reviews, value: (point: Point) => string): string => {
  const [first, last] = [points[0], points.at(-1)]
  return first === undefined || last === undefined
    ? 'Nothing.'
    : `${value(first)} in ${periodName(period, first)}, ${value(last)} in ${periodName(period, last)}.`
}
