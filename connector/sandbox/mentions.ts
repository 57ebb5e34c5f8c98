import type { Comment, TransparencyReview } from '../api/model/comment'
import type { Rating } from '../api/model/rating'
import type { Int64 } from '../api/model/scalar'
import type { Cell, Cells, Database } from '../snapshot/database'

/** Which of an entity's reviews are listed: newest first, and how many of them. */
export type Listing = {
  readonly where: string
  readonly limit: number
  readonly offset: number
}

const columns = `r.id, r.id * 10 + 3 AS comment_id, r.survey_bar_code, s.name AS source, instant(r.mention) AS mentioned,
  r.words, r.comment, r.rating, r.staff_rating, r.access_rating, a.engagement, instant(r.answered) AS answered,
  r.tone, r.category`

/** What was said, newest first. */
export const listMentions = ({ where, limit, offset }: Listing, database: Database): Promise<ReadonlyArray<Cells>> =>
  database.query(
    `SELECT ${columns} FROM written r LEFT JOIN source s ON s.id = r.source_id LEFT JOIN answer a ON a.n = r.answer
     WHERE ${where} ORDER BY r.mention DESC, r.id DESC LIMIT ${limit} OFFSET ${offset}`,
  )

const text = (cell: Cell | undefined): string | null => (typeof cell === 'string' ? cell : null)
const id = (cell: Cell | undefined): Int64 => (typeof cell === 'bigint' ? cell : Number(cell))

const rating = (name: string, value: Cell | undefined): Rating => ({
  name,
  value: Number(value ?? 0),
  responseCount: 1,
})

/** What comments and reviews have in common; a null is shown (Conventions). */
const said = (row: Cells, showRatings: boolean) => ({
  source: text(row.source) ?? '',
  mentionTime: String(row.mentioned),
  overallRating: rating('Overall', row.rating),
  ratings:
    !showRatings || row.staff_rating === null
      ? []
      : [rating('Staff', row.staff_rating), rating('Access', row.access_rating)],
  response:
    text(row.engagement) === null
      ? null
      : { responseText: text(row.engagement), respondedBy: 'Patient Relations', respondedTime: text(row.answered) },
  tone: text(row.tone),
  category: text(row.category),
  varname: row.survey_bar_code === null ? null : 'COMMENT',
})

export const toComment = (row: Cells, showRatings: boolean): Comment => ({
  id: id(row.comment_id),
  surveyKey: text(row.survey_bar_code),
  ...said(row, showRatings),
  wordCount: Number(row.words ?? 0),
  comment: text(row.comment) ?? '',
})

export const toReview = (row: Cells, showRatings: boolean): TransparencyReview => ({
  documentId: id(row.id),
  surveyKey: text(row.survey_bar_code) ?? '',
  ...said(row, showRatings),
  comment: { commentId: id(row.comment_id), wordCount: Number(row.words ?? 0), comment: text(row.comment) ?? '' },
})
