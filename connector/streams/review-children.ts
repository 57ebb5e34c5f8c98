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
import { createExtractor, type FieldOffset, hasField, type ObjectOffsets, rawFieldText } from '../export'
import { type ReviewFields, type ReviewItem, reviewExportReader } from './reviews'

const reviewKeyProps = {
  reviewId: describeAttribute('Id of the review')(Int64),
  reviewModifiedTime: describeAttribute('Last modification of the review this was read from')(Instant),
}
const contentKeyProps = { ...reviewKeyProps, contentId: describeAttribute('Id of the content it was found in')(Int64) }

const { id: _content, sentiments: _sentiments, liabilities: _liabilities, ...contentProps } = ContentCodec.props
const ReviewContent = t.intersection(
  [t.type({ ...reviewKeyProps, id: describeAttribute('Content id')(Int64) }), t.partial(contentProps)],
  'ReviewContent',
)

const { id: _sentiment, reviewId: _review, ...sentimentProps } = Sentiment.props
const ReviewSentiment = t.intersection(
  [t.type({ ...contentKeyProps, id: describeAttribute('Sentiment id')(Int64) }), t.partial(sentimentProps)],
  'ReviewSentiment',
)

const { liabilityId: _liability, ...liabilityProps } = Liability.props
const ReviewLiability = t.intersection(
  [t.type({ ...contentKeyProps, liabilityId: describeAttribute('Liability id')(Int64) }), t.partial(liabilityProps)],
  'ReviewLiability',
)

const ReviewTask = t.intersection([t.type(reviewKeyProps), t.partial(TaskDetails.props)], 'ReviewTask')

const ReviewEngagement = t.intersection(
  [
    t.type({
      ...reviewKeyProps,
      position: describeAttribute('Position among the engagements of the review, from 0')(Int64),
    }),
    t.partial(Engagement.props),
  ],
  'ReviewEngagement',
)

/** An object of a review as a record: without the `omitted` members, and with the `added` ones at its end. */
type EncodeChild = (object: FieldOffset, omitted: ReadonlyArray<FieldOffset | undefined>, added: string) => Row

/** The child records of a review. Each carries the version of its review, so that those of older versions can be recognised. */
const createChildProjector =
  (encodeChildren: (fields: ReviewFields, encodeChild: EncodeChild) => ReadonlyArray<Row>) => () => {
    const extractObject = createExtractor()
    return ({ readFields }: ReviewItem): ReadonlyArray<Row> => {
      const fields = readFields()
      return encodeChildren(fields, (object, omitted, added) => extractObject(fields.json, object, omitted, added))
    }
  }

const noRows: ReadonlyArray<never> = []

type ContentMembers = ReviewFields['contents'][number]['members']
type ContentChild = ObjectOffsets<{ readonly [name in 'reviewId' | 'reviewModifiedTime' | 'contentId']: 'value' }>

/** The child records in one list of each content; an element without a key is left out. */
const createContentChildProjector = <Child extends ContentChild>(
  listOf: (content: ContentMembers) => { readonly elements: ReadonlyArray<Child> } | undefined,
  keyOf: (members: Child['members']) => FieldOffset | undefined,
) =>
  createChildProjector(({ json, contents, versionMembers }, encodeChild) => {
    const rows: Row[] = []
    for (const { members: content } of contents) {
      const elements = listOf(content)?.elements ?? noRows
      if (elements.length === 0 || content.id === undefined) continue
      const added = `"contentId":${rawFieldText(json, content.id)},${versionMembers}`
      for (const element of elements) {
        const { reviewId, reviewModifiedTime, contentId } = element.members
        if (hasField(json, keyOf(element.members)))
          rows.push(encodeChild(element, [reviewId, reviewModifiedTime, contentId], added))
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
  projector: createChildProjector(({ contents, versionMembers }, encodeChild) =>
    contents.map((content) => {
      const { sentiments, liabilities, reviewId, reviewModifiedTime } = content.members
      return encodeChild(content, [sentiments, liabilities, reviewId, reviewModifiedTime], versionMembers)
    }),
  ),
})

export const reviewSentimentsStream = defineStream({
  ...childStreamOptions,
  name: 'review_sentiments',
  codec: ReviewSentiment,
  primaryKey: ['reviewId', 'contentId', 'id'],
  projector: createContentChildProjector(
    ({ sentiments }) => sentiments,
    ({ id }) => id,
  ),
})

export const reviewLiabilitiesStream = defineStream({
  ...childStreamOptions,
  name: 'review_liabilities',
  codec: ReviewLiability,
  primaryKey: ['reviewId', 'contentId', 'liabilityId'],
  projector: createContentChildProjector(
    ({ liabilities }) => liabilities,
    ({ liabilityId }) => liabilityId,
  ),
})

export const reviewTasksStream = defineStream({
  ...childStreamOptions,
  name: 'review_tasks',
  codec: ReviewTask,
  primaryKey: ['reviewId'],
  projector: createChildProjector(({ json, members: { taskDetails }, versionMembers }, encodeChild) =>
    hasField(json, taskDetails)
      ? [
          encodeChild(
            taskDetails,
            [taskDetails.members.reviewId, taskDetails.members.reviewModifiedTime],
            versionMembers,
          ),
        ]
      : noRows,
  ),
})

export const reviewEngagementsStream = defineStream({
  ...childStreamOptions,
  name: 'review_engagements',
  codec: ReviewEngagement,
  primaryKey: ['reviewId', 'position'],
  projector: createChildProjector(({ members: { engagements }, versionMembers }, encodeChild) =>
    (engagements?.elements ?? noRows).map((engagement, index) => {
      const { position, reviewId, reviewModifiedTime } = engagement.members
      return encodeChild(engagement, [position, reviewId, reviewModifiedTime], `"position":${index},${versionMembers}`)
    }),
  ),
})
