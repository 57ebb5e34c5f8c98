import type { Reviews } from '../reviews'
import { ratingDistribution } from './figures/in-rows'
import { lineWords, periodName, ratingOverTime, reviewsOverTime } from './figures/over-time'
import { plural, rating, share, whole } from './format'
import { type Html, html } from './html'
import { chart, missing, section } from './parts'

export const showReviews = (reviews: Reviews | null): Html => {
  const title = 'Reviews over time'
  if (reviews === null) return section(title, missing('This file does not hold the stream reviews.'))
  return section(title, reviews.reviews === 0 ? missing('This file holds no reviews yet.') : overTime(reviews))
}

export const showRatings = (reviews: Reviews | null): Html => {
  const title = 'Ratings'
  if (reviews === null) return section(title, missing('This file does not hold the stream reviews.'))
  const { ratings: counts, rated, reviews: all, meanRating } = reviews
  if (rated === 0) return section(title, missing('No review carries a rating.'))
  const words = counts.map((count, i) => `${i + 1}: ${whole(count)}, ${share(count, rated)}`).toReversed()
  return section(
    title,
    chart(undefined, `${words.join('; ')}.`, ratingDistribution(reviews), {
      below: `To the nearest whole rating; the mean is ${rating(meanRating)}. ${plural(all - rated, 'review carries', 'reviews carry')} no rating.`,
    }),
  )
}

const overTime = (reviews: Reviews): Html => {
  const { points, period, undated } = reviews
  const [first, last] = [points[0], points.at(-1)]
  if (first === undefined || last === undefined) return missing('No review has a mention time.')
  const span = `${periodName(period, first)} to ${periodName(period, last)}`
  const most = points.reduce((a, b) => (b.reviews > a.reviews ? b : a))
  const without =
    undated === 0
      ? ''
      : ` ${plural(undated, 'review')} without a mention time ${undated === 1 ? 'is' : 'are'} left out.`
  return html`<div class="pair">${chart(
    `Reviews by ${period}`,
    `Reviews by ${period}, ${span}; most in ${periodName(period, most)}: ${whole(most.reviews)}.`,
    reviewsOverTime(reviews),
    { below: `By the time of mention. The first and the last ${period} may be incomplete.${without}` },
  )}${
    reviews.rated === 0
      ? undefined
      : chart(
          `Mean rating by ${period}`,
          lineWords(reviews, ({ meanRating }) => rating(meanRating)),
          ratingOverTime(reviews),
          {
            below: 'Of the reviews that carry a rating; a gap where there is none.',
          },
        )
  }</div>`
}
