import { type Estimate, priorRatings } from '../estimate'
import type { Location } from '../locations'
import { hours, rating, whole } from './format'
import { type Html, html } from './html'
import { type Column, missing, section, table } from './parts'

/** Of more than these, the first half and the last half of them are shown. */
const shown = 50

type Ranked = Location & { readonly rank: number }

export const showLocations = (locations: ReadonlyArray<Location> | null): Html => {
  const title = 'Locations'
  if (locations === null) return section(title, missing('This file does not hold the stream reviews.'))
  if (locations.length === 0) return section(title, missing('No review names a location.'))
  const ranked = locations.map((location, i) => ({ ...location, rank: i + 1 }))
  const half = shown / 2
  const parts =
    ranked.length <= shown
      ? [{ name: `All ${whole(ranked.length)}, best first`, rows: ranked }]
      : [
          { name: `The best ${half} of ${whole(ranked.length)}`, rows: ranked.slice(0, half) },
          { name: `The last ${half} of ${whole(ranked.length)}`, rows: ranked.slice(-half) },
        ]
  const scale = scaleOf(locations.flatMap(({ estimate }) => estimate ?? []))
  return section(
    title,
    html`<p class="quiet">The estimate is a Bayesian mean: each location starts with ${priorRatings} ratings at the mean of all reviews, so that a few ratings
say little. Beside it its 95 % credible interval; locations are ranked by its lower end.</p>`,
    ...parts.map(({ name, rows }) => table(name, columns(scale), rows)),
  )
}

/** The ratings that all intervals fit between, in halves. */
type Scale = { readonly from: number; readonly to: number }

const scaleOf = (estimates: ReadonlyArray<Estimate>): Scale => ({
  from: Math.floor(2 * Math.min(...estimates.map(({ low }) => low), 4.5)) / 2,
  to: Math.ceil(2 * Math.max(...estimates.map(({ high }) => high), 0.5)) / 2,
})

const columns = (scale: Scale): ReadonlyArray<Column<Ranked>> => [
  { title: '#', kind: 'n', cell: ({ rank }) => whole(rank) },
  { title: 'Location', kind: 'name', cell: ({ name, id }) => name ?? `id ${id}` },
  { title: 'Reviews', kind: 'n', cell: ({ reviews }) => whole(reviews) },
  { title: 'Rated', kind: 'n spare', cell: ({ rated }) => whole(rated) },
  { title: 'Mean', kind: 'n spare', cell: ({ meanRating }) => rating(meanRating) },
  { title: 'Estimate', kind: 'n', cell: (row) => rating(row.estimate?.mean ?? null) },
  { title: '95 %', kind: 'n', cell: ({ estimate }) => (estimate === null ? '–' : interval(estimate)) },
  {
    title: `${scale.from} to ${scale.to}`,
    kind: 'spare',
    cell: ({ estimate }) => (estimate === null ? '' : bar(estimate, scale)),
  },
  { title: 'Open liabilities', kind: 'n spare', cell: (row) => whole(row.openLiabilities) },
  { title: 'Median answer', kind: 'n spare', cell: (row) => hours(row.medianHours) },
]

const interval = ({ low, high }: Estimate): string => `${rating(low)}–${rating(high)}`

const bar = ({ mean, low, high }: Estimate, { from, to }: Scale): Html => {
  const at = (value: number) => ((value - from) / (to - from)) * 100
  return html`<div class="range"><i style="left:${at(low).toFixed(1)}%;right:${(100 - at(high)).toFixed(1)}%"></i><b style="left:${at(mean).toFixed(1)}%"></b></div>`
}
