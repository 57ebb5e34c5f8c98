import * as t from 'io-ts'
import { Content, Engagement, Liability, type Review, Sentiment, Task } from '../api/model/review'
import { described, Instant, Int64 } from '../api/model/scalar'
import { stream } from '../cdk/stream'
import { type ReviewItem, toRow } from './review-item'
import { reviewExport } from './reviews'

const ofReview = {
  reviewId: described('Id of the review')(Int64),
  reviewModifiedTime: described('Last modification of the review this was read from')(Instant),
}
const ofContent = { ...ofReview, contentId: described('Id of the content it was found in')(Int64) }

const { id: _content, sentiments: _sentiments, liabilities: _liabilities, ...contentProps } = Content.props
export const ReviewContent = t.intersection(
  [t.type({ ...ofReview, id: described('Content id')(Int64) }), t.partial(contentProps)],
  'ReviewContent',
)

const { id: _sentiment, reviewId: _review, ...sentimentProps } = Sentiment.props
export const ReviewSentiment = t.intersection(
  [t.type({ ...ofContent, id: described('Sentiment id')(Int64) }), t.partial(sentimentProps)],
  'ReviewSentiment',
)

const { liabilityId: _liability, ...liabilityProps } = Liability.props
export const ReviewLiability = t.intersection(
  [t.type({ ...ofContent, liabilityId: described('Liability id')(Int64) }), t.partial(liabilityProps)],
  'ReviewLiability',
)

export const ReviewTask = t.intersection([t.type(ofReview), t.partial(Task.props)], 'ReviewTask')

export const ReviewEngagement = t.intersection(
  [
    t.type({ ...ofReview, position: described('Its place among the engagements of the review, from 0')(Int64) }),
    t.partial(Engagement.props),
  ],
  'ReviewEngagement',
)

/** The content elements that have an id: without it a part has no key and is no row. */
const contentsOf = ({ contents }: Review) =>
  (contents ?? []).flatMap((content) => (content?.id == null ? [] : [{ ...content, id: content.id }]))

/** A stream of what a review holds; each record carries the version of its review, so that a stale one can be told. */
const parts = (cut: (review: Review) => ReadonlyArray<object>) => (item: ReviewItem) => {
  const review = item.review()
  return cut(review).map((part) => toRow({ ...part, reviewId: review.id, reviewModifiedTime: review.modifiedTime }))
}

const shared = { cursor: 'reviewModifiedTime', reader: reviewExport } as const

export const reviewContents = stream({
  ...shared,
  name: 'review_contents',
  codec: ReviewContent,
  primaryKey: ['reviewId', 'id'],
  project: parts((review) => contentsOf(review).map(({ sentiments: _, liabilities: __, ...content }) => content)),
})

export const reviewSentiments = stream({
  ...shared,
  name: 'review_sentiments',
  codec: ReviewSentiment,
  primaryKey: ['reviewId', 'contentId', 'id'],
  project: parts((review) =>
    contentsOf(review).flatMap(({ id: contentId, sentiments }) =>
      (sentiments ?? []).flatMap((sentiment) => (sentiment?.id == null ? [] : [{ ...sentiment, contentId }])),
    ),
  ),
})

export const reviewLiabilities = stream({
  ...shared,
  name: 'review_liabilities',
  codec: ReviewLiability,
  primaryKey: ['reviewId', 'contentId', 'liabilityId'],
  project: parts((review) =>
    contentsOf(review).flatMap(({ id: contentId, liabilities }) =>
      (liabilities ?? []).flatMap((liability) => (liability?.liabilityId == null ? [] : [{ ...liability, contentId }])),
    ),
  ),
})

export const reviewTasks = stream({
  ...shared,
  name: 'review_tasks',
  codec: ReviewTask,
  primaryKey: ['reviewId'],
  project: parts(({ taskDetails }) => (taskDetails == null ? [] : [taskDetails])),
})

export const reviewEngagements = stream({
  ...shared,
  name: 'review_engagements',
  codec: ReviewEngagement,
  primaryKey: ['reviewId', 'position'],
  project: parts(({ engagements }) => (engagements ?? []).map((engagement, position) => ({ ...engagement, position }))),
})
