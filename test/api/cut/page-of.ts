import * as E from 'fp-ts/Either'
import { type CutOptions, cutter, type Sheet } from '../../../connector/api/cut'
import type { ApiError } from '../../../connector/api/error'
import { Review } from '../../../connector/api/model/review'
import type { Cut } from '../../../connector/api/page'

export const reviewOptions: CutOptions = {
  codec: Review,
  list: 'reviews',
  key: 'id',
  cursor: 'modifiedTime',
  rename: { engagement: 'engagements' },
  undeclared: 'keep',
}

export const cutReviews = cutter(reviewOptions)

/** A page around the texts of records. */
export const pageOf = (...records: ReadonlyArray<string>): Uint8Array =>
  Buffer.from(`{"reviews":[${records.join(',')}],"filter":{"offset":0}}`)

/** A review around the text of its other members. */
export const reviewOf = (members = ''): string =>
  `{"id":1,"modifiedTime":"2024-05-01T10:11:12.345Z"${members === '' ? '' : `,${members}`}}`

export const rightOf = (answer: E.Either<ApiError, Sheet>): Sheet => {
  if (E.isLeft(answer)) throw new Error(JSON.stringify(answer.left))
  return answer.right
}

export const leftOf = (answer: E.Either<ApiError, Sheet>): ApiError => {
  if (E.isRight(answer)) throw new Error('it was cut')
  return answer.left
}

/** How the only record of a page leaves, as text. */
export const leaves = (cut: typeof cutReviews, record: string): string => {
  const [row] = rightOf(cut(pageOf(record))).rows
  return Buffer.from(row?.json ?? []).toString()
}

/** Does a record leave as the very bytes it came in? */
export const isAsItCame = (row: Cut | undefined): boolean =>
  row !== undefined &&
  row.json.buffer === row.raw.buffer &&
  row.json.byteOffset === row.raw.byteOffset &&
  row.json.byteLength === row.raw.byteLength
