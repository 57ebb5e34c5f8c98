import { defined } from '../../cdk'
import { type ChartOption, renderChart } from './charts'

/** The page's style sheet: one column on a phone, two from 1,000 px and on paper. Each chart is in the page in both widths, and one is shown. */
export const pageStyle = `
:root {
  color-scheme: light dark;
  --paper: #fff; --ink: #1d2126; --muted: #5f6670; --line: #e3e6ea; --soft: #f5f6f8; --accent: #3f6fb5;
  --negative: #bf5340; --neutral: #c9ced6; --positive: #2f7a62; --on-negative: #fff; --on-neutral: #1d2126; --on-positive: #fff;
  --high: #9e2f2a; --medium: #d98a3d; --low: #ecd9a8; --other: #c9ced6;
  --on-high: #fff; --on-medium: #1d2126; --on-low: #1d2126; --on-other: #1d2126;
}
@media screen and (prefers-color-scheme: dark) {
  :root {
    --paper: #14171b; --ink: #e4e7eb; --muted: #9aa2ad; --line: #2c3138; --soft: #1c2026; --accent: #7aa5e6;
    --negative: #d9745f; --neutral: #4a515b; --positive: #5bb394; --on-negative: #14171b; --on-neutral: #e4e7eb; --on-positive: #14171b;
    --high: #e0635b; --medium: #d99a52; --low: #c2b070; --other: #4a515b;
    --on-high: #14171b; --on-medium: #14171b; --on-low: #14171b; --on-other: #e4e7eb;
  }
}
@media print { :root { color-scheme: light } }
* { box-sizing: border-box }
html { -webkit-text-size-adjust: 100% }
body {
  margin: 0 auto; padding: 2rem 1rem 3rem; max-width: 68rem; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Liberation Sans", Arial, sans-serif;
  font-variant-numeric: tabular-nums; overflow-wrap: break-word; print-color-adjust: exact; -webkit-print-color-adjust: exact;
}
h1 { margin: 0; font-size: 1.6rem; font-weight: 600; line-height: 1.25 }
h2 { margin: 0 0 .25rem; font-size: 1.1rem; font-weight: 600; break-after: avoid }
h3 { margin: 1.25rem 0 .25rem; font-size: .95rem; font-weight: 600; break-after: avoid }
p { margin: 0 0 .75rem; max-width: 44rem }
.quiet, figcaption, caption { color: var(--muted); font-size: .875rem }
section { margin-top: 2.25rem; padding-top: 1.25rem; border-top: 1px solid var(--line) }
.key { display: grid; grid-template-columns: repeat(auto-fit, minmax(8.5rem, 1fr)); gap: 1rem 1.5rem; margin: 1.75rem 0 0 }
.key div { display: flex; flex-direction: column }
.key dt { color: var(--muted); font-size: .875rem }
.key dd { margin: 0; font-size: 1.5rem; font-weight: 600; line-height: 1.3 }
.key dd + dd { color: var(--muted); font-size: .8125rem; font-weight: 400 }
figure { margin: 0; break-inside: avoid }
svg { display: block; width: 100%; height: auto; font-family: inherit; overflow: visible }
.wide { display: none }
.pair > figure + figure, .pair > figure + div { margin-top: 1.75rem }
.legend { display: flex; flex-wrap: wrap; gap: .25rem 1rem; margin: .25rem 0 .5rem; padding: 0; list-style: none; font-size: .875rem }
.legend i { display: inline-block; width: .7rem; height: .7rem; margin-right: .4rem; border-radius: 2px }
.scroll { overflow-x: auto }
.scroll + .scroll { margin-top: 1.25rem }
table { width: 100%; border-collapse: collapse; font-size: .875rem; line-height: 1.4 }
caption { text-align: left; padding-bottom: .5rem }
th, td { padding: .35rem .6rem; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top }
th { color: var(--muted); font-weight: 500; white-space: nowrap; vertical-align: bottom }
th:first-child, td:first-child { padding-left: 0 }
th:last-child, td:last-child { padding-right: 0 }
td.n, th.n { text-align: right; white-space: nowrap }
td.t { white-space: nowrap }
td .quiet { font-size: inherit }
td.id { overflow-wrap: anywhere }
figcaption { margin-top: .4rem }
thead { display: table-header-group }
tr { break-inside: avoid }
.range { position: relative; min-width: 7rem; height: 1.2rem }
.range::before { content: ""; position: absolute; left: 0; right: 0; top: 50%; border-top: 1px solid var(--line) }
.range u { position: absolute; top: .15rem; bottom: .15rem; border-left: 1px solid var(--line) }
.axis { position: relative; min-width: 7rem; height: 1.25rem; margin-right: .4rem }
.axis span { position: absolute; bottom: 0; transform: translateX(-50%); font-size: .8125rem }
.range { margin-right: .4rem }
.range i, .range b { position: absolute; top: 50%; transform: translateY(-50%) }
.range i { height: .4rem; border-radius: .2rem; background: var(--accent); opacity: .35 }
.range b { width: .55rem; height: .55rem; margin-left: -.275rem; border-radius: 50%; background: var(--accent) }
.bad { color: var(--high); font-weight: 600 }
.good { color: var(--positive); font-weight: 600 }
ul.plain { margin: .25rem 0 0; padding-left: 1.1rem }
footer { margin-top: 2.5rem; padding-top: 1rem; border-top: 1px solid var(--line) }
@media (min-width: 1000px) {
  .pair { display: grid; grid-template-columns: 1fr 1fr; gap: 2.5rem }
  .pair > figure + figure, .pair > figure + div { margin-top: 0 }
}
@media (min-width: 560px) {
  body { padding-left: 2rem; padding-right: 2rem }
  .wide { display: block }
  .narrow { display: none }
}
@media screen and (min-width: 560px) and (max-width: 999px) { figure { max-width: 600px } }
@media (max-width: 559px) { .spare { display: none } th { white-space: normal } th, td { padding-left: .35rem; padding-right: .35rem } }
@media print {
  @page { margin: 14mm }
  body { padding: 0; max-width: none; font-size: 10pt }
  section { margin-top: 1.25rem; padding-top: .75rem }
  .pair { display: grid; grid-template-columns: 1fr 1fr; gap: 1.5rem }
  .pair > figure + figure, .pair > figure + div { margin-top: 0 }
  .wide { display: none }
  .narrow { display: block }
  .spare { display: table-cell }
  .scroll { overflow: visible }
  table { font-size: 8.5pt }
  th { white-space: normal }
  .name { min-width: 38mm }
  .key { grid-template-columns: repeat(3, 1fr) }
  p { break-inside: avoid }
  section > p { break-after: avoid }
  .range { min-width: 5rem }
}
`

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

/** A time in ISO 8601 as `2026-11-21 04:51` in a time zone; a dash for none. */
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
  readonly title: Html | string
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

/** Two sections beside each other, or the one that there is. */
export const renderPair = (...sections: ReadonlyArray<Html | undefined>): Html | undefined => {
  const present = sections.filter((section) => section !== undefined)
  return present.length === 0 ? undefined : html`<div class="${present.length > 1 ? 'pair' : ''}">${present}</div>`
}

export const renderSection = (title: string, ...content: ReadonlyArray<Html | undefined>): Html =>
  html`<section><h2>${title}</h2>${content}</section>`

export const renderNotice = (text: string): Html => html`<p class="quiet">${text}</p>`

/** A chart and its height in pixels; `option` takes the width on the page, so that the text keeps its size. */
export type Figure = { readonly height: number; readonly option: (width: number) => ChartOption }

/** Colours are variables of the page's style, so that one drawing works on a light page, a dark page and on paper. */
export const inkColor = 'var(--ink)'
export const accentColor = 'var(--accent)'
export const labelText = { fontFamily: 'inherit', fontSize: 12, color: 'var(--muted)' }

export const hiddenAxis = { show: false } as const
export const baselineStyle = { lineStyle: { color: 'var(--line)' } } as const
export const staticSeries = { silent: true, emphasis: { disabled: true } } as const
/** The labels of an axis take their space from the chart, not from the page. */
export const axisBounds = { outerBoundsMode: 'same', outerBoundsContain: 'axisLabel' } as const

const maxNameLength = 28
export const barChartHeight = (rows: number): number => rows * 32 + 8

/** Pixels to add for each character of a label, since a browser's font may be wider than the one the library assumes. */
const nameMargin = 0.9

/** Axes for bars from left to right, each after its name. `right`: the margin in pixels; `max`: the value of a bar of full length. */
export const barChartAxes = (names: ReadonlyArray<string>, right: number, max?: number) =>
  ({
    grid: {
      left: 4 + Math.round(nameMargin * Math.max(...names.map(({ length }) => length))),
      right,
      top: 4,
      bottom: 4,
      ...axisBounds,
    },
    xAxis: { type: 'value', show: false, ...defined({ max }) },
    yAxis: {
      type: 'category',
      inverse: true,
      data: [...names],
      axisTick: hiddenAxis,
      axisLine: hiddenAxis,
      axisLabel: { ...labelText, color: inkColor, interval: 0 },
    },
  }) satisfies ChartOption

export const barSeries = { ...staticSeries, type: 'bar', barWidth: 20 } as const

export const shortCategoryName = (category: string | null): string => {
  const name = category ?? 'No category'
  return name.length > maxNameLength ? `${name.slice(0, maxNameLength - 1)}…` : name
}
