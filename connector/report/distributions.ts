import { cellToNumber, type Database } from '../snapshot/store'
import { accentColor, hatchColor } from './charts'
import { compareRows, type FigureGroup } from './comparisons'
import { formatMonth } from './html'
import type { MetricName } from './sections'

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

/** Reads rows of a `key` and how many `reviews` it has. */
export const readCounts = async (db: Database, sql: string): Promise<ReadonlyMap<string, number>> =>
  new Map((await db.query(sql)).map((row) => [String(row.key), cellToNumber(row.reviews)]))

/** The bars of the month, and hatched ones of the month before. */
export const hatchedPair = (groups: ReadonlyArray<FigureGroup>, metric: MetricName) =>
  (['value', 'previous'] as const).map((at) => {
    const total = sumOf(groups, metric, at)
    return {
      at,
      data: groups.map(({ figures }) => figures[metric]?.[at] ?? 0),
      /** Of each bar, the share of the month's reviews; null without any. */
      shares: groups.map(({ figures }) => (total === 0 ? null : (figures[metric]?.[at] ?? 0) / total)),
      color: at === 'value' ? accentColor : hatchColor,
    }
  })

export const describeGroups = (
  groups: ReadonlyArray<FigureGroup>,
  metric: MetricName,
  format: (count: number) => string,
): string =>
  `${groups
    .map(({ name, figures }) => {
      const { value, previous } = figures[metric] ?? {}
      return `${name}: ${format(value ?? 0)}, month before ${format(previous ?? 0)}`
    })
    .join('; ')}.`

export const sumOf = (groups: ReadonlyArray<FigureGroup>, metric: MetricName, at: 'value' | 'previous'): number =>
  groups.reduce((sum, { figures }) => sum + (figures[metric]?.[at] ?? 0), 0)

export const explainHatch = (previous: string): string => `Hatched: ${formatMonth(previous)}.`
