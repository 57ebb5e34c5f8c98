import { isThere, rawAt } from '../api/cut/carve'
import { type Members as MembersOf, outliner } from '../api/cut/outline'
import { printJson } from '../api/json-text'
import type { Cut } from '../api/page'
import type { Row } from '../cdk/message'

const named = { id: 'value', reviewModifiedTime: 'value' } as const
/** A child may bring the names under which it is given its review: ours take their place. */
const given = { reviewId: 'value', reviewModifiedTime: 'value' } as const
const found = { ...given, contentId: 'value' } as const

/** What streams look at inside a review: a cutter must note it. */
export const looked = {
  modifiedTime: 'value',
  location: named,
  provider: { ...named, npi: 'value' },
  source: named,
  contents: [
    {
      ...given,
      id: 'value',
      sentiments: [{ ...found, id: 'value', category: 'value', subCategory: 'value' }],
      liabilities: [{ ...found, liabilityId: 'value' }],
    },
  ],
  taskDetails: given,
  engagements: [{ ...given, position: 'value' }],
} as const

/** What a review holds, and where: places in the text as it leaves. Every attribute is of its declared type or null. */
export type Look = {
  readonly json: Uint8Array
  readonly members: Members
  /** The contents that have an id: without it a content has no key, and neither has what it holds. */
  readonly contents: NonNullable<Members['contents']>['elements']
  /** When the review was modified, as a member of what is made of it. */
  readonly modified: string
  /** Whose part something is, and of which version, as members of it. */
  readonly version: string
}
export type Members = MembersOf<typeof looked>

/** A review of an export page; what it holds is looked for at the first call. */
export type ReviewItem = { readonly cut: Cut; readonly look: () => Look }

const outline = outliner(looked)

const lookInto = (cut: Cut): Look => {
  const { json } = cut
  const members = outline(cut)
  const { modifiedTime } = members
  const contents = (members.contents?.elements ?? []).filter(({ members: { id } }) => isThere(json, id))
  const modified = `"reviewModifiedTime":${modifiedTime === undefined ? 'null' : rawAt(json, modifiedTime)}`
  return { json, members, contents, modified, version: `"reviewId":${cut.id},${modified}` }
}

export const reviewItem = (cut: Cut): ReviewItem => {
  let look: Look | undefined
  return {
    cut,
    look: () => {
      look ??= lookInto(cut)
      return look
    },
  }
}

/** A value as a row. */
export const toRow = (value: object): Row => ({ json: Buffer.from(printJson(value)) })
