import type { Database } from '../store/database'
import { cellToNumber, cellToNumberOrNull, cellToTextOrNull } from '../store/values'
import { priorRatings } from '../store/views'
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

/** A Bayesian mean of ratings and its 95 % interval, as the view location_scorecard gives them. */
export type RatingEstimate = { readonly mean: number; readonly low: number; readonly high: number }

export type LocationStatistics = {
  readonly id: string
  readonly name: string | null
  readonly reviews: number
  readonly rated: number
  readonly meanRating: number | null
  /** Null: none of its reviews has a rating. */
  readonly estimate: RatingEstimate | null
  readonly openLiabilities: number
  readonly medianHours: number | null
}

/** Every location of the reviews, ordered by the lower end of its estimate, so that many good ratings rank before a few. */
export const readLocationStatistics = async (db: Database): Promise<ReadonlyArray<LocationStatistics>> =>
  (
    await db.query(`
    SELECT location_id::VARCHAR AS id, location_name, reviews, rated, rating.mean, rating_estimate, rating_low, rating_high,
      open_liabilities, median_hours_to_answer AS hours
    FROM location_scorecard
    JOIN (SELECT location_id, avg(rating) AS mean FROM reviews_current GROUP BY 1) AS rating USING (location_id)
    ORDER BY rating_low DESC NULLS LAST, reviews DESC, location_id`)
  ).map((row) => ({
    id: String(row.id),
    name: cellToTextOrNull(row.location_name),
    reviews: cellToNumber(row.reviews),
    rated: cellToNumber(row.rated),
    meanRating: cellToNumberOrNull(row.mean),
    estimate:
      row.rating_estimate === null
        ? null
        : {
            mean: cellToNumber(row.rating_estimate),
            low: cellToNumber(row.rating_low),
            high: cellToNumber(row.rating_high),
          },
    openLiabilities: cellToNumber(row.open_liabilities),
    medianHours: cellToNumberOrNull(row.hours),
  }))

/** If there are more, the page shows as many, half of them the best and half the last. */
const maxLocations = 50

type RankedLocation = LocationStatistics & { readonly rank: number }

export const renderLocations = (locations: ReadonlyArray<LocationStatistics> | null): Html => {
  const title = 'Locations'
  if (locations === null) return renderSection(title, renderNotice('This file does not hold the stream reviews.'))
  if (locations.length === 0) return renderSection(title, renderNotice('No review has a location.'))
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
change it little. Locations are ranked by the lower end of the 95 % credible interval beside it.</p>`,
    ...parts.map(({ name, rows }) => renderTable(name, locationColumns(scale), rows)),
  )
}

/** The range of ratings that holds all intervals, in steps of a half. */
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
  const position = (value: number) => ((value - from) / (to - from)) * 100
  return html`<div class="range"><i style="left:${position(low).toFixed(1)}%;right:${(100 - position(high)).toFixed(1)}%"></i><b style="left:${position(mean).toFixed(1)}%"></b></div>`
}
