import type { Database } from '../store/database'
import { cellToNumber, cellToNumberOrNull } from '../store/values'
import {
  accentColor,
  axisBounds,
  baselineStyle,
  type Figure,
  formatCount,
  formatHours,
  formatPlural,
  formatShare,
  type Html,
  hiddenAxis,
  html,
  inkColor,
  labelText,
  renderFigure,
  renderSection,
  staticSeries,
} from './html'
import { describeLine, explainLastPeriod, plotAnswerShares, type ReviewStatistics } from './reviews'

export type ResponseStatistics = {
  readonly answered: number
  readonly medianHours: number | null
  /** Nine of ten answers came within this time. */
  readonly ninthDecileHours: number | null
  readonly buckets: ReadonlyArray<{ readonly label: string; readonly count: number }>
  /** Answers that are older than their review, or whose review has no time; only `answered` counts them. */
  readonly unclear: number
}

/** Each bucket's upper bound in hours; the last bucket has none. */
const responseBuckets: ReadonlyArray<readonly [label: string, hours: number]> = [
  ['< 1 h', 1],
  ['1–4 h', 4],
  ['4–24 h', 24],
  ['1–3 d', 72],
  ['3–7 d', 168],
  ['1–4 w', 672],
  ['> 4 w', Number.POSITIVE_INFINITY],
]

/** Reads the view response_times: the time from a review to its first answer. */
export const readResponseStatistics = async (db: Database): Promise<ResponseStatistics> => {
  const counts = responseBuckets.map(([, hours], i) => {
    const bound = Number.isFinite(hours) ? `AND hours < ${hours}` : ''
    return `count(*) FILTER (hours >= ${responseBuckets[i - 1]?.[1] ?? 0} ${bound}) AS bucket_${i}`
  })
  const [row] = await db.query(`
    SELECT count(*) AS answered, median(hours) FILTER (hours >= 0) AS median,
      quantile_cont(hours, 0.9) FILTER (hours >= 0) AS decile, count(*) - count(*) FILTER (hours >= 0) AS unclear, ${counts.join(', ')}
    FROM response_times`)
  return {
    answered: cellToNumber(row?.answered),
    medianHours: cellToNumberOrNull(row?.median),
    ninthDecileHours: cellToNumberOrNull(row?.decile),
    buckets: responseBuckets.map(([label], i) => ({ label, count: cellToNumber(row?.[`bucket_${i}`]) })),
    unclear: cellToNumber(row?.unclear),
  }
}

const plotResponseTimes = ({ buckets }: ResponseStatistics): Figure => ({
  height: 200,
  option: () => ({
    grid: { left: 8, right: 8, top: 24, bottom: 4, ...axisBounds },
    xAxis: {
      type: 'category',
      data: buckets.map(({ label }) => label),
      axisTick: hiddenAxis,
      axisLine: baselineStyle,
      axisLabel: { ...labelText, fontSize: 11, interval: 0 },
    },
    yAxis: { type: 'value', show: false },
    series: {
      ...staticSeries,
      type: 'bar',
      barCategoryGap: '25%',
      itemStyle: { color: accentColor },
      data: buckets.map(({ count }) => count),
      label: { ...labelText, show: true, position: 'top', color: inkColor },
    },
  }),
})

export const renderResponses = ({
  responses,
  reviews,
}: {
  readonly responses: ResponseStatistics | null
  readonly reviews: ReviewStatistics | null
}): Html | undefined => {
  const title = 'Response times'
  if (responses === null || reviews === null) return undefined
  const { answered, medianHours, ninthDecileHours, buckets, unclear } = responses
  if (answered === 0) return undefined
  const unclearNote =
    unclear === 0
      ? ''
      : ` ${formatPlural(unclear, 'answer')} older than the review, or to one without a time, ${unclear === 1 ? 'is' : 'are'} left out.`
  return renderSection(
    title,
    html`<div class="pair">${renderFigure(
      'From a review to its first answer',
      `${buckets.map(({ label, count }) => `${label}: ${formatCount(count)}`).join('; ')}.`,
      plotResponseTimes(responses),
      {
        below: `${formatPlural(answered, 'review')} answered, ${formatShare(answered, reviews.reviews)} of all; half of them within ${formatHours(medianHours)}, nine of ten within ${formatHours(ninthDecileHours)}.${unclearNote}`,
      },
    )}${renderFigure(
      'Reviews with an answer',
      describeLine(reviews, (point) => formatShare(point.answered, point.reviews)),
      plotAnswerShares(reviews),
      {
        below: `By ${reviews.period} of mention; answers that come later still raise the last values.${explainLastPeriod(reviews, 'hollow')}`,
      },
    )}</div>`,
  )
}
