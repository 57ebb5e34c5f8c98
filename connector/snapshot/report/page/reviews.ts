import type { ReviewStatistics } from '../reviews'
import { plotRatingDistribution } from './figures/in-rows'
import { describeLine, formatPeriod, plotMeanRatings, plotReviewCounts } from './figures/over-time'
import { formatCount, formatPlural, formatRating, formatShare } from './format'
import { type Html, html } from './html'
import { renderFigure, renderNotice, renderSection } from './parts'

export const renderReviews = (reviews: ReviewStatistics | null): Html => {
  const title = 'Reviews over time'
  if (reviews === null) return renderSection(title, renderNotice('This file does not hold the stream reviews.'))
  return renderSection(
    title,
    reviews.reviews === 0 ? renderNotice('This file holds no reviews yet.') : renderTimeline(reviews),
  )
}

export const renderRatings = (reviews: ReviewStatistics | null): Html => {
  const title = 'Ratings'
  if (reviews === null) return renderSection(title, renderNotice('This file does not hold the stream reviews.'))
  const { ratings: counts, rated, reviews: all, meanRating } = reviews
  if (rated === 0) return renderSection(title, renderNotice('No review carries a rating.'))
  const words = counts.map((count, i) => `${i + 1}: ${formatCount(count)}, ${formatShare(count, rated)}`).toReversed()
  return renderSection(
    title,
    renderFigure(undefined, `${words.join('; ')}.`, plotRatingDistribution(reviews), {
      below: `To the nearest whole rating; the mean is ${formatRating(meanRating)}. ${formatPlural(all - rated, 'review carries', 'reviews carry')} no rating.`,
    }),
  )
}

const renderTimeline = (reviews: ReviewStatistics): Html => {
  const { points, period, undated } = reviews
  const [first, last] = [points[0], points.at(-1)]
  if (first === undefined || last === undefined) return renderNotice('No review has a mention time.')
  const span = `${formatPeriod(period, first)} to ${formatPeriod(period, last)}`
  const most = points.reduce((a, b) => (b.reviews > a.reviews ? b : a))
  const without =
    undated === 0
      ? ''
      : ` ${formatPlural(undated, 'review')} without a mention time ${undated === 1 ? 'is' : 'are'} left out.`
  return html`<div class="pair">${renderFigure(
    `Reviews by ${period}`,
    `Reviews by ${period}, ${span}; most in ${formatPeriod(period, most)}: ${formatCount(most.reviews)}.`,
    plotReviewCounts(reviews),
    { below: `By the time of mention. The first and the last ${period} may be incomplete.${without}` },
  )}${
    reviews.rated === 0
      ? undefined
      : renderFigure(
          `Mean rating by ${period}`,
          describeLine(reviews, ({ meanRating }) => formatRating(meanRating)),
          plotMeanRatings(reviews),
          {
            below: 'Of the reviews that carry a rating; a gap where there is none.',
          },
        )
  }</div>`
}
