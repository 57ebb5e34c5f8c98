import { type CutRecord, createOffsetReader, type FieldOffsets, rawFieldText } from '../export'

const namedFields = { id: 'value', reviewModifiedTime: 'value' } as const

/** The members that a child record gets from its review. Its own members with these names are left out. */
const reviewKeyFields = { reviewId: 'value', reviewModifiedTime: 'value' } as const
const contentKeyFields = { ...reviewKeyFields, contentId: 'value' } as const

/** The fields of a review that streams read, whose offsets a cutter must record. */
export const reviewFieldTree = {
  modifiedTime: 'value',
  location: namedFields,
  provider: { ...namedFields, npi: 'value' },
  source: namedFields,
  contents: [
    {
      ...reviewKeyFields,
      id: 'value',
      question: 'value',
      questionType: 'value',
      questionCode: 'value',
      sentiments: [{ ...contentKeyFields, id: 'value', category: 'value', subCategory: 'value' }],
      liabilities: [{ ...contentKeyFields, liabilityId: 'value' }],
    },
  ],
  taskDetails: reviewKeyFields,
  engagements: [{ ...reviewKeyFields, position: 'value' }],
} as const

/** The fields of a review as offsets in its output text. Every attribute has its declared type or is null. */
type ReviewFields = {
  readonly json: Uint8Array
  readonly members: ReviewMembers
  /** `"reviewModifiedTime":…` as JSON text in latin1: the member that a child record gets. */
  readonly modifiedTimeMember: string
  /** `"reviewId":…,"reviewModifiedTime":…`: the review and the version that a child record belongs to. */
  readonly versionMembers: string
}

export type ReviewMembers = FieldOffsets<typeof reviewFieldTree>

/** A review of an export page. `readFields` locates its fields on the first call and keeps them. */
export type ReviewItem = { readonly record: CutRecord; readonly readFields: () => ReviewFields }
const locateFields = createOffsetReader(reviewFieldTree)
const readReviewFields = (record: CutRecord): ReviewFields => {
  const { json } = record
  const members = locateFields(record)
  const { modifiedTime } = members
  const modifiedTimeText = modifiedTime === undefined ? 'null' : rawFieldText(json, modifiedTime)
  const modifiedTimeMember = `"reviewModifiedTime":${modifiedTimeText}`
  return {
    json,
    members,
    modifiedTimeMember,
    versionMembers: `"reviewId":${record.id},${modifiedTimeMember}`,
  }
}

export const createReviewItem = (record: CutRecord): ReviewItem => {
  let fields: ReviewFields | undefined
  return {
    record,
    readFields: () => {
      fields ??= readReviewFields(record)
      return fields
    },
  }
}
