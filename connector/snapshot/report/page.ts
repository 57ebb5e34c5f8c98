import type { Report } from '../report'
import { formatMinute } from './page/format'
import { renderHealth } from './page/health'
import { Html, html } from './page/html'
import { renderKeyFigures } from './page/key-figures'
import { renderLiabilities } from './page/liabilities'
import { renderLocations } from './page/locations'
import { renderResponses } from './page/responses'
import { renderRatings, renderReviews } from './page/reviews'
import { renderSentiments } from './page/sentiments'
import { pageStyle } from './page/style'

/** The report as one HTML page that needs nothing else, and forbids the browser to fetch anything. */
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
<p class="quiet">${report.file}, as it stood at ${formatMinute(report.madeAt)}. All times are UTC.</p>
${renderKeyFigures(report)}
</header>
<main>
${renderReviews(report.reviews)}
<div class="pair">${renderRatings(report.reviews)}${renderSentiments(report.sentiments)}</div>
${renderLocations(report.locations)}
${renderLiabilities(report.liabilities)}
${renderResponses(report)}
${renderHealth(report)}
</main>
</body>
</html>
`.text
