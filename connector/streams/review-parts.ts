import * as t from 'io-ts'
import { carve, isThere, type Place, textAt } from '../api/cut/outline'
import { Content as ContentCodec, Engagement, Liability, Sentiment, Task } from '../api/model/review'
import { described, Instant, Int64 } from '../api/model/scalar'
import { stream } from '../cdk/stream'
import type { ReviewItem, ReviewOutline } from './review-item'
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

/** What a part of a review is made of: its object, what of it stays behind, and the members it is given. */
type Part = {
  readonly object: Place
  readonly without: ReadonlyArray<Place | undefined>
  readonly given?: string
}

/** A stream of what a review holds; each record carries the version of its review, so that a stale one can be told. */
const parts =
  (partsOf: (review: ReviewOutline['members'], json: Uint8Array) => ReadonlyArray<Part>) => (item: ReviewItem) => {
    const { json, id } = item.cut
    const { members } = item.outline()
    const found = partsOf(members, json)
    if (found.length === 0) return []
    const version = `"reviewId":${id},"reviewModifiedTime":"${textOf(json, members.modifiedTime)}"`
    return found.map(({ object, without, given = '' }) => ({
      json: carve(json, object, without, `${given}${version}`),
    }))
  }

const textOf = (json: Uint8Array, at: Place | undefined): string => (at === undefined ? '' : textAt(json, at))

/** What stands in the contents of a review: without its id a content has no key, and neither has what it holds. */
const inContents =
  (partsOf: (content: Content['members'], json: Uint8Array) => ReadonlyArray<Part>) =>
  ({ contents }: ReviewOutline['members'], json: Uint8Array): ReadonlyArray<Part> =>
    (contents?.elements ?? []).flatMap(({ members }) => {
      if (!isThere(json, members.id)) return []
      const given = `"contentId":${textAt(json, members.id)},`
      return partsOf(members, json).map((part) => ({ ...part, given }))
    })

type Content = NonNullable<ReviewOutline['members']['contents']>['elements'][number]

const shared = { cursor: 'reviewModifiedTime', reader: reviewExport } as const

export const reviewContents = stream({
  ...shared,
  name: 'review_contents',
  codec: ReviewContent,
  primaryKey: ['reviewId', 'id'],
  project: parts(({ contents }, json) =>
    (contents?.elements ?? []).flatMap((object) => {
      const { id, sentiments, liabilities, reviewId, reviewModifiedTime } = object.members
      return isThere(json, id) ? [{ object, without: [sentiments, liabilities, reviewId, reviewModifiedTime] }] : []
    }),
  ),
})

export const reviewSentiments = stream({
  ...shared,
  name: 'review_sentiments',
  codec: ReviewSentiment,
  primaryKey: ['reviewId', 'contentId', 'id'],
  project: parts(
    inContents(({ sentiments }, json) =>
      (sentiments?.elements ?? []).flatMap((object) => {
        const { id, reviewId, reviewModifiedTime, contentId } = object.members
        return isThere(json, id) ? [{ object, without: [reviewId, reviewModifiedTime, contentId] }] : []
      }),
    ),
  ),
})

export const reviewLiabilities = stream({
  ...shared,
  name: 'review_liabilities',
  codec: ReviewLiability,
  primaryKey: ['reviewId', 'contentId', 'liabilityId'],
  project: parts(
    inContents(({ liabilities }, json) =>
      (liabilities?.elements ?? []).flatMap((object) => {
        const { liabilityId, reviewId, reviewModifiedTime, contentId } = object.members
        return isThere(json, liabilityId) ? [{ object, without: [reviewId, reviewModifiedTime, contentId] }] : []
      }),
    ),
  ),
})

export const reviewTasks = stream({
  ...shared,
  name: 'review_tasks',
  codec: ReviewTask,
  primaryKey: ['reviewId'],
  project: parts(({ taskDetails }, json) => {
    if (!isThere(json, taskDetails)) return []
    const { reviewId, reviewModifiedTime } = taskDetails.members
    return [{ object: taskDetails, without: [reviewId, reviewModifiedTime] }]
  }),
})

export const reviewEngagements = stream({
  ...shared,
  name: 'review_engagements',
  codec: ReviewEngagement,
  primaryKey: ['reviewId', 'position'],
  project: parts(({ engagements }) =>
    (engagements?.elements ?? []).map((object, place) => {
      const { position, reviewId, reviewModifiedTime } = object.members
      return { object, without: [position, reviewId, reviewModifiedTime], given: `"position":${place},` }
    }),
  ),
})
