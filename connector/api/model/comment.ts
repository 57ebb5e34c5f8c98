import * as t from 'io-ts'
import { Rating } from './rating'
import { describeAttribute, Instant, Int64, optionalAttributes } from './scalar'

/** What was answered to a reviewer (Resources, AnnotationResponse). */
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

/** Comment (Resources): what operations 2 and 3 list under each entity. */
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

/** Review (transparency, Resources): what operation 1 lists under each entity. */
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
