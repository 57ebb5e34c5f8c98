import * as t from 'io-ts'
import { describeAttribute, Int64, optionalAttributes } from './scalar'

/** One person's rating, or the mean of many (Resources, Rating and QuestionRating). */
export const Rating = optionalAttributes({
  name: describeAttribute('What was rated')(t.string),
  value: describeAttribute('The rating, 0 to 5')(t.number),
  responseCount: describeAttribute('How many answered')(Int64),
})
export type Rating = t.TypeOf<typeof Rating>

/** The ratings of an entity, overall or of one category, with how they are spread (Resources, OverallRating). */
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
