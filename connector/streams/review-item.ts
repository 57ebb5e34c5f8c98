import { type Outline, outliner, rawAt } from '../api/cut/outline'
import { printJson } from '../api/json-text'
import type { Cut } from '../api/page'
import type { Row } from '../cdk/message'

const named = { id: 'value', reviewModifiedTime: 'value' } as const
/** A child may bring the names under which it is given its review: ours take their place. */
const given = { reviewId: 'value', reviewModifiedTime: 'value' } as const
const found = { ...given, contentId: 'value' } as const

/** What streams look at inside a review. */
const looked = {
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

export type ReviewOutline = Outline<typeof looked>

/** A review of an export page: its text, and for those who must look inside, where things stand in it. */
export type ReviewItem = {
  readonly cut: Cut
  /** Walked at the first call. Every attribute is of its declared type or null, since the cutter has checked them. */
  readonly outline: () => ReviewOutline
  /** The members that tie a part to this version of its review, as JSON text. */
  readonly version: () => string
}

const outline = outliner(looked)

export const reviewItem = (cut: Cut): ReviewItem => {
  let walked: ReviewOutline | undefined
  let version: string | undefined
  const outlined = () => {
    walked ??= outline(cut.json)
    return walked
  }
  return {
    cut,
    outline: outlined,
    version: () => {
      version ??= `"reviewId":${cut.id},${modified(cut, outlined())}`
      return version
    },
  }
}

/** When the review was modified, as a member of what is made of it. */
export const modified = ({ json }: Cut, { members: { modifiedTime } }: ReviewOutline): string =>
  `"reviewModifiedTime":${modifiedTime === undefined ? 'null' : rawAt(json, modifiedTime)}`

/** A value as a row. */
export const toRow = (value: object): Row => ({ json: Buffer.from(printJson(value)) })
