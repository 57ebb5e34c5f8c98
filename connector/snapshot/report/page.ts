import type { Report } from '../report'
import { minute } from './page/format'
import { showHealth } from './page/health'
import { Html, html } from './page/html'
import { keyFigures } from './page/key-figures'
import { showLiabilities } from './page/liabilities'
import { showLocations } from './page/locations'
import { showResponses } from './page/responses'
import { showRatings, showReviews } from './page/reviews'
import { showSentiments } from './page/sentiments'
import { style } from './page/style'

/** The report as one HTML page that needs nothing else, and forbids the browser to fetch anything. */
export const page = (report: Report): string =>
  html`${new Html('<!doctype html>')}
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<link rel="icon" href="data:,">
<title>Feedback report: ${report.file}</title>
<style>${new Html(style)}</style>
</head>
<body>
<header>
<h1>Feedback report</h1>
<p class="quiet">${report.file}, as it stood at ${minute(report.madeAt)}. All times are UTC.</p>
${keyFigures(report)}
</header>
<main>
${showReviews(report.reviews)}
<div class="pair">${showRatings(report.reviews)}${showSentiments(report.sentiments)}</div>
${showLocations(report.locations)}
${showLiabilities(report.liabilities)}
${showResponses(report)}
${showHealth(report)}
</main>
</body>
</html>
`.text
