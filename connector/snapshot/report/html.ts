import { renderChart } from './charts'
import type { Figure } from './figures'

/** HTML text, made by `html` or by the chart library, never from data. */
export class Html {
  constructor(readonly text: string) {}
}

type HtmlPart = Html | string | number | null | undefined | ReadonlyArray<HtmlPart>

/** A template for HTML: escapes every part that is not `Html`, joins lists, and leaves out null and undefined. */
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

export const formatShare = (part: number, total: number): string =>
  total === 0 ? '–' : `${((100 * part) / total).toFixed(0)} %`

/** A rating with two decimals; a dash for none. */
export const formatRating = (mean: number | null): string => (mean === null ? '–' : mean.toFixed(2))

/** A duration in the unit that suits its length; a dash for none. */
export const formatDuration = (seconds: number | null): string => {
  if (seconds === null) return '–'
  if (seconds < 10) return `${Math.max(0, seconds).toFixed(1)} s`
  if (seconds < 90) return `${seconds.toFixed(0)} s`
  if (seconds < 90 * 60) return `${(seconds / 60).toFixed(0)} min`
  const [count, unit] = seconds < 48 * 3600 ? [seconds / 3600, 'h'] : [seconds / 86_400, 'd']
  return `${count.toFixed(count < 10 ? 1 : 0)} ${unit}`
}

export const formatHours = (count: number | null): string => formatDuration(count === null ? null : count * 3600)

/** A time in ISO 8601 as `2026-11-21 04:51`; a dash for none. */
export const formatMinute = (time: string | null): string => (time === null ? '–' : time.slice(0, 16).replace('T', ' '))

export const formatDay = (time: string | null): string => (time === null ? '–' : time.slice(0, 10))

/** The duration from a time to `now`. */
export const formatAge = (time: string | null, now: string): string =>
  time === null ? '–' : formatDuration((Date.parse(now) - Date.parse(time)) / 1000)

/** The two widths in pixels that each chart is drawn in: for a phone or half a sheet of paper, and for half a screen. */
const chartWidths = { narrow: 348, wide: 500 } as const

/** A chart with its heading; `description` is for readers who cannot see it. */
export const renderFigure = (
  title: string | undefined,
  description: string,
  { height, option }: Figure,
  { above, below }: { readonly above?: Html; readonly below?: string } = {},
): Html =>
  html`<figure>${title === undefined ? undefined : html`<h3>${title}</h3>`}${above}<div role="img" aria-label="${description}">${Object.entries(
    chartWidths,
  ).map(
    ([name, width]) => html`<div class="${name}">${new Html(renderChart(option(width), width, height))}</div>`,
  )}</div>${below === undefined ? undefined : html`<figcaption>${below}</figcaption>`}</figure>`

/** Each name is also the name of the CSS variable with its colour. */
export const renderLegend = (names: ReadonlyArray<string>): Html =>
  html`<ul class="legend">${names.map((name) => html`<li><i style="background:var(--${name})"></i>${name}</li>`)}</ul>`

export type TableColumn<Row> = {
  readonly title: string
  readonly cell: (row: Row) => Html | string
  /** CSS classes: `n` for numbers, aligned right; `t` for text on one line; `name` for text that is wide on paper; `spare` for a column that a phone does not show. */
  readonly kind?: string
}

export const renderTable = <Row>(
  caption: string,
  columns: ReadonlyArray<TableColumn<Row>>,
  rows: ReadonlyArray<Row>,
): Html =>
  html`<div class="scroll"><table><caption>${caption}</caption><thead><tr>${columns.map(
    ({ title, kind = '' }) => html`<th scope="col" class="${kind}">${title}</th>`,
  )}</tr></thead><tbody>${rows.map(
    (row) => html`<tr>${columns.map(({ cell, kind = '' }) => html`<td class="${kind}">${cell(row)}</td>`)}</tr>`,
  )}</tbody></table></div>`

export const renderSection = (title: string, ...content: ReadonlyArray<Html | undefined>): Html =>
  html`<section><h2>${title}</h2>${content}</section>`

export const renderNotice = (text: string): Html => html`<p class="quiet">${text}</p>`
