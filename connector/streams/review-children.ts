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
import { type Derivation, defineStream, type PartStep, type Row } from '../cdk'
import { createExtractor, type FieldOffset, hasField, rawFieldText } from '../export'
import type { ReviewItem } from './review-item'
import { reviewExportReader } from './reviews'

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

/** An object of a review with the offsets of the members that streams read, whatever its type. */
type Part = FieldOffset & {
  readonly members?: Readonly<Record<string, Part | undefined>>
  readonly elements?: ReadonlyArray<Part>
}

/**
 * The rows that a derivation makes of the objects in a review, each with the review and its version so that outdated
 * rows can be recognized. Consumers that make them in SQL follow the same derivation.
 */
const createPartProjector =
  ({ steps, omitted }: PartDerivation) =>
  () => {
    const extractObject = createExtractor()
    const names = steps.flatMap(({ as, index }) => [as, index].flatMap((name) => name ?? []))
    const excluded = [...omitted, ...names, 'reviewId', 'reviewModifiedTime']
    return ({ readFields }: ReviewItem): ReadonlyArray<Row> => {
      const { json, members, versionMembers } = readFields()
      const rows: Row[] = []
      const visit = (part: Part, [step, ...others]: ReadonlyArray<PartStep>, carried: string): void => {
        if (step === undefined) {
          const without = excluded.map((name) => part.members?.[name])
          rows.push(extractObject(json, part, without, `${carried}${versionMembers}`))
          return
        }
        const found = part.members?.[step.name]
        if (!hasField(json, found)) return
        for (const [at, element] of (step.isList ? (found.elements ?? []) : [found]).entries()) {
          const key = step.key === undefined ? undefined : element.members?.[step.key]
          if (step.key !== undefined && !hasField(json, key)) continue
          const added = [
            ...(step.as === undefined || key === undefined ? [] : [`"${step.as}":${rawFieldText(json, key)},`]),
            ...(step.index === undefined ? [] : [`"${step.index}":${at},`]),
          ]
          visit(element, others, carried + added.join(''))
        }
      }
      visit({ key: 0, from: 0, to: json.length, members: members as NonNullable<Part['members']> }, steps, '')
      return rows
    }
  }

type PartDerivation = Extract<Derivation, { readonly _tag: 'part' }>

const childStream = (steps: ReadonlyArray<PartStep>, omitted: ReadonlyArray<string> = []) => {
  const derivation: PartDerivation = { _tag: 'part', steps, omitted }
  return {
    cursor: 'reviewModifiedTime',
    reader: reviewExportReader,
    derivation,
    projector: createPartProjector(derivation),
  } as const
}

const contents: PartStep = { name: 'contents', isList: true, key: 'id' }
const namedContents: PartStep = { ...contents, as: 'contentId' }

export const reviewContentsStream = defineStream({
  ...childStream([contents], ['sentiments', 'liabilities']),
  name: 'review_contents',
  codec: ReviewContent,
  primaryKey: ['reviewId', 'id'],
})

export const reviewSentimentsStream = defineStream({
  ...childStream([namedContents, { name: 'sentiments', isList: true, key: 'id' }]),
  name: 'review_sentiments',
  codec: ReviewSentiment,
  primaryKey: ['reviewId', 'contentId', 'id'],
})

export const reviewLiabilitiesStream = defineStream({
  ...childStream([namedContents, { name: 'liabilities', isList: true, key: 'liabilityId' }]),
  name: 'review_liabilities',
  codec: ReviewLiability,
  primaryKey: ['reviewId', 'contentId', 'liabilityId'],
})

export const reviewTasksStream = defineStream({
  ...childStream([{ name: 'taskDetails', isList: false }]),
  name: 'review_tasks',
  codec: ReviewTask,
  primaryKey: ['reviewId'],
})

export const reviewEngagementsStream = defineStream({
  ...childStream([{ name: 'engagements', isList: true, index: 'position' }]),
  name: 'review_engagements',
  codec: ReviewEngagement,
  primaryKey: ['reviewId', 'position'],
})
