import type { ChartOption } from '../../../charts'
import { type Liabilities, severities } from '../../liabilities'
import type { Reviews } from '../../reviews'
import type { CategorySentiment, Sentiments } from '../../sentiments'
import { share, whole } from '../format'
import { accent, bounds, type Figure, ink, none, still, text } from './figure'

const longest = 28
const height = (rows: number): number => rows * 32 + 8

/** Fonts are measured without being seen; a wide one takes this much more for each character. */
const reserve = 0.9

/** Bars from left to right, each behind its name. */
const inRows = (names: ReadonlyArray<string>, right: number, most?: number) =>
  ({
    grid: {
      left: 4 + Math.round(reserve * Math.max(...names.map(({ length }) => length))),
      right,
      top: 4,
      bottom: 4,
      ...bounds,
    },
    xAxis: { type: 'value', show: false, ...(most === undefined ? {} : { max: most }) },
    yAxis: {
      type: 'category',
      inverse: true,
      data: [...names],
      axisTick: none,
      axisLine: none,
      axisLabel: { ...text, color: ink, interval: 0 },
    },
  }) satisfies ChartOption

const bar = { ...still, type: 'bar', barWidth: 20 } as const

const nameOf = (category: string | null): string => {
  const name = category ?? 'No category'
  return name.length > longest ? `${name.slice(0, longest - 1)}…` : name
}

export const ratingDistribution = ({ ratings, rated }: Reviews): Figure => ({
  height: height(ratings.length),
  option: () => ({
    ...inRows(['5', '4', '3', '2', '1'], 100),
    series: {
      ...bar,
      itemStyle: { color: accent },
      data: ratings
        .toReversed()
        .map((value) => ({ value, label: { formatter: `${whole(value)}  ${share(value, rated)}` } })),
      label: { ...text, show: true, position: 'right', color: ink },
    },
  }),
})

export const tonalities = ['negative', 'neutral', 'positive'] as const

const totalOf = ({ negative, neutral, positive }: CategorySentiment): number => negative + neutral + positive

/** The share of each tonality in its category. */
export const sentimentByCategory = ({ categories }: Sentiments): Figure => ({
  height: height(categories.length),
  option: (width) => ({
    ...inRows(
      categories.map((found) => `${nameOf(found.category)}  ${whole(totalOf(found))}`),
      8,
      1,
    ),
    series: tonalities.map((tonality) => ({
      ...bar,
      stack: 'all',
      itemStyle: { color: `var(--${tonality})` },
      data: categories.map((found) => {
        const part = found[tonality] / totalOf(found)
        return { value: part, label: { show: part * width > 70, formatter: share(found[tonality], totalOf(found)) } }
      }),
      label: { ...text, color: `var(--on-${tonality})` },
    })),
  }),
})

/** Open liabilities by category, each bar cut by severity. */
export const liabilitiesByCategory = ({ categories }: Liabilities): Figure => ({
  height: height(categories.length),
  option: (width) => {
    const most = Math.max(...categories.map(({ counts }) => severities.reduce((sum, name) => sum + counts[name], 0)))
    return {
      ...inRows(
        categories.map(({ category }) => nameOf(category)),
        8,
        most,
      ),
      series: severities.map((severity) => ({
        ...bar,
        stack: 'all',
        itemStyle: { color: `var(--${severity})` },
        data: categories.map(({ counts }) => ({
          value: counts[severity],
          label: { show: (counts[severity] / most) * width > 40 },
        })),
        label: { ...text, color: `var(--on-${severity})` },
      })),
    }
  },
})
