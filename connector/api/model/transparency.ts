import * as t from 'io-ts'
import { annotate } from '../../cdk'
import { BooleanText, Instant, Integer, IntegerText, NumberText, optionalAttributes, TextList } from './scalar'

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
