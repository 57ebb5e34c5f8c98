import { defined } from '../../cdk'
import type { ChartOption } from './charts'
import { formatCount, formatShare } from './html'
import { type LiabilityStatistics, severities } from './liabilities'
import type { ReviewStatistics } from './reviews'
import type { CategorySentiment, SentimentStatistics } from './sentiments'

/** A chart at the width it will have on the page, so that its text keeps its size. */
export type Figure = { readonly height: number; readonly option: (width: number) => ChartOption }

/** Colours are names of the page's style, so that one drawing serves light, dark and paper. */
export const inkColor = 'var(--ink)'
export const accentColor = 'var(--accent)'
export const labelText = { fontFamily: 'inherit', fontSize: 12, color: 'var(--muted)' }

export const hiddenAxis = { show: false } as const
export const baselineStyle = { lineStyle: { color: 'var(--line)' } } as const
export const staticSeries = { silent: true, emphasis: { disabled: true } } as const
/** The room that the labels of an axis take is taken from the chart, not from the page. */
export const axisBounds = { outerBoundsMode: 'same', outerBoundsContain: 'axisLabel' } as const

const maxNameLength = 28
const barChartHeight = (rows: number): number => rows * 32 + 8

/** Fonts are measured without being seen; a wide one takes this much more for each character. */
const nameMargin = 0.9

/** Bars from left to right, each behind its name. */
const barChartAxes = (names: ReadonlyArray<string>, right: number, most?: number) =>
  ({
    grid: {
      left: 4 + Math.round(nameMargin * Math.max(...names.map(({ length }) => length))),
      right,
      top: 4,
      bottom: 4,
      ...axisBounds,
    },
    xAxis: { type: 'value', show: false, ...defined({ max: most }) },
    yAxis: {
      type: 'category',
      inverse: true,
      data: [...names],
      axisTick: hiddenAxis,
      axisLine: hiddenAxis,
      axisLabel: { ...labelText, color: inkColor, interval: 0 },
    },
  }) satisfies ChartOption

const barSeries = { ...staticSeries, type: 'bar', barWidth: 20 } as const

const shortCategoryName = (category: string | null): string => {
  const name = category ?? 'No category'
  return name.length > maxNameLength ? `${name.slice(0, maxNameLength - 1)}…` : name
}

export const plotRatingDistribution = ({ ratings, rated }: ReviewStatistics): Figure => ({
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

export const tonalities = ['negative', 'neutral', 'positive'] as const

const countSentiments = ({ negative, neutral, positive }: CategorySentiment): number => negative + neutral + positive

/** The share of each tonality in its category. */
export const plotSentiments = ({ categories }: SentimentStatistics): Figure => ({
  height: barChartHeight(categories.length),
  option: (width) => ({
    ...barChartAxes(
      categories.map((found) => `${shortCategoryName(found.category)}  ${formatCount(countSentiments(found))}`),
      8,
      1,
    ),
    series: tonalities.map((tonality) => ({
      ...barSeries,
      stack: 'all',
      itemStyle: { color: `var(--${tonality})` },
      data: categories.map((found) => {
        const part = found[tonality] / countSentiments(found)
        return {
          value: part,
          label: { show: part * width > 70, formatter: formatShare(found[tonality], countSentiments(found)) },
        }
      }),
      label: { ...labelText, color: `var(--on-${tonality})` },
    })),
  }),
})

/** Open liabilities by category, each bar cut by severity. */
export const plotLiabilities = ({ categories }: LiabilityStatistics): Figure => ({
  height: barChartHeight(categories.length),
  option: (width) => {
    const most = Math.max(...categories.map(({ counts }) => severities.reduce((sum, name) => sum + counts[name], 0)))
    return {
      ...barChartAxes(
        categories.map(({ category }) => shortCategoryName(category)),
        8,
        most,
      ),
      series: severities.map((severity) => ({
        ...barSeries,
        stack: 'all',
        itemStyle: { color: `var(--${severity})` },
        data: categories.map(({ counts }) => ({
          value: counts[severity],
          label: { show: (counts[severity] / most) * width > 40 },
        })),
        label: { ...labelText, color: `var(--on-${severity})` },
      })),
    }
  },
})
