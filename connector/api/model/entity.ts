import * as t from 'io-ts'
import { Comment, TransparencyReview } from './comment'
import { OverallRating } from './rating'
import { described, Int64, optional } from './scalar'

/** What is known of a person, location or roll-up entity (Resources, EntitySummary). */
export const EntitySummary = t.intersection(
  [
    t.type({ id: described('Entity id')(t.string) }),
    optional({
      name: described('Display name')(t.string),
      reviewSummary: described('Summary of the reviews')(t.string),
      lookBackWindow: described('Days looked back')(Int64),
      totalRatingCount: described('Number of ratings')(Int64),
      totalCommentCount: described('Number of comments')(Int64),
      totalSurveyCount: described('Number of surveys')(Int64),
      overallRating: described('The overall rating')(OverallRating),
      ratings: described('The ratings by category')(t.readonlyArray(OverallRating)),
    }),
    t.partial({ VendorSealOfIntegrity: described('Type and content are not shown')(t.unknown) }),
  ],
  'EntitySummary',
)
export type EntitySummary = t.TypeOf<typeof EntitySummary>

/** An entity of operation 1. */
export const ReviewsEntity = t.intersection(
  [EntitySummary, optional({ reviews: described('Its reviews')(t.readonlyArray(TransparencyReview)) })],
  'ReviewsEntity',
)

/** An entity of operations 2 and 3. */
export const CommentsEntity = t.intersection(
  [
    EntitySummary,
    optional({
      comments: described('Its comments')(t.readonlyArray(Comment)),
      totalPages: described('Pages of this size there are')(Int64),
    }),
  ],
  'CommentsEntity',
)
