import * as t from 'io-ts'
import { carve, isThere, rawAt } from '../api/cut/carve'
import type { Outline, Place } from '../api/cut/outline'
import { Content as ContentCodec, Engagement, Liability, Sentiment, Task } from '../api/model/review'
import { described, Instant, Int64 } from '../api/model/scalar'
import type { Row } from '../cdk/message'
import { stream } from '../cdk/stream'
import type { Look, ReviewItem } from './review-item'
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

/** An object of a review as a part, without members that it is given or that have streams of their own. */
type Part = (object: Place, without: ReadonlyArray<Place | undefined>, given: string) => Row

/** A stream of what a review holds; each record carries the version of its review, so that a stale one can be told. */
const parts =
  (find: (look: Look, part: Part) => ReadonlyArray<Row>) =>
  ({ look }: ReviewItem): ReadonlyArray<Row> => {
    const found = look()
    return find(found, (object, without, given) => carve(found.json, object, without, given))
  }

const none: ReadonlyArray<never> = []

type Content = Look['contents'][number]['members']
type Held = Outline<{ readonly [name in 'reviewId' | 'reviewModifiedTime' | 'contentId']: 'value' }>

/** A stream of what contents hold in one of their lists. */
const held = <H extends Held>(
  listOf: (content: Content) => { readonly elements: ReadonlyArray<H> } | undefined,
  keyOf: (held: H['members']) => Place | undefined,
) =>
  parts(({ json, contents, version }, part) => {
    const rows: Row[] = []
    for (const { members: content } of contents) {
      const elements = listOf(content)?.elements ?? none
      if (elements.length === 0 || content.id === undefined) continue
      const given = `"contentId":${rawAt(json, content.id)},${version}`
      for (const element of elements) {
        const { reviewId, reviewModifiedTime, contentId } = element.members
        if (isThere(json, keyOf(element.members)))
          rows.push(part(element, [reviewId, reviewModifiedTime, contentId], given))
      }
    }
    return rows
  })

const shared = { cursor: 'reviewModifiedTime', reader: reviewExport } as const

export const reviewContents = stream({
  ...shared,
  name: 'review_contents',
  codec: ReviewContent,
  primaryKey: ['reviewId', 'id'],
  project: parts(({ contents, version }, part) =>
    contents.map((content) => {
      const { sentiments, liabilities, reviewId, reviewModifiedTime } = content.members
      return part(content, [sentiments, liabilities, reviewId, reviewModifiedTime], version)
    }),
  ),
})

export const reviewSentiments = stream({
  ...shared,
  name: 'review_sentiments',
  codec: ReviewSentiment,
  primaryKey: ['reviewId', 'contentId', 'id'],
  project: held(
    ({ sentiments }) => sentiments,
    ({ id }) => id,
  ),
})

export const reviewLiabilities = stream({
  ...shared,
  name: 'review_liabilities',
  codec: ReviewLiability,
  primaryKey: ['reviewId', 'contentId', 'liabilityId'],
  project: held(
    ({ liabilities }) => liabilities,
    ({ liabilityId }) => liabilityId,
  ),
})

export const reviewTasks = stream({
  ...shared,
  name: 'review_tasks',
  codec: ReviewTask,
  primaryKey: ['reviewId'],
  project: parts(({ json, members: { taskDetails }, version }, part) =>
    isThere(json, taskDetails)
      ? [part(taskDetails, [taskDetails.members.reviewId, taskDetails.members.reviewModifiedTime], version)]
      : none,
  ),
})

export const reviewEngagements = stream({
  ...shared,
  name: 'review_engagements',
  codec: ReviewEngagement,
  primaryKey: ['reviewId', 'position'],
  project: parts(({ members: { engagements }, version }, part) =>
    (engagements?.elements ?? none).map((engagement, place) => {
      const { position, reviewId, reviewModifiedTime } = engagement.members
      return part(engagement, [position, reviewId, reviewModifiedTime], `"position":${place},${version}`)
    }),
  ),
})
