import * as E from 'fp-ts/Either'
import type { ApiError } from '../../connector/api/error'
import { Review } from '../../connector/api/model/review'
import { type CutOptions, type CutPage, createCutter } from '../../connector/export/cut/page'
import type { CutRecord } from '../../connector/export/cut/record'

export const reviewOptions: CutOptions = {
  codec: Review,
  list: 'reviews',
  primaryKey: 'id',
  cursor: 'modifiedTime',
  aliases: { engagement: 'engagements' },
  undeclared: 'keep',
}

export const cutReviews = createCutter(reviewOptions)

/** A page around the texts of records. */
export const reviewPage = (...records: ReadonlyArray<string>): Uint8Array =>
  Buffer.from(`{"reviews":[${records.join(',')}],"filter":{"offset":0}}`)

/** A review around the text of its other members. */
export const reviewJson = (members = ''): string =>
  `{"id":1,"modifiedTime":"2024-05-01T10:11:12.345Z"${members === '' ? '' : `,${members}`}}`

export const expectCut = (answer: E.Either<ApiError, CutPage>): CutPage => {
  if (E.isLeft(answer)) throw new Error(JSON.stringify(answer.left))
  return answer.right
}

export const expectError = (answer: E.Either<ApiError, CutPage>): ApiError => {
  if (E.isRight(answer)) throw new Error('it was cut')
  return answer.left
}

/** The output text of the only record of a page. */
export const cutText = (cut: typeof cutReviews, record: string): string => {
  const [row] = expectCut(cut(reviewPage(record))).rows
  return Buffer.from(row?.json ?? []).toString()
}

/** The output of a record is the same bytes as its input. */
export const isUnchanged = (row: CutRecord | undefined): boolean =>
  row !== undefined &&
  row.json.buffer === row.raw.buffer &&
  row.json.byteOffset === row.raw.byteOffset &&
  row.json.byteLength === row.raw.byteLength
