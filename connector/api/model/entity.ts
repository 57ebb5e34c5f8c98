import * as t from 'io-ts'
import { annotate, Instant, Int64, Integer } from '../../cdk'
import { BooleanText, describeAttribute, IntegerText, NumberText, optionalAttributes, TextList } from './scalar'

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
  categoryResponseCount: describeAttribute('Number of ratings in the mean')(Int64),
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
  respondedBy: describeAttribute('Name of the person who answered')(t.string),
  respondedTime: describeAttribute('When it was answered, as the service sends it')(t.string),
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
      totalPages: describeAttribute('Number of pages of this size')(Int64),
    }),
  ],
  'CommentsEntity',
)

const NullableInstant = t.union([Instant, t.null])

/** Body of `retrieveReviews`; at least one of the three identifiers. */
export const ReviewsRequest = t.partial(
  {
    personId: t.string,
    locationId: t.string,
    entityId: t.string,
    page: Integer,
    perPage: Integer,
    minThreshold: t.number,
    days: Integer,
    minSurveyCount: Integer,
    minRatingCount: Integer,
    minWordCount: Integer,
    showRatings: t.boolean,
    showReviews: t.boolean,
    fromDate: NullableInstant,
    toDate: NullableInstant,
    scrollKey: t.string,
    additionalFields: t.readonlyArray(t.string),
  },
  'ReviewsRequest',
)
export type ReviewsRequest = t.TypeOf<typeof ReviewsRequest>

const commentFilters = {
  page: IntegerText,
  perPage: IntegerText,
  minThreshold: NumberText,
  days: IntegerText,
  fromDate: Instant,
  toDate: Instant,
  minSurveyCount: IntegerText,
  minRatingCount: IntegerText,
  minWordCount: IntegerText,
  showRatings: BooleanText,
  showComments: BooleanText,
  additionalFields: TextList,
}

/** Query of `retrieveComments`; at least one of the three identifiers. */
export const CommentsQuery = t.partial(
  { personId: t.string, locationId: t.string, entityId: t.string, ...commentFilters },
  'CommentsQuery',
)
export type CommentsQuery = t.TypeOf<typeof CommentsQuery>

/** Form of `retrieveCommentsByForm`: the same filters for many identifiers. */
export const CommentsForm = t.partial(
  { personId: TextList, locationId: TextList, entityId: TextList, ...commentFilters },
  'CommentsForm',
)
export type CommentsForm = t.TypeOf<typeof CommentsForm>

/** Query of a lookup: its page, under names that a config gives. */
export const LookupQuery = annotate({ type: 'object' })(
  t.record(t.string, t.union([t.string, t.number]), 'LookupQuery'),
)
export type LookupQuery = t.TypeOf<typeof LookupQuery>

/** The status in the body of a transparency response; it may have other keys. */
export const EnvelopeStatus = t.intersection(
  [
    t.partial({ code: annotate({ type: ['integer', 'string'] })(t.union([t.number, t.string])) }),
    optionalAttributes({ message: t.string, type: t.string }),
  ],
  'Status',
)
export type EnvelopeStatus = t.TypeOf<typeof EnvelopeStatus>

const Period = optionalAttributes({ from: t.string, to: t.string })
const commonEcho = optionalAttributes({
  minThreshold: t.number,
  days: Integer,
  minSurveyCount: Integer,
  minRatingCount: Integer,
  minWordCount: Integer,
  perPage: Integer,
  showRatings: t.boolean,
  period: Period,
})

/** The filter that `retrieveReviews` applied. */
export const ReviewsFilter = t.intersection(
  [
    commonEcho,
    optionalAttributes({
      entityId: t.number,
      scrollKey: t.string,
      person: t.boolean,
      fromDate: t.string,
      toDate: t.string,
      showReviews: t.boolean,
    }),
  ],
  'ReviewsFilter',
)
export type ReviewsFilter = t.TypeOf<typeof ReviewsFilter>

/** The filter that `retrieveComments` and `retrieveCommentsByForm` applied. */
export const CommentsFilter = t.intersection(
  [commonEcho, optionalAttributes({ page: Integer, showComments: t.boolean, configVersion: t.string })],
  'CommentsFilter',
)
export type CommentsFilter = t.TypeOf<typeof CommentsFilter>
