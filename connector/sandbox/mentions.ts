import type * as t from 'io-ts'
import type { AnnotationResponse, Comment, TransparencyReview } from '../api/model/comment'
import type { Rating } from '../api/model/rating'
import { type Int64, toInstant } from '../api/model/scalar'
import type { Database } from '../snapshot/database'
import { type ReviewCell, type ReviewRow, readReviewRows } from './review-rows'
import { reviewAnswer, reviewComment, reviewPhrases } from './review-text'

/** Which of an entity's reviews are listed: newest first, and how many of them. */
export type MentionPage = {
  readonly where: string
  readonly limit: number
  readonly offset: number
}

/** What was said, newest first. */
export const listMentions = (
  { where, limit, offset }: MentionPage,
  database: Database,
): Promise<ReadonlyArray<ReviewRow>> =>
  readReviewRows(
    database,
    'ORDER BY r.mention DESC, r.id DESC',
    `(SELECT * FROM review r WHERE ${where} ORDER BY mention DESC, id DESC LIMIT ${limit} OFFSET ${offset})`,
  )

const toText = (cell: ReviewCell): string | null => (typeof cell === 'string' ? cell : null)
const toInt64 = (id: bigint): Int64 => (id <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(id) : id)
/** The id of the content that the comment is, as in the export. */
const commentId = (row: ReviewRow): Int64 => toInt64(BigInt(row.id) * 10n + 3n)

const toRating = (name: string, value: ReviewCell): Rating => ({
  name,
  value: Number(value ?? 0),
  responseCount: 1,
})

const formatTime = (millis: ReviewCell): string => toInstant(Number(millis))

const toResponse = (row: ReviewRow): t.TypeOf<typeof AnnotationResponse> | null => {
  const answer = reviewAnswer(row)
  return answer === undefined
    ? null
    : { responseText: answer.engagement, respondedBy: 'Patient Relations', respondedTime: formatTime(row.answered) }
}

/** What comments and reviews have in common; a null is shown (Conventions). */
const commonAttributes = (row: ReviewRow, showRatings: boolean) => ({
  source: toText(row.source) ?? '',
  mentionTime: formatTime(row.mention),
  overallRating: toRating('Overall', row.rating),
  ratings:
    !showRatings || row.staff_rating === null
      ? []
      : [toRating('Staff', row.staff_rating), toRating('Access', row.access_rating)],
  response: toResponse(row),
  tone: reviewPhrases(row)[0]?.tonality ?? null,
  category: reviewPhrases(row)[0]?.category ?? null,
  varname: row.survey_bar_code === null ? null : 'COMMENT',
})

export const toComment = (row: ReviewRow, showRatings: boolean): Comment => ({
  id: commentId(row),
  surveyKey: toText(row.survey_bar_code),
  ...commonAttributes(row, showRatings),
  wordCount: Number(row.words ?? 0),
  comment: reviewComment(row),
})

export const toReview = (row: ReviewRow, showRatings: boolean): TransparencyReview => ({
  documentId: toInt64(BigInt(row.id)),
  surveyKey: toText(row.survey_bar_code) ?? '',
  ...commonAttributes(row, showRatings),
  comment: { commentId: commentId(row), wordCount: Number(row.words ?? 0), comment: reviewComment(row) },
})
