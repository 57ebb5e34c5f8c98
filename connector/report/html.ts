import { type Figure, renderChart } from './charts'

/** HTML made by `html` or by the chart library, never from data. */
export class Html {
  constructor(readonly text: string) {}
}

type HtmlPart = Html | string | number | null | undefined | ReadonlyArray<HtmlPart>

/** An HTML template. Escapes every part that is not `Html`, joins lists, and leaves out null and undefined. */
export const html = (texts: TemplateStringsArray, ...parts: ReadonlyArray<HtmlPart>): Html =>
  new Html(texts.map((text, i) => (i === 0 ? text : `${toHtmlText(parts[i - 1])}${text}`)).join(''))

const toHtmlText = (part: HtmlPart): string => {
  if (part === null || part === undefined) return ''
  if (part instanceof Html) return part.text
  if (typeof part === 'string' || typeof part === 'number') return escapeHtml(String(part))
  return part.map(toHtmlText).join('')
}

const htmlEntities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

const escapeHtml = (text: string): string => text.replaceAll(/[&<>"']/g, (sign) => htmlEntities[sign] ?? sign)

export const formatCount = (count: number): string => count.toLocaleString('en')

export const formatPlural = (count: number, one: string, many = `${one}s`): string =>
  `${formatCount(count)} ${count === 1 ? one : many}`

/** A share of 0 to 1 in percent; a dash for none. */
export const formatShare = (share: number | null): string => (share === null ? '–' : `${(100 * share).toFixed(0)} %`)

/** A rating with two decimals; a dash for none. */
export const formatRating = (mean: number | null): string => (mean === null ? '–' : mean.toFixed(2))

/** A duration in a suitable unit; a dash for none. */
export const formatDuration = (seconds: number | null): string => {
  if (seconds === null) return '–'
  if (seconds < 10) return `${Math.max(0, seconds).toFixed(1)} s`
  if (seconds < 90) return `${seconds.toFixed(0)} s`
  if (seconds < 90 * 60) return `${(seconds / 60).toFixed(0)} min`
  const [count, unit] = seconds < 48 * 3600 ? [seconds / 3600, 'h'] : [seconds / 86_400, 'd']
  return `${count.toFixed(count < 10 ? 1 : 0)} ${unit}`
}

/** An ISO 8601 time as `2026-11-21 04:51` in a time zone; a dash for none. */
export const formatMinute = (time: string | null, timeZone: string): string => {
  if (time === null || Number.isNaN(Date.parse(time))) return time ?? '–'
  const parts = new Intl.DateTimeFormat('en', { ...minuteParts, timeZone }).formatToParts(new Date(time))
  const part = (type: string) => parts.find((other) => other.type === type)?.value ?? ''
  return `${part('year')}-${part('month')}-${part('day')} ${part('hour')}:${part('minute')}`
}

const minuteParts = {
  year: 'numeric',
  month: '2-digit',
  day: '2-digit',
  hour: '2-digit',
  minute: '2-digit',
  hourCycle: 'h23',
} as const

export const formatDay = (time: string | null, timeZone: string): string => formatMinute(time, timeZone).slice(0, 10)

/** A month such as 2026-10 as `October 2026`. */
export const formatMonth = (month: string): string =>
  new Date(`${month}-01T00:00:00Z`).toLocaleDateString('en', { month: 'long', year: 'numeric', timeZone: 'UTC' })

/**
 * The two widths in pixels at which each chart is drawn: for a phone or half a sheet of paper, and for half a screen.
 */
const chartWidths = { narrow: 348, wide: 500 } as const

/** A chart with its heading. `description` is for readers who cannot see it. */
export const renderFigure = (
  title: string | undefined,
  description: string,
  { height, option }: Figure,
  { above, below }: { readonly above?: Html; readonly below?: string } = {},
): Html => {
  const drawings = Object.entries(chartWidths).map(
    ([name, width]) => html`<div class="${name}">${new Html(renderChart(option(width), width, height))}</div>`,
  )
  return html`<figure>${title === undefined ? undefined : html`<h3>${title}</h3>`}${above}<div
role="img" aria-label="${description}">${drawings}</div>${
    below === undefined ? undefined : html`<figcaption>${below}</figcaption>`
  }</figure>`
}

/** A legend. Each name is also the name of the CSS variable with its color. */
export const renderLegend = (names: ReadonlyArray<string>): Html =>
  html`<ul class="legend">${names.map((name) => html`<li><i style="background:var(--${name})"></i>${name}</li>`)}</ul>`

export type TableColumn<Row> = {
  readonly title: Html | string
  readonly cell: (row: Row) => Html | string
  /**
   * CSS classes: `n` for right-aligned numbers; `t` for single-line text; `name` for text that is wide on paper;
   * `chart` for a column hidden on a phone; `few` for a column hidden on half the width of paper.
   */
  readonly kind?: string
  /** The column whose cells name their rows. */
  readonly isHeader?: true
}

/**
 * A table that scrolls if it is wider than the page, also by keyboard. On a phone, each row is a card whose cells show
 * their column titles; the roles keep it a table for screen readers. `below`: a text after a row.
 */
export const renderTable = <Row>(
  caption: string,
  columns: ReadonlyArray<TableColumn<Row>>,
  rows: ReadonlyArray<Row>,
  below?: (row: Row) => string | undefined,
): Html => {
  const heads = columns.map(
    ({ title, kind = '' }) => html`<th scope="col" role="columnheader" class="${kind}">${title}</th>`,
  )
  const body = rows.map((row) => [renderRow(columns, row), renderBelow(below?.(row), columns.length)])
  return html`<div class="scroll" role="group" tabindex="0" aria-label="${caption}"><table
role="table"><caption>${caption}</caption><thead role="rowgroup"><tr
role="row">${heads}</tr></thead><tbody role="rowgroup">${body}</tbody></table></div>`
}

const renderRow = <Row>(columns: ReadonlyArray<TableColumn<Row>>, row: Row): Html => {
  const cells = columns.map(({ title, cell, kind = '', isHeader }) => {
    if (isHeader) return html`<th scope="row" role="rowheader" class="${kind}">${cell(row)}</th>`
    const name = typeof title === 'string' ? title : ''
    return html`<td role="cell" class="${kind}" data-title="${name}"><div>${cell(row)}</div></td>`
  })
  return html`<tr role="row">${cells}</tr>`
}

const renderBelow = (text: string | undefined, columns: number): Html | undefined =>
  text === undefined
    ? undefined
    : html`<tr role="row" class="words"><td role="cell" colspan="${columns}">${text}</td></tr>`

/** Two sections side by side, or the only one there is. */
export const renderPair = (...sections: ReadonlyArray<Html | undefined>): Html | undefined => {
  const present = sections.filter((section) => section !== undefined)
  return present.length === 0 ? undefined : html`<div class="${present.length > 1 ? 'pair' : ''}">${present}</div>`
}

/** A section with the id that the table of contents links to. */
export const renderSection = (title: string, ...content: ReadonlyArray<Html | undefined>): Html =>
  html`<section aria-labelledby="${toAnchor(title)}"><h2 id="${toAnchor(title)}">${title}</h2>${content}</section>`

const toAnchor = (title: string): string => title.toLowerCase().replaceAll(/[^a-z]+/g, '-')

export const renderNotice = (text: string): Html => html`<p class="quiet">${text}</p>`

export const renderTwoLines = (above: Html | string, below: Html | string): Html =>
  html`${above}<br><span class="quiet">${below}</span>`

const maxNameLength = 28

export const shortenName = (name: string): string => shortenText(name, maxNameLength)

/** The text, shortened to `length` characters with an ellipsis if it is longer. */
export const shortenText = (text: string, length: number): string =>
  // Half of a surrogate pair would be no character.
  text.length > length ? `${text.slice(0, length - 1).replace(/[\ud800-\udbff]$/, '')}…` : text
