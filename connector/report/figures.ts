import { formatCount, formatDuration, formatRating, formatShare, type Html, html, renderTable } from './html'

/**
 * A month's figure beside that of the month before. Null if it is unknown or does not exist, like the average of no
 * ratings.
 */
export type Comparison = {
  readonly value: number | null
  readonly previous: number | null
  readonly change: number | null
  /** Only for judged figures. */
  readonly test?: ChanceTest
}

/** The test of a change against chance. */
export type ChanceTest = {
  /** How many reviews, ratings or tasks the figure is based on, in both months. */
  readonly n: number
  readonly previous_n: number
  /**
   * The probability of such a change if nothing has changed. Null if there are too few values or the month is not over.
   */
  readonly p: number | null
  /** The direction of a change outside chance; null for any other change. */
  readonly mark: 'better' | 'worse' | null
  /** The lowest and highest value of a figure that is known only within bounds. */
  readonly range?: readonly [number, number]
  readonly previous_range?: readonly [number, number]
}

export type Figures = Readonly<Record<string, Comparison>>

type Unit = 'count' | 'rating' | 'share' | 'hours' | 'days'

/** How a figure is shown. */
export type Metric = {
  readonly title: string
  readonly unit: Unit
  /** The direction in which a judged figure gets better. */
  readonly better?: 'higher' | 'lower'
  /** The figure describes the present, and reviews of the month before had more time, so the two are not compared. */
  readonly isOfNow?: true
}

const unitFormats: Readonly<Record<Unit, (value: number) => string>> = {
  count: formatCount,
  rating: formatRating,
  share: formatShare,
  hours: (hours) => formatDuration(hours * 3600),
  days: (days) => `${formatCount(days)} d`,
}

/** A figure in its unit; a dash for none. `range`: the bounds of a figure that is not known exactly. */
export const formatMetricValue = (
  { unit }: Metric,
  value: number | null,
  range?: readonly [number, number],
): string => {
  if (value !== null) return unitFormats[unit](value)
  return range === undefined ? '–' : range.map((bound) => unitFormats[unit](bound)).join(' to ')
}

/** A change with its sign; a dash for none. Shares change by percentage points. */
export const formatChange = ({ unit }: Metric, change: number | null): string => {
  if (change === null) return '–'
  const size = unit === 'share' ? `${Math.abs(100 * change).toFixed(0)} pt` : unitFormats[unit](Math.abs(change))
  return change === 0 ? '±0' : `${change > 0 ? '+' : '−'}${size}`
}

/** A mark is a sign with words, not just a color. */
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

/** A figure, with the month before and the change below it. */
export const renderComparison = (metric: Metric, comparison: Comparison | undefined): Html => {
  if (comparison === undefined) return html`–`
  const { value, previous, test } = comparison
  const own = formatMetricValue(metric, value, test?.range)
  if (metric.isOfNow) return html`${own}`
  const before = formatMetricValue(metric, previous, test?.previous_range)
  return html`${own}<span class="before"><span class="unseen">, month before: </span>${before}<span
class="unseen">, change:</span> ${renderChange(metric, comparison)}</span>`
}

/** A rating's estimate, with its interval below it. */
export const renderEstimate = (metric: Metric, { rating_estimate, rating_low, rating_high }: Figures): Html => {
  const [estimate, low, high] = [rating_estimate, rating_low, rating_high].map((figure) =>
    formatMetricValue(metric, figure?.value ?? null),
  )
  return rating_estimate?.value == null ? html`–` : html`${estimate}<span class="before">${low} to ${high}</span>`
}

/** A column of figures: its title, and the content of a cell. */
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
