import type { TaskEither } from 'fp-ts/TaskEither'
import type { ApiError } from '../../api/error'
import type { SourceEnv } from '../source'
import type { EntityKind } from './entity'

/** One request for the feedback of some entities within a window of time; times in milliseconds. */
export type FeedbackRequest = {
  readonly kind: EntityKind
  readonly ids: ReadonlyArray<string>
  readonly from: number
  readonly to: number
  readonly page: number
}

/** What an answer lists of one entity. */
export type EntityListing = {
  readonly id: string
  readonly name: unknown
  readonly rows: ReadonlyArray<Readonly<Record<string, unknown>>>
  /** Pages there are, where the answer says so. */
  readonly pages?: number
}

export type FeedbackPage = {
  readonly listings: ReadonlyArray<EntityListing>
  /** Rows a page holds at most, by the answer's own word; what was asked where it says nothing. Infinity: there are no pages. */
  readonly perPage: number
  /** The window that the answer says it is of, milliseconds, where it says so. */
  readonly window?: { readonly from: number; readonly to: number }
  readonly servedAt?: number
}

/** An operation that lists feedback under entities by numbered pages. */
export type FeedbackOperation = {
  readonly name: string
  /** How many identifiers a request may hold to begin with. */
  readonly maxIdentifiers: number
  readonly firstPage: 0 | 1
  /** The attribute that tells rows of an entity apart. */
  readonly key: string
  readonly createFetch: (source: SourceEnv) => (request: FeedbackRequest) => TaskEither<ApiError, FeedbackPage>
}

/** The listing of the only entity asked for, whatever the service calls it; none where it lists nothing. */
export const findListing = (id: string, { listings }: FeedbackPage): EntityListing | undefined => {
  const [first] = listings
  const own = listings.find((listing) => listing.id === id)
  return own ?? (first === undefined ? undefined : { ...first, rows: listings.flatMap(({ rows }) => rows) })
}
