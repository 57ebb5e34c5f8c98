import * as t from 'io-ts'
import { described, Instant, Int64, optional } from './scalar'

const Named = { id: described('Identifier')(Int64), name: described('Display name')(t.string) }

export const Sentiment = optional({
  id: described('Sentiment id')(Int64),
  reviewId: described('Id of the review it was found in')(Int64),
  feature: described('What the opinion is about')(t.string),
  opinion: described('The opinion expressed')(t.string),
  score: described('0.0 (negative) to 5.0 (positive)')(t.number),
  category: described('Category of the feature')(t.string),
  subCategory: described('Sub-category of the feature')(t.string),
  tonality: described('negative, positive or neutral')(t.string),
})

export const Liability = optional({
  liabilityId: described('Liability id')(Int64),
  severity: described('How grave it is')(
    optional({
      level: described('1 low, 2 medium, 3 high')(Int64),
      name: described('low, medium or high')(t.string),
    }),
  ),
  categoryName: described('Liability category, such as Negligence')(t.string),
  justification: described('Why the text was taken for a liability')(t.string),
})

export const Content = optional({
  id: described('Content id')(Int64),
  question: described('The question asked')(t.string),
  response: described('What the reviewer answered or wrote')(t.string),
  questionType: described('Question type, such as Free Form (Text Area)')(t.string),
  questionCode: described('Unique question code; correlates with survey data')(t.string),
  noOfSentiments: described('Number of sentiments found')(Int64),
  overallCommentSentiment: described('Sentiment of the whole response')(
    optional({
      score: described('1 to 5')(t.number),
      label: described('Extremely Positive, Positive, Neutral, Negative or Extremely Negative')(t.string),
    }),
  ),
  sentiments: described('Sentiments found in the response')(t.readonlyArray(Sentiment)),
  liabilities: described('Liabilities found in the response')(t.readonlyArray(Liability)),
})

export const Task = optional({
  id: described('Task id')(Int64),
  status: described('pending or completed')(t.string),
  ownerEmail: described('E-mail of the owner')(t.string),
  ownerName: described('Name of the owner')(t.string),
  closureComment: described('Comment made when the task was closed')(t.string),
})

export const Engagement = optional({
  engagement: described('Message sent to the reviewer')(t.string),
  engagementTime: described('When it was sent')(Instant),
})

/** Exported review (Resources, Exported review): identity and version always there, all else nullable. */
export const Review = t.intersection(
  [
    t.type({
      id: described('Unique review id')(Int64),
      modifiedTime: described('Last modification')(Instant),
    }),
    optional({
      surveyBarCode: described('Generated code; equals the survey bar code for a survey review')(t.string),
      location: described('Location reviewed')(optional(Named)),
      provider: described('Provider (physician) reviewed')(
        optional({ ...Named, npi: described('National provider identifier')(t.string) }),
      ),
      source: described('Source the review came from')(optional(Named)),
      avatar: described('Entity in the hierarchy')(
        optional({ ...Named, type: described('Avatar type, such as Hospital')(t.string) }),
      ),
      mentionTime: described('When the user posted the review; for surveys the submission')(Instant),
      rating: described('0 to 5; 0 means the source has none or none was given')(t.number),
      reviewScore: described('0.0 negative, 2.5 neutral, 5.0 positive: mean of the sentiment scores')(t.number),
      contents: described('Questions and responses')(t.readonlyArray(Content)),
      taskDetails: described('Closing-the-loop task')(Task),
      visitRecordId: described('Campaign visit record id; an empty string means none')(t.string),
      textAnalytics: described('Output of a text-analytics component, as it came')(t.UnknownRecord),
      brand: described('Brands of the avatar')(
        t.readonlyArray(
          optional({ id: described('Avatar id of the brand')(Int64), name: described('Name of the brand')(t.string) }),
        ),
      ),
      engagements: described('Responses sent to the reviewer; arrives as engagement or engagements')(
        t.readonlyArray(Engagement),
      ),
    }),
  ],
  'Review',
)
export type Review = t.TypeOf<typeof Review>

/** Deleted review (Resources, Deleted review): its id and the time it was deleted. */
export const DeletedReview = t.type(
  {
    id: described('Id of the exported review that was deleted')(Int64),
    modifiedTime: described('When it was deleted')(Instant),
  },
  'DeletedReview',
)
export type DeletedReview = t.TypeOf<typeof DeletedReview>
