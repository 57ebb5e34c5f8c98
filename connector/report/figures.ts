import { formatCount, formatDuration, formatRating, formatShare, type Html, html, renderTable } from './html'

/**
 * A figure of the month beside that of the month before; null where there is none, as the average of no ratings, or
 * where it is not known.
 */
export type Comparison = {
  readonly value: number | null
  readonly previous: number | null
  readonly change: number | null
  /** Only of figures that are judged. */
  readonly test?: ChanceTest
}

/** Whether a change is outside chance. */
export type ChanceTest = {
  /** How many reviews, ratings or tasks the figure is of, in both months. */
  readonly n: number
  readonly previous_n: number
  /** How probable such a change is if nothing has changed; null: too few, or the month is not over. */
  readonly p: number | null
  /** For a change outside chance: what it is; null for every other. */
  readonly mark: 'better' | 'worse' | null
  /** Where the figures are known only within bounds: their least and greatest values. */
  readonly range?: readonly [number, number]
  readonly previous_range?: readonly [number, number]
}

export type Figures = Readonly<Record<string, Comparison>>

type Unit = 'count' | 'rating' | 'share' | 'hours' | 'days'

/** How a figure is shown. */
export type Metric = {
  readonly title: string
  readonly unit: Unit
  /** The direction in which it gets better, of figures that are judged. */
  readonly better?: 'higher' | 'lower'
  /** It is as things stand now, and reviews of the month before had more time: the two are not compared. */
  readonly isOfNow?: true
}

const unitFormats: Readonly<Record<Unit, (value: number) => string>> = {
  count: formatCount,
  rating: formatRating,
  share: formatShare,
  hours: (hours) => formatDuration(hours * 3600),
  days: (days) => `${formatCount(days)} d`,
}

/** A figure in its unit; a dash for none. `range`: the bounds of one that is not known exactly. */
export const formatMetricValue = (
  { unit }: Metric,
  value: number | null,
  range?: readonly [number, number],
): string => {
  if (value !== null) return unitFormats[unit](value)
  return range === undefined ? '–' : range.map((bound) => unitFormats[unit](bound)).join(' to ')
}

/** A change with its sign; shares change by percentage points. A dash for none. */
export const formatChange = ({ unit }: Metric, change: number | null): string => {
  if (change === null) return '–'
  const size = unit === 'share' ? `${Math.abs(100 * change).toFixed(0)} pt` : unitFormats[unit](Math.abs(change))
  return change === 0 ? '±0' : `${change > 0 ? '+' : '−'}${size}`
}

/** A mark by a sign and words, not by its colour alone. */
const markSigns = { better: '\u2009✓', worse: '\u2009!' } as const

/** A change, marked if it is outside chance. */
export const renderChange = (metric: Metric, { change, test }: Comparison): Html => {
  const mark = test?.mark ?? null
  const text = formatChange(metric, change)
  return mark === null
    ? html`${text}`
    : html`<span class="${mark}">${text}<span class="unseen"> for the ${mark}</span><span
aria-hidden="true">${markSigns[mark]}</span></span>`
}

/** A figure, and below it that of the month before and the change. */
export const renderComparison = (metric: Metric, comparison: Comparison | undefined): Html => {
  if (comparison === undefined) return html`–`
  const { value, previous, test } = comparison
  const own = formatMetricValue(metric, value, test?.range)
  if (metric.isOfNow) return html`${own}`
  const before = formatMetricValue(metric, previous, test?.previous_range)
  return html`${own}<span class="before"><span class="unseen">, month before: </span>${before}<span
class="unseen">, change:</span> ${renderChange(metric, comparison)}</span>`
}

/** The estimate of a rating, and below it its interval. */
export const renderEstimate = (metric: Metric, { rating_estimate, rating_low, rating_high }: Figures): Html => {
  const [estimate, low, high] = [rating_estimate, rating_low, rating_high].map((figure) =>
    formatMetricValue(metric, figure?.value ?? null),
  )
  return rating_estimate?.value == null ? html`–` : html`${estimate}<span class="before">${low} to ${high}</span>`
}

/** A column of figures: its title, and what it shows of a row. */
export type FigureColumn = { readonly title: string; readonly cell: (figures: Figures) => Html }

/** A table of figures. `one`: what a row is about. */
export const renderFigures = <Row extends { readonly name: string | null; readonly figures: Figures }>(
  caption: string,
  one: string,
  columns: ReadonlyArray<FigureColumn>,
  rows: ReadonlyArray<Row>,
): Html =>
  renderTable(
    caption,
    [
      { title: one, kind: 'name', isHeader: true, cell: ({ name }) => name ?? `(no ${one.toLowerCase()})` },
      ...columns.map(({ title, cell }) => ({ title, kind: 'n', cell: ({ figures }: Row) => cell(figures) })),
    ],
    rows,
  )
