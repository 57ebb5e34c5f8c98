import type { Database } from '../store/database'
import { cellToNumber, cellToNumberOrNull, cellToTextOrNull } from '../store/values'
import {
  formatCount,
  formatHours,
  formatRating,
  type Html,
  html,
  renderNotice,
  renderSection,
  renderTable,
  type TableColumn,
} from './html'
import type { ReviewStatistics } from './reviews'

/** How many ratings at the mean of all reviews each location is taken to have before its own count. */
export const priorRatings = 10

export type RatingEstimate = { readonly mean: number; readonly low: number; readonly high: number }

/**
 * The Bayesian mean of `count` ratings with the mean `mean`, and its 95 % interval within 0 to 5: normal ratings of a known
 * `deviation`, and `priorRatings` of them at `overall` beforehand. So few ratings stay near all the others', with a wide interval.
 */
export const estimateRating = (
  { count, mean }: { readonly count: number; readonly mean: number },
  all: { readonly overall: number; readonly deviation: number },
): RatingEstimate => {
  const weight = priorRatings + count
  const middle = (priorRatings * all.overall + count * mean) / weight
  const reach = (1.96 * all.deviation) / Math.sqrt(weight)
  return { mean: middle, low: Math.max(0, middle - reach), high: Math.min(5, middle + reach) }
}

export type LocationStatistics = {
  readonly id: string
  readonly name: string | null
  readonly reviews: number
  readonly rated: number
  readonly meanRating: number | null
  /** Null: none of its reviews carries a rating. */
  readonly estimate: RatingEstimate | null
  readonly openLiabilities: number
  readonly medianHours: number | null
}

/** Every location that a review names, by the lower end of its estimate: many good ratings stand before a few. */
export const readLocationStatistics = async (
  db: Database,
  { meanRating, deviation }: ReviewStatistics,
): Promise<ReadonlyArray<LocationStatistics>> => {
  const rows = await db.query(`
    SELECT location_id::VARCHAR AS id, location_name, reviews, rated, rating.mean, open_liabilities, median_hours_to_answer AS hours
    FROM location_scorecard
    JOIN (SELECT location_id, avg(rating) AS mean FROM reviews_current GROUP BY 1) AS rating USING (location_id)
    ORDER BY reviews DESC, id`)
  const locations = rows.map((row): LocationStatistics => {
    const mean = cellToNumberOrNull(row.mean)
    const rated = cellToNumber(row.rated)
    return {
      id: String(row.id),
      name: cellToTextOrNull(row.location_name),
      reviews: cellToNumber(row.reviews),
      rated,
      meanRating: mean,
      estimate:
        mean === null || meanRating === null
          ? null
          : estimateRating({ count: rated, mean }, { overall: meanRating, deviation: deviation ?? 0 }),
      openLiabilities: cellToNumber(row.open_liabilities),
      medianHours: cellToNumberOrNull(row.hours),
    }
  })
  return locations.toSorted((a, b) => (b.estimate?.low ?? -1) - (a.estimate?.low ?? -1))
}

/** Of more than these, the first half and the last half of them are shown. */
const maxLocations = 50

type RankedLocation = LocationStatistics & { readonly rank: number }

export const renderLocations = (locations: ReadonlyArray<LocationStatistics> | null): Html => {
  const title = 'Locations'
  if (locations === null) return renderSection(title, renderNotice('This file does not hold the stream reviews.'))
  if (locations.length === 0) return renderSection(title, renderNotice('No review names a location.'))
  const ranked = locations.map((location, i) => ({ ...location, rank: i + 1 }))
  const half = maxLocations / 2
  const parts =
    ranked.length <= maxLocations
      ? [{ name: `All ${formatCount(ranked.length)}, best first`, rows: ranked }]
      : [
          { name: `The best ${half} of ${formatCount(ranked.length)}`, rows: ranked.slice(0, half) },
          { name: `The last ${half} of ${formatCount(ranked.length)}`, rows: ranked.slice(-half) },
        ]
  const scale = chooseRatingScale(locations.flatMap(({ estimate }) => estimate ?? []))
  return renderSection(
    title,
    html`<p class="quiet">The estimate is a Bayesian mean: each location starts with ${priorRatings} ratings at the mean of all reviews, so that a few ratings
say little. Beside it its 95 % credible interval; locations are ranked by its lower end.</p>`,
    ...parts.map(({ name, rows }) => renderTable(name, locationColumns(scale), rows)),
  )
}

/** The ratings that all intervals fit between, in halves. */
type RatingScale = { readonly from: number; readonly to: number }

const chooseRatingScale = (estimates: ReadonlyArray<RatingEstimate>): RatingScale => ({
  from: Math.floor(2 * Math.min(...estimates.map(({ low }) => low), 4.5)) / 2,
  to: Math.ceil(2 * Math.max(...estimates.map(({ high }) => high), 0.5)) / 2,
})

const locationColumns = (scale: RatingScale): ReadonlyArray<TableColumn<RankedLocation>> => [
  { title: '#', kind: 'n', cell: ({ rank }) => formatCount(rank) },
  { title: 'Location', kind: 'name', cell: ({ name, id }) => name ?? `id ${id}` },
  { title: 'Reviews', kind: 'n', cell: ({ reviews }) => formatCount(reviews) },
  { title: 'Rated', kind: 'n spare', cell: ({ rated }) => formatCount(rated) },
  { title: 'Mean', kind: 'n spare', cell: ({ meanRating }) => formatRating(meanRating) },
  { title: 'Estimate', kind: 'n', cell: (row) => formatRating(row.estimate?.mean ?? null) },
  { title: '95 %', kind: 'n', cell: ({ estimate }) => (estimate === null ? '–' : formatInterval(estimate)) },
  {
    title: `${scale.from} to ${scale.to}`,
    kind: 'spare',
    cell: ({ estimate }) => (estimate === null ? '' : renderIntervalBar(estimate, scale)),
  },
  { title: 'Open liabilities', kind: 'n spare', cell: (row) => formatCount(row.openLiabilities) },
  { title: 'Median answer', kind: 'n spare', cell: (row) => formatHours(row.medianHours) },
]

const formatInterval = ({ low, high }: RatingEstimate): string => `${formatRating(low)}–${formatRating(high)}`

const renderIntervalBar = ({ mean, low, high }: RatingEstimate, { from, to }: RatingScale): Html => {
  const at = (value: number) => ((value - from) / (to - from)) * 100
  return html`<div class="range"><i style="left:${at(low).toFixed(1)}%;right:${(100 - at(high)).toFixed(1)}%"></i><b style="left:${at(mean).toFixed(1)}%"></b></div>`
}
