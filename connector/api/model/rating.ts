import * as t from 'io-ts'
import { described, Int64, optional } from './scalar'

/** One person's rating, or the mean of many (Resources, Rating and QuestionRating). */
export const Rating = optional({
  name: described('What was rated')(t.string),
  value: described('The rating, 0 to 5')(t.number),
  responseCount: described('How many answered')(Int64),
})
export type Rating = t.TypeOf<typeof Rating>

/** The ratings of an entity, overall or of one category, with how they are spread (Resources, OverallRating). */
export const OverallRating = optional({
  name: described('What was rated')(t.string),
  value: described('Mean rating, 0 to 5')(t.number),
  categoryResponseCount: described('How many ratings the mean is of')(Int64),
  questionRatings: described('Mean rating of each question')(t.readonlyArray(Rating)),
  ratingDistribution: described('How many surveys gave each rating')(
    t.readonlyArray(
      optional({
        ratingNum: described('The rating, such as 1 to 5')(Int64),
        ratingSurveyCount: described('How many surveys gave it')(Int64),
      }),
    ),
  ),
})
export type OverallRating = t.TypeOf<typeof OverallRating>
