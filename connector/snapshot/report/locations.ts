import type { Database } from '../store/database'
import { cellToNumber, cellToNumberOrNull, cellToTextOrNull } from '../store/values'
import { priorRatings } from '../store/views'
import {
  formatCount,
  formatHours,
  formatPlural,
  formatRating,
  type Html,
  html,
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

/** If more locations have ratings, the page shows as many of the best and as many of the last. */
const maxLocations = 10

type RankedLocation = LocationStatistics & { readonly rank: number }

export const renderLocations = (locations: ReadonlyArray<LocationStatistics> | null): Html | undefined => {
  const rated = (locations ?? []).filter(({ estimate }) => estimate !== null)
  if (locations === null || rated.length === 0) return undefined
  const ranked = rated.map((location, i) => ({ ...location, rank: i + 1 }))
  const parts =
    ranked.length <= 2 * maxLocations
      ? [{ name: `All ${formatCount(ranked.length)}, best first`, rows: ranked }]
      : [
          { name: `The best ${maxLocations} of ${formatCount(ranked.length)}`, rows: ranked.slice(0, maxLocations) },
          { name: `The last ${maxLocations} of ${formatCount(ranked.length)}`, rows: ranked.slice(-maxLocations) },
        ]
  const scale = chooseRatingScale(rated.flatMap(({ estimate }) => estimate ?? []))
  const unrated = locations.length - rated.length
  const rest = [
    ...(parts.length > 1 ? [' The others stand in feedback report --json.'] : []),
    ...(unrated === 0
      ? []
      : [` ${formatPlural(unrated, 'location')} without a rating ${unrated === 1 ? 'is' : 'are'} left out.`]),
  ].join('')
  return renderSection(
    'Locations',
    html`<p class="quiet">The estimate is a Bayesian mean: each location starts with ${priorRatings} ratings at the mean of all reviews, so that a few ratings
change it little. Locations are ranked by the lower end of the 95 % credible interval beside it.${rest}</p>`,
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
    title: renderScale(scale),
    kind: 'spare',
    cell: ({ estimate }) => (estimate === null ? '' : renderIntervalBar(estimate, scale)),
  },
  { title: 'Open liabilities', kind: 'n spare', cell: (row) => formatCount(row.openLiabilities) },
  { title: 'Median answer', kind: 'n spare', cell: (row) => formatHours(row.medianHours) },
]

const formatInterval = ({ low, high }: RatingEstimate): string => `${formatRating(low)}–${formatRating(high)}`

const positionOn = ({ from, to }: RatingScale, value: number): string =>
  (((value - from) / (to - from)) * 100).toFixed(1)

/** The ratings at which the axis has a tick: every whole one, or every half on a short scale. */
const listTicks = ({ from, to }: RatingScale): ReadonlyArray<number> => {
  const step = to - from > 2 ? 1 : 0.5
  const first = Math.ceil(from / step) * step
  return Array.from({ length: Math.floor((to - first) / step) + 1 }, (_, i) => first + i * step)
}

/** The axis of the intervals, as the head of their column. */
const renderScale = (scale: RatingScale): Html =>
  html`<div class="axis">${listTicks(scale).map(
    (tick) => html`<span style="left:${positionOn(scale, tick)}%">${tick}</span>`,
  )}</div>`

const renderIntervalBar = ({ mean, low, high }: RatingEstimate, scale: RatingScale): Html =>
  html`<div class="range">${listTicks(scale).map(
    (tick) => html`<u style="left:${positionOn(scale, tick)}%"></u>`,
  )}<i style="left:${positionOn(scale, low)}%;right:${(100 - Number(positionOn(scale, high))).toFixed(1)}%"></i><b style="left:${positionOn(scale, mean)}%"></b></div>`
