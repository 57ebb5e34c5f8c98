import type { Report } from '../../report'
import { describeLine, plotAnswerShares } from './figures/over-time'
import { plotResponseTimes } from './figures/response-times'
import { formatCount, formatHours, formatPlural, formatShare } from './format'
import { type Html, html } from './html'
import { renderFigure, renderNotice, renderSection } from './parts'

export const renderResponses = ({ responses, reviews }: Report): Html => {
  const title = 'Response times'
  if (responses === null || reviews === null)
    return renderSection(title, renderNotice('This file does not hold the stream reviews.'))
  const { answered, medianHours, ninthDecileHours, buckets, unclear } = responses
  if (answered === 0) return renderSection(title, renderNotice('No review has an answer.'))
  const odd =
    unclear === 0
      ? ''
      : ` ${formatPlural(unclear, 'answer')} older than the review, or to one without a time, ${unclear === 1 ? 'is' : 'are'} left out.`
  return renderSection(
    title,
    html`<div class="pair">${renderFigure(
      'From a review to its first answer',
      `${buckets.map(({ label, count }) => `${label}: ${formatCount(count)}`).join('; ')}.`,
      plotResponseTimes(responses),
      {
        below: `${formatPlural(answered, 'review')} answered, ${formatShare(answered, reviews.reviews)} of all; half of them within ${formatHours(medianHours)}, nine of ten within ${formatHours(ninthDecileHours)}.${odd}`,
      },
    )}${renderFigure(
      'Reviews with an answer',
      describeLine(reviews, (point) => formatShare(point.answered, point.reviews)),
      plotAnswerShares(reviews),
      {
        below: `By ${reviews.period} of mention; late answers still raise the last ones.`,
      },
    )}</div>`,
  )
}
