import * as t from 'io-ts'
import { Rating } from './rating'
import { described, Instant, Int64, optional } from './scalar'

/** What was answered to a reviewer (Resources, AnnotationResponse). */
export const AnnotationResponse = optional({
  responseText: described('The answer')(t.string),
  respondedBy: described('Who answered, a name')(t.string),
  respondedTime: described('When it was answered, as the service writes it')(t.string),
})

const said = {
  surveyKey: described('Key of the survey it came with')(t.string),
  source: described('Source it came from')(t.string),
  overallRating: described('The overall rating given')(Rating),
  ratings: described('The ratings given to single questions')(t.readonlyArray(Rating)),
  response: described('The answer given, if any')(AnnotationResponse),
  tone: described('Tone of the text')(t.string),
  category: described('Category of the text')(t.string),
  varname: described('Name of the survey variable')(t.string),
}

const mentionTime = described('When it was written')(Instant)

/** Comment (Resources): what operations 2 and 3 list under each entity. */
export const Comment = t.intersection(
  [
    t.type({ id: described('Comment id')(Int64), mentionTime }),
    optional({
      ...said,
      wordCount: described('Number of words')(Int64),
      comment: described('The text')(t.string),
    }),
  ],
  'Comment',
)
export type Comment = t.TypeOf<typeof Comment>

/** Review (transparency, Resources): what operation 1 lists under each entity. */
export const TransparencyReview = t.intersection(
  [
    t.type({ documentId: described('Document id')(Int64), mentionTime }),
    optional({
      ...said,
      comment: described('The text')(
        optional({
          commentId: described('Comment id')(Int64),
          wordCount: described('Number of words')(Int64),
          comment: described('The text')(t.string),
        }),
      ),
    }),
  ],
  'TransparencyReview',
)
export type TransparencyReview = t.TypeOf<typeof TransparencyReview>
