import { cellToNumber, type Database } from '../snapshot/store'
import {
  accentColor,
  barChartAxes,
  barChartHeight,
  barSeries,
  type Figure,
  hatchColor,
  inkColor,
  labelText,
} from './charts'
import { compareRows, type FigureGroup } from './comparisons'
import { formatCount, formatMonth } from './html'
import type { MetricName } from './sections'

/** The groups of a distribution, each with its number of reviews in both months. */
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

/** Reads rows with a `key` and its number of `reviews`. */
export const readCounts = async (db: Database, sql: string): Promise<ReadonlyMap<string, number>> =>
  new Map((await db.query(sql)).map((row) => [String(row.key), cellToNumber(row.reviews)]))

/**
 * The month's bars, with hatched ones for the month before. `right`: the margin for labels, in pixels; `label`: the
 * text beside a bar.
 */
export const plotPair = (
  groups: ReadonlyArray<FigureGroup>,
  metric: MetricName,
  right: number,
  label: (count: number, share: number | null) => string,
): Figure => ({
  height: barChartHeight(groups.length),
  option: () => ({
    ...barChartAxes(
      groups.map(({ name }) => name ?? ''),
      right,
    ),
    series: (['value', 'previous'] as const).map((at) => {
      const total = sumOf(groups, metric, at)
      return {
        ...barSeries,
        barWidth: 12,
        itemStyle: { color: at === 'value' ? accentColor : hatchColor },
        data: groups.map(({ figures }) => {
          const count = figures[metric]?.[at] ?? 0
          const share = total === 0 ? null : count / total
          // The months differ in size, so bars show shares.
          return { value: share ?? 0, label: { formatter: label(count, share) } }
        }),
        label: { ...labelText, show: true, position: 'right' as const, color: inkColor },
      }
    }),
  }),
})

export const describeGroups = (groups: ReadonlyArray<FigureGroup>, metric: MetricName): string =>
  `${groups
    .map(({ name, figures }) => {
      const { value, previous } = figures[metric] ?? {}
      return `${name}: ${formatCount(value ?? 0)}, month before ${formatCount(previous ?? 0)}`
    })
    .join('; ')}.`

export const sumOf = (groups: ReadonlyArray<FigureGroup>, metric: MetricName, at: 'value' | 'previous'): number =>
  groups.reduce((sum, { figures }) => sum + (figures[metric]?.[at] ?? 0), 0)

export const explainHatch = (previous: string): string => `Hatched: ${formatMonth(previous)}.`
