import * as t from 'io-ts'
import { carve, isThere, rawAt } from '../api/cut/carve'
import type { Place } from '../api/cut/outline'
import { Content as ContentCodec, Engagement, Liability, Sentiment, Task } from '../api/model/review'
import { described, Instant, Int64 } from '../api/model/scalar'
import type { Row } from '../cdk/message'
import { stream } from '../cdk/stream'
import type { Members, ReviewItem } from './review-item'
import { reviewExport } from './reviews'

const ofReview = {
  reviewId: described('Id of the review')(Int64),
  reviewModifiedTime: described('Last modification of the review this was read from')(Instant),
}
const ofContent = { ...ofReview, contentId: described('Id of the content it was found in')(Int64) }

const { id: _content, sentiments: _sentiments, liabilities: _liabilities, ...contentProps } = ContentCodec.props
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

/** Takes an object of a review as a part, without members that it is given or that have streams of their own. */
type Add = (object: Place, without: ReadonlyArray<Place | undefined>, given?: string) => void

/** A stream of what a review holds; each record carries the version of its review, so that a stale one can be told. */
const parts =
  (find: (review: Members, json: Uint8Array, add: Add) => void) =>
  ({ cut: { id }, look }: ReviewItem): ReadonlyArray<Row> => {
    const { json, members, modified } = look()
    const version = `"reviewId":${id},${modified}`
    const rows: Row[] = []
    find(members, json, (object, without, given = '') => {
      rows.push({ json: carve(json, object, without, given + version) })
    })
    return rows
  }

type Content = NonNullable<Members['contents']>['elements'][number]

/** The contents of a review that have an id: without it a content has no key, and neither has what it holds. */
const eachContent = (
  { contents }: Members,
  json: Uint8Array,
  visit: (content: Content, given: string) => void,
): void => {
  for (const content of contents?.elements ?? []) {
    const { id } = content.members
    if (isThere(json, id)) visit(content, `"contentId":${rawAt(json, id)},`)
  }
}

const shared = { cursor: 'reviewModifiedTime', reader: reviewExport } as const

export const reviewContents = stream({
  ...shared,
  name: 'review_contents',
  codec: ReviewContent,
  primaryKey: ['reviewId', 'id'],
  project: parts((review, json, add) =>
    eachContent(review, json, (content) => {
      const { sentiments, liabilities, reviewId, reviewModifiedTime } = content.members
      add(content, [sentiments, liabilities, reviewId, reviewModifiedTime])
    }),
  ),
})

export const reviewSentiments = stream({
  ...shared,
  name: 'review_sentiments',
  codec: ReviewSentiment,
  primaryKey: ['reviewId', 'contentId', 'id'],
  project: parts((review, json, add) =>
    eachContent(review, json, ({ members: { sentiments } }, given) => {
      for (const sentiment of sentiments?.elements ?? []) {
        const { id, reviewId, reviewModifiedTime, contentId } = sentiment.members
        if (isThere(json, id)) add(sentiment, [reviewId, reviewModifiedTime, contentId], given)
      }
    }),
  ),
})

export const reviewLiabilities = stream({
  ...shared,
  name: 'review_liabilities',
  codec: ReviewLiability,
  primaryKey: ['reviewId', 'contentId', 'liabilityId'],
  project: parts((review, json, add) =>
    eachContent(review, json, ({ members: { liabilities } }, given) => {
      for (const liability of liabilities?.elements ?? []) {
        const { liabilityId, reviewId, reviewModifiedTime, contentId } = liability.members
        if (isThere(json, liabilityId)) add(liability, [reviewId, reviewModifiedTime, contentId], given)
      }
    }),
  ),
})

export const reviewTasks = stream({
  ...shared,
  name: 'review_tasks',
  codec: ReviewTask,
  primaryKey: ['reviewId'],
  project: parts(({ taskDetails }, json, add) => {
    if (isThere(json, taskDetails))
      add(taskDetails, [taskDetails.members.reviewId, taskDetails.members.reviewModifiedTime])
  }),
})

export const reviewEngagements = stream({
  ...shared,
  name: 'review_engagements',
  codec: ReviewEngagement,
  primaryKey: ['reviewId', 'position'],
  project: parts(({ engagements }, _, add) =>
    engagements?.elements.forEach((engagement, place) => {
      const { position, reviewId, reviewModifiedTime } = engagement.members
      add(engagement, [position, reviewId, reviewModifiedTime], `"position":${place},`)
    }),
  ),
})
