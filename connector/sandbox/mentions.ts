import type * as t from 'io-ts'
import type { AnnotationResponse, Comment, TransparencyReview } from '../api/model/comment'
import type { Rating } from '../api/model/rating'
import { type Int64, toInstant } from '../api/model/scalar'
import type { Database } from '../snapshot/database'
import { type Cell, type ReviewRow, reviewRows } from './review-rows'
import { answerOf, commentOf, phrasesOf } from './review-text'

/** Which of an entity's reviews are listed: newest first, and how many of them. */
export type Listing = {
  readonly where: string
  readonly limit: number
  readonly offset: number
}

/** What was said, newest first. */
export const listMentions = (
  { where, limit, offset }: Listing,
  database: Database,
): Promise<ReadonlyArray<ReviewRow>> =>
  reviewRows(
    database,
    'ORDER BY r.mention DESC, r.id DESC',
    `(SELECT * FROM review r WHERE ${where} ORDER BY mention DESC, id DESC LIMIT ${limit} OFFSET ${offset})`,
  )

const text = (cell: Cell): string | null => (typeof cell === 'string' ? cell : null)
const exact = (id: bigint): Int64 => (id <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(id) : id)
/** The id of the content that the comment is, as in the export. */
const commentId = (row: ReviewRow): Int64 => exact(BigInt(row.id) * 10n + 3n)

const rating = (name: string, value: Cell): Rating => ({
  name,
  value: Number(value ?? 0),
  responseCount: 1,
})

const timeOf = (millis: Cell): string => toInstant(Number(millis))

const responseOf = (row: ReviewRow): t.TypeOf<typeof AnnotationResponse> | null => {
  const answer = answerOf(row)
  return answer === undefined
    ? null
    : { responseText: answer.engagement, respondedBy: 'Patient Relations', respondedTime: timeOf(row.answered) }
}

/** What comments and reviews have in common; a null is shown (Conventions). */
const said = (row: ReviewRow, showRatings: boolean) => ({
  source: text(row.source) ?? '',
  mentionTime: timeOf(row.mention),
  overallRating: rating('Overall', row.rating),
  ratings:
    !showRatings || row.staff_rating === null
      ? []
      : [rating('Staff', row.staff_rating), rating('Access', row.access_rating)],
  response: responseOf(row),
  tone: phrasesOf(row)[0]?.tonality ?? null,
  category: phrasesOf(row)[0]?.category ?? null,
  varname: row.survey_bar_code === null ? null : 'COMMENT',
})

export const toComment = (row: ReviewRow, showRatings: boolean): Comment => ({
  id: commentId(row),
  surveyKey: text(row.survey_bar_code),
  ...said(row, showRatings),
  wordCount: Number(row.words ?? 0),
  comment: commentOf(row),
})

export const toReview = (row: ReviewRow, showRatings: boolean): TransparencyReview => ({
  documentId: exact(BigInt(row.id)),
  surveyKey: text(row.survey_bar_code) ?? '',
  ...said(row, showRatings),
  comment: { commentId: commentId(row), wordCount: Number(row.words ?? 0), comment: commentOf(row) },
})
