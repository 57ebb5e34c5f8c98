import { type Database, quoteLiteral } from '../snapshot/store'
import type { FigureGroup } from './comparisons'
import { describeGroups, explainHatch, plotPair, readCounts, sumOf, toDistribution } from './distributions'
import { formatShare, type Html, renderFigure, renderSection } from './html'
import type { MonthPair } from './months'
import { outcomes } from './samples'

/** Each bucket's upper limit in hours. The last bucket has the reviews without an answer within 7 days. */
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

/** Reads when reviews at least 7 days old were first answered. */
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

/** How fast reviews are answered, as shares, because the months had different amounts of time. */
export const renderResponses = (responses: ReadonlyArray<FigureGroup>, { previous }: MonthPair): Html | undefined =>
  sumOf(responses, 'reviews', 'value') + sumOf(responses, 'reviews', 'previous') === 0
    ? undefined
    : renderSection(
        'Response times',
        renderFigure(
          undefined,
          describeGroups(responses, 'reviews'),
          plotPair(responses, 'reviews', 50, (_, share) => formatShare(share)),
          {
            below: `From review to first answer, for reviews that are at least 7 days old. ${explainHatch(previous)}`,
          },
        ),
      )
