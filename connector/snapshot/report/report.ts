import { basename } from 'node:path'
import { defined } from '../../cdk'
import type { Snapshot } from '../store/database'
import { readReportingTimeZone } from '../store/metadata'
import { listStreamTables } from '../store/tables'
import { createTemporaryViews } from '../store/views'
import type { FindStateProblem } from '../verify/loads'
import { countChecks } from '../verify/verify'
import { type DataHealth, readDataHealth, renderHealth } from './health'
import {
  formatCount,
  formatDay,
  formatHours,
  formatMinute,
  formatPlural,
  formatRating,
  formatShare,
  Html,
  html,
  pageStyle,
  renderPair,
} from './html'
import { type LiabilityStatistics, readLiabilityStatistics, renderLiabilities, severities } from './liabilities'
import { type LocationStatistics, readLocationStatistics, renderLocations } from './locations'
import { type ResponseStatistics, readResponseStatistics, renderResponses } from './responses'
import { type ReviewStatistics, readReviewStatistics, renderRatings, renderReviews } from './reviews'
import { readSentimentStatistics, renderSentiments, type SentimentStatistics } from './sentiments'

/** The report's numbers as plain data; times in ISO 8601, UTC, days and months those of the time zone. Null: the file does not have the streams for that section. */
export type Report = {
  readonly file: string
  readonly madeAt: string
  readonly timeZone: string
  readonly reviews: ReviewStatistics | null
  readonly sentiments: SentimentStatistics | null
  /** Ranked, the best first. */
  readonly locations: ReadonlyArray<LocationStatistics> | null
  readonly liabilities: LiabilityStatistics | null
  readonly responses: ResponseStatistics | null
  readonly health: DataHealth
}

/** Reads the report's numbers from a snapshot, without changing it. `now`: milliseconds since 1970. */
export const readReport = async (
  snapshot: Snapshot,
  now: number,
  findStateProblem?: FindStateProblem,
): Promise<Report> => {
  const { db } = snapshot
  const tables = await listStreamTables(db)
  const timeZone = await readReportingTimeZone(db)
  const reviews = (await createTemporaryViews(db)) ? await readReviewStatistics(db, timeZone) : null
  return {
    file: basename(db.path),
    madeAt: new Date(now).toISOString(),
    timeZone,
    reviews,
    sentiments: await readSentimentStatistics(db, tables),
    locations: reviews && (await readLocationStatistics(db)),
    liabilities: reviews && (await readLiabilityStatistics(db)),
    responses: reviews && (await readResponseStatistics(db)),
    health: await readDataHealth(snapshot, findStateProblem),
  }
}

type KeyFigure = { readonly name: string; readonly value: string; readonly note: string; readonly bad?: true }

/** The numbers at the top of the page. */
const renderKeyFigures = (report: Report): Html =>
  html`<dl class="key">${listKeyFigures(report).map(
    ({ name, value, note, bad }) =>
      html`<div><dt>${name}</dt><dd class="${bad === true ? 'bad' : ''}">${value}</dd><dd>${note}</dd></div>`,
  )}</dl>`

const listKeyFigures = ({ reviews, liabilities, responses, health, timeZone }: Report): ReadonlyArray<KeyFigure> => {
  const figures: Array<KeyFigure> = []
  if (reviews !== null)
    figures.push({
      name: 'Reviews',
      value: formatCount(reviews.reviews),
      note: reviews.lastMention === null ? '' : `last one ${formatDay(reviews.lastMention, timeZone)}`,
    })
  if (reviews !== null && reviews.rated > 0)
    figures.push({
      name: 'Mean rating',
      value: formatRating(reviews.meanRating),
      note: `of ${formatPlural(reviews.rated, 'rated review')}`,
    })
  if (responses !== null && reviews !== null && responses.medianHours !== null)
    figures.push({
      name: 'Median answer',
      value: formatHours(responses.medianHours),
      note: `${formatShare(responses.answered, reviews.reviews)} answered`,
    })
  if (liabilities !== null)
    figures.push({
      name: 'Open liabilities',
      value: formatCount(severities.reduce((sum, name) => sum + liabilities.total[name], 0)),
      note: `${formatCount(liabilities.total.high)} of high severity`,
    })
  const { hold, checked, nothing } = countChecks(health.checks)
  const started = health.runs[0]?.started ?? null
  figures.push({
    name: 'Last load',
    value: started === null ? 'none' : formatMinute(started, timeZone).slice(11),
    note: started === null ? '' : `on ${formatDay(started, timeZone)}`,
  })
  figures.push({
    name: 'Checks',
    value: hold === checked ? 'all hold' : `${formatCount(checked - hold)} failed`,
    note: `of ${formatCount(checked)}${nothing === 0 ? '' : `; ${formatCount(nothing)} had nothing to check`}`,
    ...defined({ bad: hold === checked ? undefined : (true as const) }),
  })
  return figures
}

/** The report as one HTML page that needs no other file and forbids the browser to fetch anything. */
export const renderReport = (report: Report): string =>
  html`${new Html('<!doctype html>')}
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<link rel="icon" href="data:,">
<title>Feedback report: ${report.file}</title>
<style>${new Html(pageStyle)}</style>
</head>
<body>
<header>
<h1>Feedback report</h1>
<p class="quiet">${report.file}, as it stood at ${formatMinute(report.madeAt, report.timeZone)}. Times, days and months are those of ${report.timeZone}.</p>
${renderKeyFigures(report)}
</header>
<main>
${renderReviews(report.reviews)}
${renderPair(renderRatings(report.reviews), renderSentiments(report.sentiments))}
${renderLocations(report.locations)}
${renderLiabilities(report.liabilities, report.timeZone)}
${renderResponses(report)}
${renderHealth(report)}
</main>
</body>
</html>
`.text
