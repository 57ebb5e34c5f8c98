import type { Database } from '../snapshot/store'
import { cellToNumber, cellToNumberOrNull, cellToTextOrNull } from '../snapshot/store'
import type { FigureGroup } from './comparisons'
import { describeGroups, explainHatch, plotPair, readCounts, sumOf, toDistribution } from './distributions'
import {
  formatCount,
  formatPlural,
  formatRating,
  formatShare,
  type Html,
  html,
  renderFigure,
  renderPair,
  renderSection,
  renderTable,
  type TableColumn,
} from './html'
import type { FocusMonth, MonthPair } from './months'

/** A location's ratings of all months and their Bayesian mean with its 95 % interval, from location_scorecard. */
export type LocationEstimate = {
  readonly location_id: string
  readonly location_name: string | null
  readonly reviews: number
  readonly rated: number
  readonly average_rating: number | null
  /** Null if none of its reviews has a rating. */
  readonly rating_estimate: number | null
  readonly rating_low: number | null
  readonly rating_high: number | null
}

/** Each location starts with this many ratings at the mean of all reviews, in location_scorecard. */
const priorRatings = 10

/** Every location, ordered by the lower end of its estimate, so that many good ratings rank above a few. */
export const readLocationEstimates = async (db: Database): Promise<ReadonlyArray<LocationEstimate>> =>
  (
    await db.query(`
      SELECT location_id::VARCHAR AS id, location_name, reviews, rated, average_rating,
        rating_estimate, rating_low, rating_high
      FROM location_scorecard WHERE location_id IS NOT NULL
      ORDER BY rating_low DESC NULLS LAST, reviews DESC, location_scorecard.location_id`)
  ).map((row) => ({
    location_id: String(row.id),
    location_name: cellToTextOrNull(row.location_name),
    reviews: cellToNumber(row.reviews),
    rated: cellToNumber(row.rated),
    average_rating: cellToNumberOrNull(row.average_rating),
    rating_estimate: cellToNumberOrNull(row.rating_estimate),
    rating_low: cellToNumberOrNull(row.rating_low),
    rating_high: cellToNumberOrNull(row.rating_high),
  }))

/** If more locations have ratings, the page shows this many of the best and of the last. */
const maxLocations = 3

type Rated = LocationEstimate & Readonly<Record<'rating_estimate' | 'rating_low' | 'rating_high', number>>
type Ranked = Rated & { readonly rank: number }

const isRated = (location: LocationEstimate): location is Rated => location.rating_estimate !== null

export const renderLocationEstimates = (locations: ReadonlyArray<LocationEstimate>): Html | undefined => {
  const ranked = locations.filter(isRated).map((location, i) => ({ ...location, rank: i + 1 }))
  if (ranked.length === 0) return undefined
  const hasAll = ranked.length <= maxLocations
  const scale = chooseRatingScale(ranked)
  const unrated = locations.length - ranked.length
  const unratedNote =
    unrated === 0
      ? ''
      : ` ${formatPlural(unrated, 'location')} without a rating ${unrated === 1 ? 'is' : 'are'} left out.`
  const table = (caption: string, rows: ReadonlyArray<Ranked>) => renderTable(caption, locationColumns(scale), rows)
  return html`<h3>Best and last by the ratings of all months</h3><p class="quiet">Each location starts with
${priorRatings} ratings at the average of all reviews, so a few ratings change its estimate little. They are ordered by
the lower end of the range in which the true rating lies with a probability of 95 %.${unratedNote}</p>${
    hasAll
      ? table(`All ${formatCount(ranked.length)}, the best first`, ranked)
      : renderPair(
          table(`The best ${maxLocations} of ${formatCount(ranked.length)}`, ranked.slice(0, maxLocations)),
          table(
            `The last ${Math.min(maxLocations, ranked.length - maxLocations)}`,
            ranked.slice(Math.max(maxLocations, ranked.length - maxLocations)),
          ),
        )
  }`
}

/** A range of ratings that contains all intervals, in steps of a half. */
type RatingScale = { readonly from: number; readonly to: number }

const chooseRatingScale = (estimates: ReadonlyArray<Rated>): RatingScale => ({
  from: Math.floor(2 * Math.min(...estimates.map(({ rating_low }) => rating_low), 4.5)) / 2,
  to: Math.ceil(2 * Math.max(...estimates.map(({ rating_high }) => rating_high), 0.5)) / 2,
})

const locationColumns = (scale: RatingScale): ReadonlyArray<TableColumn<Ranked>> => [
  { title: '#', kind: 'n', cell: ({ rank }) => formatCount(rank) },
  { title: 'Location', kind: 'name', isHeader: true, cell: (row) => row.location_name ?? `id ${row.location_id}` },
  { title: 'Rated', kind: 'n few', cell: ({ rated }) => formatCount(rated) },
  { title: 'Estimate', kind: 'n', cell: (row) => formatRating(row.rating_estimate) },
  { title: '95 %', kind: 'n', cell: (row) => `${formatRating(row.rating_low)}–${formatRating(row.rating_high)}` },
  { title: renderScale(scale), kind: 'chart', cell: (row) => renderIntervalBar(row, scale) },
]

const positionOn = ({ from, to }: RatingScale, value: number): string =>
  (((value - from) / (to - from)) * 100).toFixed(1)

/** The ratings with a tick on the axis: whole numbers, or halves on a short scale. */
const listTicks = ({ from, to }: RatingScale): ReadonlyArray<number> => {
  const step = to - from > 2 ? 1 : 0.5
  const first = Math.ceil(from / step) * step
  return Array.from({ length: Math.floor((to - first) / step) + 1 }, (_, i) => first + i * step)
}

/** The axis of the intervals, shown as their column's header. */
const renderScale = (scale: RatingScale): Html =>
  html`<span class="unseen">Interval</span><div class="axis" aria-hidden="true">${listTicks(scale).map(
    (tick) => html`<span style="left:${positionOn(scale, tick)}%">${tick}</span>`,
  )}</div>`

const renderIntervalBar = ({ rating_estimate, rating_low, rating_high }: Rated, scale: RatingScale): Html => {
  const ticks = listTicks(scale).map((tick) => html`<u style="left:${positionOn(scale, tick)}%"></u>`)
  const [left, right] = [positionOn(scale, rating_low), (100 - Number(positionOn(scale, rating_high))).toFixed(1)]
  return html`<div class="range" aria-hidden="true">${ticks}<i style="left:${left}%;right:${right}%"></i><b
style="left:${positionOn(scale, rating_estimate)}%"></b></div>`
}

const ratingsSql = `
  SELECT least(5, greatest(1, round(rating)))::INT AS key, count(*) AS reviews
  FROM review_facts
  WHERE rating IS NOT NULL
  GROUP BY 1`

/** How many ratings in review_facts round to 1, 2, 3, 4 and 5. */
export const readRatings = async (
  db: Database,
  { month, previous }: MonthPair,
  focusMonth: FocusMonth,
): Promise<ReadonlyArray<FigureGroup>> =>
  toDistribution(
    ['5', '4', '3', '2', '1'].map((rating) => [rating, rating]),
    'reviews',
    await focusMonth(month, () => readCounts(db, ratingsSql)),
    await focusMonth(previous, () => readCounts(db, ratingsSql)),
  )

const labelRating = (count: number, share: number | null): string => `${formatCount(count)}  ${formatShare(share)}`

export const renderRatings = (ratings: ReadonlyArray<FigureGroup>, { previous }: MonthPair): Html | undefined =>
  sumOf(ratings, 'reviews', 'value') + sumOf(ratings, 'reviews', 'previous') === 0
    ? undefined
    : renderSection(
        'Ratings',
        renderFigure(undefined, describeGroups(ratings, 'reviews'), plotPair(ratings, 'reviews', 110, labelRating), {
          below: `To the nearest whole rating. ${explainHatch(previous)}`,
        }),
      )
