import { renderChart } from '../../charts'
import type { Figure } from './figures/figure'
import { Html, html } from './html'

/** The two widths that a chart is drawn for, in pixels: a phone or half a sheet of paper, and half of a screen. */
const chartWidths = { narrow: 348, wide: 500 } as const

/** A chart with its heading; `words` tell it to those who do not see it. */
export const renderFigure = (
  title: string | undefined,
  words: string,
  { height, option }: Figure,
  more: { readonly above?: Html; readonly below?: string } = {},
): Html =>
  html`<figure>${title === undefined ? undefined : html`<h3>${title}</h3>`}${more.above}<div role="img" aria-label="${words}">${Object.entries(
    chartWidths,
  ).map(
    ([name, width]) => html`<div class="${name}">${new Html(renderChart(option(width), width, height))}</div>`,
  )}</div>${more.below === undefined ? undefined : html`<figcaption>${more.below}</figcaption>`}</figure>`

/** `name` is the CSS variable of the colour too. */
export const renderLegend = (names: ReadonlyArray<string>): Html =>
  html`<ul class="legend">${names.map((name) => html`<li><i style="background:var(--${name})"></i>${name}</li>`)}</ul>`

export type TableColumn<Row> = {
  readonly title: string
  readonly cell: (row: Row) => Html | string
  /** `n` for numbers, to the right; `t` for text that stays in one line; `name` for one that wants room on paper; `spare` where a phone can do without. */
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

export const renderNotice = (words: string): Html => html`<p class="quiet">${words}</p>`
