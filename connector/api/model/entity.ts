import * as t from 'io-ts'
import { describeAttribute, Instant, Int64, optionalAttributes } from './scalar'

/** One person's rating, or the mean of many. */
export const Rating = optionalAttributes({
  name: describeAttribute('What was rated')(t.string),
  value: describeAttribute('The rating, 0 to 5')(t.number),
  responseCount: describeAttribute('How many answered')(Int64),
})
export type Rating = t.TypeOf<typeof Rating>

/** The ratings of an entity, overall or of one category, with their distribution. */
export const OverallRating = optionalAttributes({
  name: describeAttribute('What was rated')(t.string),
  value: describeAttribute('Mean rating, 0 to 5')(t.number),
  categoryResponseCount: describeAttribute('How many ratings the mean is of')(Int64),
  questionRatings: describeAttribute('Mean rating of each question')(t.readonlyArray(Rating)),
  ratingDistribution: describeAttribute('How many surveys gave each rating')(
    t.readonlyArray(
      optionalAttributes({
        ratingNum: describeAttribute('The rating, such as 1 to 5')(Int64),
        ratingSurveyCount: describeAttribute('How many surveys gave it')(Int64),
      }),
    ),
  ),
})
export type OverallRating = t.TypeOf<typeof OverallRating>

/** The public answer to a reviewer. */
export const AnnotationResponse = optionalAttributes({
  responseText: describeAttribute('The answer')(t.string),
  respondedBy: describeAttribute('Who answered, a name')(t.string),
  respondedTime: describeAttribute('When it was answered, as the service writes it')(t.string),
})

const commonAttributes = {
  surveyKey: describeAttribute('Key of the survey it came with')(t.string),
  source: describeAttribute('Source it came from')(t.string),
  overallRating: describeAttribute('The overall rating given')(Rating),
  ratings: describeAttribute('The ratings given to single questions')(t.readonlyArray(Rating)),
  response: describeAttribute('The answer given, if any')(AnnotationResponse),
  tone: describeAttribute('Tone of the text')(t.string),
  category: describeAttribute('Category of the text')(t.string),
  varname: describeAttribute('Name of the survey variable')(t.string),
}

const mentionTime = describeAttribute('When it was written')(Instant)

/** A comment, as `retrieveComments` and `retrieveCommentsByForm` list it under its entity. */
export const Comment = t.intersection(
  [
    t.type({ id: describeAttribute('Comment id')(Int64), mentionTime }),
    optionalAttributes({
      ...commonAttributes,
      wordCount: describeAttribute('Number of words')(Int64),
      comment: describeAttribute('The text')(t.string),
    }),
  ],
  'Comment',
)
export type Comment = t.TypeOf<typeof Comment>

/** A review, as `retrieveReviews` lists it under its entity. */
export const TransparencyReview = t.intersection(
  [
    t.type({ documentId: describeAttribute('Document id')(Int64), mentionTime }),
    optionalAttributes({
      ...commonAttributes,
      comment: describeAttribute('The text')(
        optionalAttributes({
          commentId: describeAttribute('Comment id')(Int64),
          wordCount: describeAttribute('Number of words')(Int64),
          comment: describeAttribute('The text')(t.string),
        }),
      ),
    }),
  ],
  'TransparencyReview',
)
export type TransparencyReview = t.TypeOf<typeof TransparencyReview>

/** Summary of a person, location or roll-up entity. */
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

/** An entity in the response of `retrieveReviews`. */
export const ReviewsEntity = t.intersection(
  [
    EntitySummary,
    optionalAttributes({ reviews: describeAttribute('Its reviews')(t.readonlyArray(TransparencyReview)) }),
  ],
  'ReviewsEntity',
)

/** An entity in the response of `retrieveComments` and `retrieveCommentsByForm`. */
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
