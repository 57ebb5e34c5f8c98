import { countChecks } from '../snapshot'
import { renderChanges } from './changes'
import { type FigureColumn, renderComparison, renderEstimate, renderFigures } from './figures'
import { renderHealth } from './health'
import {
  formatCount,
  formatDay,
  formatMinute,
  formatMonth,
  formatPlural,
  Html,
  html,
  renderPair,
  renderSection,
} from './html'
import { renderLiabilities } from './liabilities'
import { renderAlerts, renderOpenTasks } from './open-work'
import { renderLocationEstimates, renderRatings } from './ratings'
import type { Report } from './report'
import { renderResponses } from './responses'
import { sampledMetrics } from './samples'
import {
  type GroupSection,
  type GroupSectionName,
  groupSections,
  listGroupSections,
  type MetricName,
  metrics,
} from './sections'
import { pageStyle } from './style'
import { renderTrend } from './trend'

/** The metrics at the top of the page. */
const keyMetrics = ['reviews', ...sampledMetrics, 'open_liabilities'] as const satisfies ReadonlyArray<MetricName>

/** A key figure without a comparison. `kind`: the CSS class of its value. */
const renderStanding = (title: string, value: string, note: string, kind = ''): Html =>
  html`<div><dt>${title}</dt><dd class="${kind}">${value}<span class="before">${note}</span></dd></div>`

/** The figures at the top of the page: the month's, and two current ones. */
const renderKeyFigures = (report: Report): Html => {
  const { hold, checked } = countChecks(report.health.checks)
  const started = report.health.runs[0]?.started ?? null
  const ofMonth = keyMetrics.map(
    (name) =>
      html`<div><dt>${metrics[name].title}</dt><dd>${renderComparison(metrics[name], report.figures[name])}</dd></div>`,
  )
  const ofNow = [
    renderStanding('Alerts now', formatCount(report.alerts.total), formatPlural(report.open_tasks.total, 'open task')),
    renderStanding(
      'Checks of the data',
      hold === checked ? 'all hold' : `${formatCount(checked - hold)} failed`,
      started === null ? 'nothing loaded' : `load of ${formatDay(started, report.time_zone)}`,
      hold === checked ? '' : 'bad',
    ),
  ]
  return html`<dl class="key">${ofMonth}${ofNow}</dl>`
}

/** Why a page has no figures, or figures that may change; undefined if everything is normal. */
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

/** How many groups the page shows, to fit on two or three sheets of paper. */
const maxGroups = { regions: 6, deleted_reviews: 3, others: 5 } as const

/** A column of the page. An estimate is shown with its interval. */
const toColumn = (name: MetricName): FigureColumn => ({
  title: metrics[name].title,
  cell: (figures) =>
    name === 'rating_estimate'
      ? renderEstimate(metrics[name], figures)
      : renderComparison(metrics[name], figures[name]),
})

const renderGroups = (report: Report, name: GroupSectionName, more?: Html): Html | undefined => {
  const section: GroupSection = groupSections[name]
  const groups = report[name]
  if (groups.length === 0) return undefined
  const most = name === 'regions' || name === 'deleted_reviews' ? maxGroups[name] : maxGroups.others
  const shown = groups.length > most ? `The ${most} of ${formatCount(groups.length)} ` : `All, starting with those `
  return renderSection(
    section.title,
    renderFigures(
      `${shown}${section.orderedBy}.${section.note === undefined ? '' : ` ${section.note}`}`,
      section.one,
      section.shown.map(toColumn),
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
    renderChanges(report),
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
  const texts = sections.map((section) => section?.text ?? '').join('')
  const links = [...texts.matchAll(/<h2 id="([^"]*)">([^<]*)/g)].map(
    ([, id, title]) => html`<li><a href="#${id}">${title}</a></li>`,
  )
  return html`<nav aria-label="Contents"><ul>${links}</ul></nav>`
}

const hasRanges = (report: Report): boolean =>
  [report.figures, ...listGroupSections(true).flatMap(([name]) => report[name].map(({ figures }) => figures))].some(
    (figures) =>
      Object.values(figures).some(({ test }) => test?.range !== undefined || test?.previous_range !== undefined),
  )

/** What the figures are, and when they were read. */
const renderIntroduction = (report: Report): Html => {
  const { previous_month, file, time_zone, made_at, read_at } = report
  const times = [read_at, made_at].map((time) => formatMinute(time, time_zone))
  return html`<p class="quiet">Figures cover the reviews mentioned in the month, compared with
${formatMonth(previous_month)}. Answers and closed tasks are compared at the same age: 7 and 30 days after the mention,
for reviews that are at least that old.${
    hasRanges(report) ? ' A range means that it is not known when some tasks were closed.' : ''
  } Open work is as of now. ${file}, last read ${times[0]}, report made ${times[1]}, ${time_zone}.</p>`
}

/** The report as one HTML page without other files. It forbids the browser to load anything. */
export const renderReport = (report: Report): string => {
  const title = `Feedback in ${formatMonth(report.month)}`
  const sections = renderSections(report)
  const notice = explainMonth(report)
  return html`${new Html('<!doctype html>')}
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<link rel="icon" href="data:,">
<title>${title}: ${report.file}</title>
<style>${new Html(pageStyle)}</style>
</head>
<body>
<header>
<h1>${title}</h1>
${renderIntroduction(report)}
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
