import type { TaskEither } from 'fp-ts/TaskEither'
import type { ApiError } from '../../api'
import type { SourceEnv } from '../source-env'
import type { EntityKind } from './entities'

/** One request for the feedback of some entities within a window of time; times in milliseconds. */
export type FeedbackRequest = {
  readonly kind: EntityKind
  readonly ids: ReadonlyArray<string>
  readonly from: number
  readonly to: number
  readonly page: number
}

/** What an answer lists of one entity. */
export type EntityFeedback = {
  readonly id: string
  readonly name: unknown
  readonly rows: ReadonlyArray<Readonly<Record<string, unknown>>>
  /** Pages there are, where the answer says so. */
  readonly pages?: number
}

export type FeedbackPage = {
  readonly entities: ReadonlyArray<EntityFeedback>
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
export const findEntityFeedback = (id: string, { entities: listings }: FeedbackPage): EntityFeedback | undefined => {
  const [first] = listings
  const own = listings.find((listing) => listing.id === id)
  return own ?? (first === undefined ? undefined : { ...first, rows: listings.flatMap(({ rows }) => rows) })
}

/** What the answers so far have taught about how long they can be. */
export type PageSizes = {
  /** The most rows ever listed under one entity, and in one answer. */
  readonly longestListing: number
  readonly longestAnswer: number
  /** Whether the pages that answers count have not yet been found wrong. */
  readonly counted: boolean
}

export const initialPageSizes: PageSizes = { longestListing: 0, longestAnswer: 0, counted: true }

const countRows = ({ entities: listings }: FeedbackPage): number =>
  listings.reduce((rows, listing) => rows + listing.rows.length, 0)

export const updatePageSizes = (lengths: PageSizes, page: FeedbackPage): PageSizes => ({
  ...lengths,
  longestListing: Math.max(lengths.longestListing, ...page.entities.map(({ rows }) => rows.length)),
  longestAnswer: Math.max(lengths.longestAnswer, countRows(page)),
})

/** Fewer rows than this are no page cut short by a limit that the service does not tell. */
const minFullRows = 10

/**
 * Whether a listing came whole: it is shorter than a page may be. One as long as any before may end where a limit that nobody
 * told cuts it, and one of several pages by the answer's own count has more: those are in doubt until the next page is empty.
 */
export const checkCompleteness = (
  lengths: PageSizes,
  listing: EntityFeedback | undefined,
  { perPage }: Pick<FeedbackPage, 'perPage'>,
): 'whole' | 'doubtful' | 'more' => {
  if (listing === undefined || perPage === Number.POSITIVE_INFINITY) return 'whole'
  const { rows, pages = 1 } = listing
  if (rows.length >= perPage) return 'more'
  return (lengths.counted && pages > 1) || (rows.length >= minFullRows && rows.length >= lengths.longestListing)
    ? 'doubtful'
    : 'whole'
}

/** Whether an answer for many may be one page over all of them: as long as a page may be, or as any answer before. */
export const isFullPage = (lengths: PageSizes, page: FeedbackPage): boolean => {
  const rows = countRows(page)
  if (page.perPage === Number.POSITIVE_INFINITY) return false
  return rows === page.perPage || (rows >= minFullRows && rows >= lengths.longestAnswer)
}

/** At most so many, since comments are not spread evenly: of a window cut finely at once most parts would be empty. */
const maxSplitParts = 4

/** How many windows to cut a listing's into: by its own count of pages, else in two. */
export const splitCount = ({ counted }: PageSizes, listing: EntityFeedback | undefined): number =>
  counted ? Math.min(maxSplitParts, Math.max(2, listing?.pages ?? 0)) : 2

export const isEmptyPage = (page: FeedbackPage): boolean => countRows(page) === 0

/** Whether a page beyond the first holds nothing but rows of the first, as where a service repeats its last page. */
export const isRepeatedPage = (key: string, first: FeedbackPage, next: FeedbackPage): boolean => {
  const known = new Set(first.entities.flatMap(({ id, rows }) => rows.map((row) => `${id} ${row[key]}`)))
  return next.entities.every(({ id, rows }) => rows.every((row) => known.has(`${id} ${row[key]}`)))
}
