import { countChecks } from '../snapshot'
import { type GroupSection, type GroupSectionName, groupSections, type MetricName, metrics } from './comparisons'
import { renderHealth } from './health'
import {
  formatCount,
  formatDay,
  formatMinute,
  formatMonth,
  formatPlural,
  Html,
  html,
  renderComparison,
  renderComparisons,
  renderPair,
  renderSection,
} from './html'
import { renderAlerts, renderOpenTasks } from './open-work'
import { renderLocationEstimates, renderRatings } from './ratings'
import type { Report } from './report'
import { renderLiabilities, renderResponses, renderTrend } from './reviews'

/**
 * The page's style sheet: one column on a phone, two from 1,000 px and on paper. Each chart is in the page in both
 * widths, and one is shown.
 */
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
.key dd .before { font-weight: 400; line-height: 1.4 }
figure { margin: 0; break-inside: avoid }
svg { display: block; width: 100%; height: auto; font-family: inherit; overflow: visible }
.wide { display: none }
.pair > figure + figure, .pair > figure + div, .three figure + figure { margin-top: 1.75rem }
.legend { display: flex; flex-wrap: wrap; gap: .25rem 1rem; margin: .25rem 0 .5rem; padding: 0; list-style: none; font-size: .875rem }
.legend i { display: inline-block; width: .7rem; height: .7rem; margin-right: .4rem; border-radius: 2px }
.scroll { position: relative; overflow-x: auto }
.scroll + .scroll { margin-top: 1.25rem }
table { width: 100%; border-collapse: collapse; font-size: .875rem; line-height: 1.4 }
caption { text-align: left; padding-bottom: .5rem }
th, td { padding: .35rem .6rem; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top }
thead th { color: var(--muted); font-weight: 500; white-space: nowrap; vertical-align: bottom }
tbody th { font-weight: inherit }
th:first-child, td:first-child { padding-left: 0 }
th:last-child, td:last-child { padding-right: 0 }
td.n, th.n { text-align: right; white-space: nowrap }
td.t { white-space: nowrap }
td .quiet, th .quiet { font-size: .8125rem }
.id { overflow-wrap: anywhere }
.before { display: block; color: var(--muted); font-size: .8125rem }
.better { color: var(--positive) }
.worse { color: var(--high); font-weight: 600 }
.unseen { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap }
.words td { padding-left: 1rem; padding-top: 0 }
tr:has(+ .words) > * { border-bottom: 0 }
.notice { padding: .75rem 1rem; border-left: 4px solid var(--accent); background: var(--soft) }
nav ul { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; margin: 1.5rem 0 0; padding: 0; list-style: none; font-size: .875rem }
a { color: var(--accent) }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px }
summary { cursor: pointer; font-size: .875rem; padding: .35rem 0 }
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
@media screen and (min-width: 1000px) {
  .three { display: grid; grid-template-columns: repeat(3, 1fr); gap: 2rem }
  .three figure + figure { margin-top: 0 }
  .pair { display: grid; grid-template-columns: 1fr 1fr; gap: 2.5rem }
  .pair > figure + figure, .pair > figure + div { margin-top: 0 }
}
@media (min-width: 560px) {
  body { padding-left: 2rem; padding-right: 2rem }
  .wide { display: block }
  .narrow { display: none }
}
@media screen and (min-width: 1000px) { .three .wide { display: none } .three .narrow { display: block } }
@media screen and (min-width: 560px) and (max-width: 999px) { figure { max-width: 600px } }
@media (max-width: 559px) { .spare { display: none } thead th { white-space: normal } th, td { padding-left: .35rem; padding-right: .35rem } }
@media print {
  @page { size: A4; margin: 12mm }
  body { padding: 0; max-width: none; font-size: 8.5pt; line-height: 1.35 }
  h1 { font-size: 15pt }
  h2 { font-size: 11pt }
  h3 { margin-top: .6rem; font-size: 9pt }
  nav, details, .screen, .pair.screen { display: none }
  .three { display: grid; grid-template-columns: 1fr 1fr 1fr; gap: 1rem }
  .three figure + figure { margin-top: 0 }
  section { margin-top: .45rem; padding-top: .25rem }
  .pair { display: grid; grid-template-columns: 1fr 1fr; gap: 1.5rem }
  .pair > figure + figure, .pair > figure + div, .pair > section + section { margin-top: 0 }
  .pair > section, .pair > section + section { margin-top: .45rem }
  figure > div { max-width: 78mm }
  .wide { display: none }
  .narrow { display: block }
  .spare { display: table-cell }
  .scroll { overflow: visible }
  .scroll + .scroll { margin-top: .5rem }
  table, .quiet, figcaption, caption { font-size: 7.25pt; line-height: 1.2 }
  th, td { padding: .06rem .3rem }
  tr:has(+ .words) { break-after: avoid }
  caption { padding-bottom: .15rem }
  thead th { white-space: normal }
  td .before, td .quiet, th .quiet { font-size: 6.5pt; line-height: 1.1 }
  td .quiet, th .quiet { margin-left: .3rem }
  td br, th br { display: none }
  .range, .axis { height: .8rem; min-width: 3.5rem }
  .axis span { font-size: 6.75pt }
  .name { min-width: 34mm }
  .pair .name { min-width: 0 }
  .pair .few { display: none }
  .key { grid-template-columns: repeat(5, 1fr); gap: .4rem 1rem; margin-top: .6rem }
  .key dt { font-size: 7.5pt }
  .key dd { font-size: 12pt }
  p { margin-bottom: .3rem; break-inside: avoid }
  section > p { break-after: avoid }
}
`

/** The metrics at the top of the page. */
const keyMetrics = [
  'reviews',
  'average_rating',
  'share_negative',
  'tasks',
  'share_closed',
  'share_answered',
  'median_hours_to_answer',
  'open_liabilities',
] as const satisfies ReadonlyArray<MetricName>

/** The figures at the top of the page: those of the month, and two of now. */
const renderKeyFigures = (report: Report): Html => {
  const { hold, checked } = countChecks(report.health.checks)
  const started = report.health.runs[0]?.started ?? null
  return html`<dl class="key">${keyMetrics.map(
    (name) =>
      html`<div><dt>${metrics[name].title}</dt><dd>${renderComparison(metrics[name], report.figures[name])}</dd></div>`,
  )}<div><dt>Alerts now</dt><dd>${formatCount(report.alerts.total)}<span class="before">${formatPlural(report.open_tasks.total, 'open task')}</span></dd></div><div><dt>Checks</dt><dd class="${hold === checked ? '' : 'bad'}">${
    hold === checked ? 'all hold' : `${formatCount(checked - hold)} failed`
  }<span class="before">${started === null ? 'nothing loaded' : `load of ${formatDay(started, report.time_zone)}`}</span></dd></div></dl>`
}

/** Why a page has no figures, or which may change; undefined if it is as it should be. */
export const explainMonth = ({ data, month, is_over, figures }: Report): string | undefined => {
  if (data === null) return 'This file has no reviews: the stream reviews was not loaded into it.'
  if (data.reviews === 0) return 'This file has no reviews: the stream reviews is empty.'
  if (data.first_month === null)
    return `None of the ${formatPlural(data.reviews, 'review')} of this file has a mention time.`
  if (figures.reviews?.value === 0)
    return (
      `No review of this file was mentioned in ${formatMonth(month)}. It has reviews from ` +
      `${formatMonth(data.first_month)} to ${formatMonth(data.last_month ?? data.first_month)}.`
    )
  return is_over ? undefined : `${formatMonth(month)} was not over when the reviews were read; its figures will change.`
}

/** More groups are for `--format csv`: the page is for two or three sheets of paper. */
const maxGroups = { regions: 8, deleted_reviews: 3, others: 5 } as const

export const listGroupSections = ({ has_regions }: Report): ReadonlyArray<readonly [GroupSectionName, GroupSection]> =>
  (Object.entries(groupSections) as ReadonlyArray<readonly [GroupSectionName, GroupSection]>).filter(
    ([name]) => name !== 'regions' || has_regions,
  )

const renderGroups = (report: Report, name: GroupSectionName, more?: Html): Html | undefined => {
  const section: GroupSection = groupSections[name]
  const groups = report[name]
  if (groups.length === 0) return undefined
  const most = name === 'regions' || name === 'deleted_reviews' ? maxGroups[name] : maxGroups.others
  const order = metrics[section.order].title.toLowerCase()
  const caption =
    groups.length > most
      ? `The ${most} of ${formatCount(groups.length)} with the most: ${order}. --format csv has all.`
      : `All, the most first: ${order}.`
  return renderSection(
    section.title,
    renderComparisons(
      `${section.note === undefined ? '' : `${section.note} `}${caption}`,
      section.one,
      section.shown.map((metric) => [metric, metrics[metric]]),
      groups.slice(0, most),
    ),
    more,
  )
}

const renderSections = (report: Report): ReadonlyArray<Html | undefined> => {
  const months = { month: report.month, previous: report.previous_month }
  const health = renderHealth({ health: report.health, timeZone: report.time_zone })
  if (report.data === null || report.data.reviews === 0) return [health]
  const groups = (name: GroupSectionName, more?: Html) => renderGroups(report, name, more)
  return [
    renderAlerts(report.alerts, months, renderLiabilities(report.open_liabilities)),
    renderOpenTasks(report.open_tasks),
    report.has_regions ? groups('regions') : undefined,
    groups('owners'),
    groups('locations', renderLocationEstimates(report.location_estimates)),
    groups('sources'),
    groups('providers'),
    groups('categories'),
    renderPair(renderResponses(report.response_times, months), renderRatings(report.ratings, months)),
    renderTrend(report.trend, report.is_over),
    groups('deleted_reviews'),
    health,
  ]
}

const renderContents = (sections: ReadonlyArray<Html | undefined>): Html => {
  const titles = [
    ...sections
      .map((section) => section?.text ?? '')
      .join('')
      .matchAll(/<h2 id="([^"]*)">([^<]*)/g),
  ]
  return html`<nav aria-label="Contents"><ul>${titles.map(([, id, title]) => html`<li><a href="#${id}">${title}</a></li>`)}</ul></nav>`
}

/** The report as one HTML page that needs no other file and forbids the browser to fetch anything. */
export const renderReport = (report: Report): string => {
  const { month, previous_month, file, time_zone, made_at, read_at } = report
  const sections = renderSections(report)
  const notice = explainMonth(report)
  return html`${new Html('<!doctype html>')}
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<link rel="icon" href="data:,">
<title>Feedback in ${formatMonth(month)}: ${file}</title>
<style>${new Html(pageStyle)}</style>
</head>
<body>
<header>
<h1>Feedback in ${formatMonth(month)}</h1>
<p class="quiet">Beside each figure: ${formatMonth(previous_month)}, and the change; one for the worse has an exclamation mark. Figures are of the reviews mentioned in
the month, as they stand now. ${file}, last read ${formatMinute(read_at, time_zone)}, report made ${formatMinute(made_at, time_zone)}, ${time_zone}.</p>
${notice === undefined ? undefined : html`<p class="notice">${notice}</p>`}
${renderKeyFigures(report)}
${renderContents(sections)}
</header>
<main>
${sections}
</main>
</body>
</html>
`.text
}
