import * as t from 'io-ts'
import {
  Content as ContentCodec,
  describeAttribute,
  Engagement,
  Instant,
  Int64,
  Liability,
  Sentiment,
  TaskDetails,
} from '../api'
import { defineStream, type Row } from '../cdk'
import { extractObject, type FieldOffset, hasField, type ObjectOffsets, rawFieldText } from '../export'
import type { ReviewFields, ReviewItem } from './review-item'
import { reviewExportReader } from './reviews'

const reviewKeyProps = {
  reviewId: describeAttribute('Id of the review')(Int64),
  reviewModifiedTime: describeAttribute('Last modification of the review this was read from')(Instant),
}
const contentKeyProps = { ...reviewKeyProps, contentId: describeAttribute('Id of the content it was found in')(Int64) }

const { id: _content, sentiments: _sentiments, liabilities: _liabilities, ...contentProps } = ContentCodec.props
export const ReviewContent = t.intersection(
  [t.type({ ...reviewKeyProps, id: describeAttribute('Content id')(Int64) }), t.partial(contentProps)],
  'ReviewContent',
)

const { id: _sentiment, reviewId: _review, ...sentimentProps } = Sentiment.props
export const ReviewSentiment = t.intersection(
  [t.type({ ...contentKeyProps, id: describeAttribute('Sentiment id')(Int64) }), t.partial(sentimentProps)],
  'ReviewSentiment',
)

const { liabilityId: _liability, ...liabilityProps } = Liability.props
export const ReviewLiability = t.intersection(
  [t.type({ ...contentKeyProps, liabilityId: describeAttribute('Liability id')(Int64) }), t.partial(liabilityProps)],
  'ReviewLiability',
)

export const ReviewTask = t.intersection([t.type(reviewKeyProps), t.partial(TaskDetails.props)], 'ReviewTask')

export const ReviewEngagement = t.intersection(
  [
    t.type({
      ...reviewKeyProps,
      position: describeAttribute('Its place among the engagements of the review, from 0')(Int64),
    }),
    t.partial(Engagement.props),
  ],
  'ReviewEngagement',
)

/** An object of a review as a part, without members that it is given or that have streams of their own. */
type EncodeChild = (object: FieldOffset, without: ReadonlyArray<FieldOffset | undefined>, given: string) => Row

/** A stream of what a review holds; each record carries the version of its review, so that a stale one can be told. */
const projectChildren =
  (find: (look: ReviewFields, part: EncodeChild) => ReadonlyArray<Row>) =>
  ({ readFields }: ReviewItem): ReadonlyArray<Row> => {
    const found = readFields()
    return find(found, (object, without, given) => extractObject(found.json, object, without, given))
  }

const noRows: ReadonlyArray<never> = []

type ContentMembers = ReviewFields['contents'][number]['members']
type ContentChild = ObjectOffsets<{ readonly [name in 'reviewId' | 'reviewModifiedTime' | 'contentId']: 'value' }>

/** A stream of what contents hold in one of their lists. */
const projectContentChildren = <H extends ContentChild>(
  listOf: (content: ContentMembers) => { readonly elements: ReadonlyArray<H> } | undefined,
  keyOf: (held: H['members']) => FieldOffset | undefined,
) =>
  projectChildren(({ json, contents, versionMembers }, part) => {
    const rows: Row[] = []
    for (const { members: content } of contents) {
      const elements = listOf(content)?.elements ?? noRows
      if (elements.length === 0 || content.id === undefined) continue
      const given = `"contentId":${rawFieldText(json, content.id)},${versionMembers}`
      for (const element of elements) {
        const { reviewId, reviewModifiedTime, contentId } = element.members
        if (hasField(json, keyOf(element.members)))
          rows.push(part(element, [reviewId, reviewModifiedTime, contentId], given))
      }
    }
    return rows
  })

const childStreamOptions = { cursor: 'reviewModifiedTime', reader: reviewExportReader } as const

export const reviewContentsStream = defineStream({
  ...childStreamOptions,
  name: 'review_contents',
  codec: ReviewContent,
  primaryKey: ['reviewId', 'id'],
  project: projectChildren(({ contents, versionMembers }, part) =>
    contents.map((content) => {
      const { sentiments, liabilities, reviewId, reviewModifiedTime } = content.members
      return part(content, [sentiments, liabilities, reviewId, reviewModifiedTime], versionMembers)
    }),
  ),
})

export const reviewSentimentsStream = defineStream({
  ...childStreamOptions,
  name: 'review_sentiments',
  codec: ReviewSentiment,
  primaryKey: ['reviewId', 'contentId', 'id'],
  project: projectContentChildren(
    ({ sentiments }) => sentiments,
    ({ id }) => id,
  ),
})

export const reviewLiabilitiesStream = defineStream({
  ...childStreamOptions,
  name: 'review_liabilities',
  codec: ReviewLiability,
  primaryKey: ['reviewId', 'contentId', 'liabilityId'],
  project: projectContentChildren(
    ({ liabilities }) => liabilities,
    ({ liabilityId }) => liabilityId,
  ),
})

export const reviewTasksStream = defineStream({
  ...childStreamOptions,
  name: 'review_tasks',
  codec: ReviewTask,
  primaryKey: ['reviewId'],
  project: projectChildren(({ json, members: { taskDetails }, versionMembers }, part) =>
    hasField(json, taskDetails)
      ? [part(taskDetails, [taskDetails.members.reviewId, taskDetails.members.reviewModifiedTime], versionMembers)]
      : noRows,
  ),
})

export const reviewEngagementsStream = defineStream({
  ...childStreamOptions,
  name: 'review_engagements',
  codec: ReviewEngagement,
  primaryKey: ['reviewId', 'position'],
  project: projectChildren(({ members: { engagements }, versionMembers }, part) =>
    (engagements?.elements ?? noRows).map((engagement, place) => {
      const { position, reviewId, reviewModifiedTime } = engagement.members
      return part(engagement, [position, reviewId, reviewModifiedTime], `"position":${place},${versionMembers}`)
    }),
  ),
})
