import { printExactJson, type Row } from '../cdk'
import { type CutRecord, createOffsetReader, hasField, type FieldOffsets as MembersOf, rawFieldText } from '../export'

const namedFields = { id: 'value', reviewModifiedTime: 'value' } as const
/** A child may bring the names under which it is given its review: ours take their place. */
const reviewKeyFields = { reviewId: 'value', reviewModifiedTime: 'value' } as const
const contentKeyFields = { ...reviewKeyFields, contentId: 'value' } as const

/** What streams look at inside a review: a cutter must note it. */
export const reviewFieldTree = {
  modifiedTime: 'value',
  location: namedFields,
  provider: { ...namedFields, npi: 'value' },
  source: namedFields,
  contents: [
    {
      ...reviewKeyFields,
      id: 'value',
      sentiments: [{ ...contentKeyFields, id: 'value', category: 'value', subCategory: 'value' }],
      liabilities: [{ ...contentKeyFields, liabilityId: 'value' }],
    },
  ],
  taskDetails: reviewKeyFields,
  engagements: [{ ...reviewKeyFields, position: 'value' }],
} as const

/** What a review holds, and where: places in the text as it leaves. Every attribute is of its declared type or null. */
export type ReviewFields = {
  readonly json: Uint8Array
  readonly members: ReviewMembers
  /** The contents that have an id: without it a content has no key, and neither has what it holds. */
  readonly contents: NonNullable<ReviewMembers['contents']>['elements']
  /** When the review was modified, as a member of what is made of it. */
  readonly modifiedTimeMember: string
  /** Whose part something is, and of which version, as members of it. */
  readonly versionMembers: string
}
export type ReviewMembers = MembersOf<typeof reviewFieldTree>

/** A review of an export page; what it holds is looked for at the first call. */
export type ReviewItem = { readonly record: CutRecord; readonly readFields: () => ReviewFields }

const locateFields = createOffsetReader(reviewFieldTree)

const readReviewFields = (cut: CutRecord): ReviewFields => {
  const { json } = cut
  const members = locateFields(cut)
  const { modifiedTime } = members
  const contents = (members.contents?.elements ?? []).filter(({ members: { id } }) => hasField(json, id))
  const modified = `"reviewModifiedTime":${modifiedTime === undefined ? 'null' : rawFieldText(json, modifiedTime)}`
  return { json, members, contents, modifiedTimeMember: modified, versionMembers: `"reviewId":${cut.id},${modified}` }
}

export const createReviewItem = (cut: CutRecord): ReviewItem => {
  let look: ReviewFields | undefined
  return {
    record: cut,
    readFields: () => {
      look ??= readReviewFields(cut)
      return look
    },
  }
}

/** A value as a row. */
export const encodeRow = (value: object): Row => ({ json: Buffer.from(printExactJson(value)) })
