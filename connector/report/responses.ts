import { type Database, quoteLiteral } from '../snapshot/store'
import {
  axisBounds,
  baselineStyle,
  chartHeight,
  type Figure,
  hiddenAxis,
  inkColor,
  labelText,
  staticSeries,
} from './charts'
import type { FigureGroup } from './comparisons'
import { describeGroups, explainHatch, hatchedPair, readCounts, sumOf, toDistribution } from './distributions'
import { formatCount, formatShare, type Html, renderFigure, renderSection } from './html'
import type { MonthPair } from './months'
import { outcomes } from './samples'

/** Each bucket's upper bound in hours. The last one has the reviews without an answer within 7 days. */
const responseBuckets: ReadonlyArray<readonly [label: string, hours: number]> = [
  ['< 1 h', 1],
  ['1–4 h', 4],
  ['4–24 h', 24],
  ['1–3 d', 72],
  ['3–7 d', 168],
  ['later or never', Number.POSITIVE_INFINITY],
]

const bucketSql = responseBuckets
  .map(([label, hours]) =>
    Number.isFinite(hours)
      ? `WHEN first_response_time < mention_time + to_hours(${hours}) THEN ${quoteLiteral(label)}`
      : `ELSE ${quoteLiteral(label)}`,
  )
  .join(' ')

/** Reads when the reviews that have had 7 days were first answered. */
export const readResponses = async (
  db: Database,
  { month, previous }: MonthPair,
): Promise<ReadonlyArray<FigureGroup>> => {
  const read = (of: string) =>
    readCounts(
      db,
      `
      SELECT CASE ${bucketSql} END AS key, count(*) AS reviews
      FROM ${outcomes}
      WHERE had_7 AND month = ${quoteLiteral(`${of}-01`)}::DATE
      GROUP BY 1`,
    )
  return toDistribution(
    responseBuckets.map(([label]) => [label, label]),
    'reviews',
    await read(month),
    await read(previous),
  )
}

const plotResponses = (responses: ReadonlyArray<FigureGroup>): Figure => ({
  height: chartHeight,
  option: () => ({
    grid: { left: 8, right: 8, top: 24, bottom: 4, ...axisBounds },
    xAxis: {
      type: 'category',
      data: responses.map(({ name }) => name ?? ''),
      axisTick: hiddenAxis,
      axisLine: baselineStyle,
      axisLabel: { ...labelText, fontSize: 11.5, interval: 0 },
    },
    yAxis: { type: 'value', show: false },
    series: hatchedPair(responses, 'reviews').map(({ shares, color }) => ({
      ...staticSeries,
      type: 'bar' as const,
      barCategoryGap: '25%',
      itemStyle: { color },
      data: shares.map((share) => ({ value: share ?? 0, label: { formatter: formatShare(share) } })),
      label: { ...labelText, fontSize: 11.5, show: true, position: 'top' as const, color: inkColor },
    })),
  }),
})

/** How fast reviews are answered, as shares: the months have had unequal time. */
export const renderResponses = (responses: ReadonlyArray<FigureGroup>, { previous }: MonthPair): Html | undefined =>
  sumOf(responses, 'reviews', 'value') + sumOf(responses, 'reviews', 'previous') === 0
    ? undefined
    : renderSection(
        'Response times',
        renderFigure(undefined, describeGroups(responses, 'reviews', formatCount), plotResponses(responses), {
          below: `From a review to its first answer, of the reviews that have had 7 days. ${explainHatch(previous)}`,
        }),
      )
