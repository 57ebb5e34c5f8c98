import * as t from 'io-ts'
import { annotate, Instant, Int64, Integer } from '../../cdk'
import { describeAttribute, optionalAttributes } from './scalar'

/** Body of `exportReviews`. Times as yyyy-MM-dd'T'HH:mm:ss.SSS'Z'. */
export const ExportRequest = t.intersection([
  t.type({ modifiedTimeFrom: t.string }),
  t.partial({
    sources: t.readonlyArray(Integer),
    mentionTimeAfter: t.string,
    mentionTimeBefore: t.string,
    offset: Integer,
    limit: Integer,
    additionalFields: t.readonlyArray(t.string),
  }),
])
export type ExportRequest = t.TypeOf<typeof ExportRequest>

/** Body of `exportDeletedReviews`. Times as in ExportRequest. */
export const DeletedExportRequest = t.intersection([
  t.type({ modifiedTimeFrom: t.string }),
  t.partial({ sources: t.readonlyArray(Integer), offset: Integer, limit: Integer }),
])
export type DeletedExportRequest = t.TypeOf<typeof DeletedExportRequest>

/** The filter that an export applied. What the request left out has its default or is missing. */
export const ExportFilter = t.partial({
  clientId: annotate({ type: ['string', 'number', 'null'] })(t.union([t.string, t.number, t.null])),
  sources: t.union([t.readonlyArray(Int64), t.null]),
  modifiedTimeFrom: t.union([t.string, t.null]),
  mentionTimeAfter: t.union([t.string, t.null]),
  mentionTimeBefore: t.union([t.string, t.null]),
  dateType: t.union([t.string, t.null]),
  offset: t.union([t.number, t.null]),
  limit: t.union([t.number, t.null]),
  additionalFields: t.union([t.readonlyArray(t.string), t.null]),
})
export type ExportFilter = t.TypeOf<typeof ExportFilter>

const namedResource = { id: describeAttribute('Identifier')(Int64), name: describeAttribute('Display name')(t.string) }

export const Sentiment = optionalAttributes({
  id: describeAttribute('Sentiment id')(Int64),
  reviewId: describeAttribute('Id of the review it was found in')(Int64),
  feature: describeAttribute('What the opinion is about')(t.string),
  opinion: describeAttribute('The opinion expressed')(t.string),
  score: describeAttribute('0.0 (negative) to 5.0 (positive)')(t.number),
  category: describeAttribute('Category of the feature')(t.string),
  subCategory: describeAttribute('Sub-category of the feature')(t.string),
  tonality: describeAttribute('negative, positive or neutral')(t.string),
})

export const Liability = optionalAttributes({
  liabilityId: describeAttribute('Liability id')(Int64),
  severity: describeAttribute('Its severity')(
    optionalAttributes({
      level: describeAttribute('1 low, 2 medium, 3 high')(Int64),
      name: describeAttribute('low, medium or high')(t.string),
    }),
  ),
  categoryName: describeAttribute('Liability category, such as Negligence')(t.string),
  justification: describeAttribute('Why the text counts as a liability')(t.string),
})

export const Content = optionalAttributes({
  id: describeAttribute('Content id')(Int64),
  question: describeAttribute('The question asked')(t.string),
  response: describeAttribute('What the reviewer answered or wrote')(t.string),
  questionType: describeAttribute('Question type, such as Free Form (Text Area)')(t.string),
  questionCode: describeAttribute('Unique question code; correlates with survey data')(t.string),
  noOfSentiments: describeAttribute('Number of sentiments found')(Int64),
  overallCommentSentiment: describeAttribute('Sentiment of the whole response')(
    optionalAttributes({
      score: describeAttribute('1 to 5')(t.number),
      label: describeAttribute('Extremely Positive, Positive, Neutral, Negative or Extremely Negative')(t.string),
    }),
  ),
  sentiments: describeAttribute('Sentiments found in the response')(t.readonlyArray(Sentiment)),
  liabilities: describeAttribute('Liabilities found in the response')(t.readonlyArray(Liability)),
})

export const TaskDetails = optionalAttributes({
  id: describeAttribute('Task id')(Int64),
  status: describeAttribute('pending or completed')(t.string),
  ownerEmail: describeAttribute('E-mail of the owner')(t.string),
  ownerName: describeAttribute('Name of the owner')(t.string),
  closureComment: describeAttribute('Comment made when the task was closed')(t.string),
})

export const Engagement = optionalAttributes({
  engagement: describeAttribute('Message sent to the reviewer')(t.string),
  engagementTime: describeAttribute('When it was sent')(Instant),
})

/** An exported review. Id and modification time are always present; everything else may be null or missing. */
export const Review = t.intersection(
  [
    t.type({
      id: describeAttribute('Unique review id')(Int64),
      modifiedTime: describeAttribute('Last modification')(Instant),
    }),
    optionalAttributes({
      surveyBarCode: describeAttribute('Generated code; equals the survey bar code for a survey review')(t.string),
      location: describeAttribute('Location reviewed')(optionalAttributes(namedResource)),
      provider: describeAttribute('Provider (physician) reviewed')(
        optionalAttributes({ ...namedResource, npi: describeAttribute('National provider identifier')(t.string) }),
      ),
      source: describeAttribute('Source the review came from')(optionalAttributes(namedResource)),
      avatar: describeAttribute('Entity in the hierarchy')(
        optionalAttributes({ ...namedResource, type: describeAttribute('Avatar type, such as Hospital')(t.string) }),
      ),
      mentionTime: describeAttribute('When the user posted the review or submitted the survey')(Instant),
      rating: describeAttribute('0 to 5; 0 means that the source has no ratings or that none was given')(t.number),
      reviewScore: describeAttribute('0.0 negative, 2.5 neutral, 5.0 positive: mean of the sentiment scores')(t.number),
      contents: describeAttribute('Questions and responses')(t.readonlyArray(Content)),
      taskDetails: describeAttribute('Closing-the-loop task')(TaskDetails),
      visitRecordId: describeAttribute('Campaign visit record id; an empty string means none')(t.string),
      textAnalytics: describeAttribute('Output of a text-analytics component, unchanged')(t.UnknownRecord),
      brand: describeAttribute('Brands of the avatar')(
        t.readonlyArray(
          optionalAttributes({
            id: describeAttribute('Avatar id of the brand')(Int64),
            name: describeAttribute('Name of the brand')(t.string),
          }),
        ),
      ),
      engagements: describeAttribute('Responses sent to the reviewer; arrives as engagement or engagements')(
        t.readonlyArray(Engagement),
      ),
    }),
  ],
  'Review',
)
export type Review = t.TypeOf<typeof Review>

/** An entry of the deleted-reviews export: the id of a review and when it was deleted. */
export const DeletedReview = t.type(
  {
    id: describeAttribute('Id of the exported review that was deleted')(Int64),
    modifiedTime: describeAttribute('When it was deleted')(Instant),
  },
  'DeletedReview',
)
export type DeletedReview = t.TypeOf<typeof DeletedReview>
