import * as t from 'io-ts'
import { Comment, TransparencyReview } from './comment'
import { OverallRating } from './rating'
import { describeAttribute, Int64, optionalAttributes } from './scalar'

/** What is known of a person, location or roll-up entity (Resources, EntitySummary). */
export const EntitySummary = t.intersection(
  [
    t.type({ id: describeAttribute('Entity id')(t.string) }),
    optionalAttributes({
      name: describeAttribute('Display name')(t.string),
      reviewSummary: describeAttribute('Summary of the reviews')(t.string),
      lookBackWindow: describeAttribute('Days looked back')(Int64),
      totalRatingCount: describeAttribute('Number of ratings')(Int64),
      totalCommentCount: describeAttribute('Number of comments')(Int64),
      totalSurveyCount: describeAttribute('Number of surveys')(Int64),
      overallRating: describeAttribute('The overall rating')(OverallRating),
      ratings: describeAttribute('The ratings by category')(t.readonlyArray(OverallRating)),
    }),
    t.partial({ VendorSealOfIntegrity: describeAttribute('Type and content are not shown')(t.unknown) }),
  ],
  'EntitySummary',
)
export type EntitySummary = t.TypeOf<typeof EntitySummary>

/** An entity of operation 1. */
export const ReviewsEntity = t.intersection(
  [
    EntitySummary,
    optionalAttributes({ reviews: describeAttribute('Its reviews')(t.readonlyArray(TransparencyReview)) }),
  ],
  'ReviewsEntity',
)

/** An entity of operations 2 and 3. */
export const CommentsEntity = t.intersection(
  [
    EntitySummary,
    optionalAttributes({
      comments: describeAttribute('Its comments')(t.readonlyArray(Comment)),
      totalPages: describeAttribute('Pages of this size there are')(Int64),
    }),
  ],
  'CommentsEntity',
)
