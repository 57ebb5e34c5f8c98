import { parseJson, printJson } from '../api/json-text'
import type { Review } from '../api/model/review'
import type { Cut } from '../api/page'
import type { Row } from '../cdk/message'

/** A review of an export page: its text, and its value for those who must look inside. */
export type ReviewItem = {
  readonly cut: Cut
  /** Parsed at the first call. Every attribute is of its declared type or null, since the cutter has checked them. */
  readonly review: () => Review
}

export const reviewItem = (cut: Cut): ReviewItem => {
  let parsed: Review | undefined
  return {
    cut,
    review: () => {
      parsed ??= parseJson(Buffer.from(cut.json.buffer, cut.json.byteOffset, cut.json.byteLength).toString()) as Review
      return parsed
    },
  }
}

/** A value as a row. */
export const toRow = (value: object): Row => ({ json: Buffer.from(printJson(value)) })
