import { priorRatings, type RatingEstimate } from '../estimate'
import type { LocationStatistics } from '../locations'
import { formatCount, formatHours, formatRating } from './format'
import { type Html, html } from './html'
import { renderNotice, renderSection, renderTable, type TableColumn } from './parts'

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
