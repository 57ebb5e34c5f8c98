import type { Report } from '../../report'
import { answeredOverTime, lineWords } from './figures/over-time'
import { responseTimes } from './figures/response-times'
import { hours, plural, share, whole } from './format'
import { type Html, html } from './html'
import { chart, missing, section } from './parts'

export const showResponses = ({ responses, reviews }: Report): Html => {
  const title = 'Response times'
  if (responses === null || reviews === null)
    return section(title, missing('This file does not hold the stream reviews.'))
  const { answered, medianHours, ninthDecileHours, buckets, unclear } = responses
  if (answered === 0) return section(title, missing('No review has an answer.'))
  const odd =
    unclear === 0
      ? ''
      : ` ${plural(unclear, 'answer')} older than the review, or to one without a time, ${unclear === 1 ? 'is' : 'are'} left out.`
  return section(
    title,
    html`<div class="pair">${chart(
      'From a review to its first answer',
      `${buckets.map(({ label, count }) => `${label}: ${whole(count)}`).join('; ')}.`,
      responseTimes(responses),
      {
        below: `${plural(answered, 'review')} answered, ${share(answered, reviews.reviews)} of all; half of them within ${hours(medianHours)}, nine of ten within ${hours(ninthDecileHours)}.${odd}`,
      },
    )}${chart(
      'Reviews with an answer',
      lineWords(reviews, (point) => share(point.answered, point.reviews)),
      answeredOverTime(reviews),
      {
        below: `By ${reviews.period} of mention; late answers still raise the last ones.`,
      },
    )}</div>`,
  )
}
