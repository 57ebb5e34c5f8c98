import type { TaskEither } from 'fp-ts/TaskEither'
import type { ApiError } from '../../api'
import type { SourceEnv } from '../source-env'
import type { EntityKind } from './entities'

/** One request for the feedback of some entities in a window of time; times in milliseconds. */
export type FeedbackRequest = {
  readonly kind: EntityKind
  readonly ids: ReadonlyArray<string>
  readonly from: number
  readonly to: number
  readonly page: number
}

/** The feedback of one entity in a page. */
export type EntityFeedback = {
  readonly id: string
  readonly name: unknown
  readonly rows: ReadonlyArray<Readonly<Record<string, unknown>>>
  /** The number of pages, if the answer gives one. */
  readonly pages?: number
}

/** An answer to a feedback request. */
export type FeedbackPage = {
  readonly entities: ReadonlyArray<EntityFeedback>
  /** The most rows of a page: as the answer echoes it, else as requested. Infinity: the operation has no pages. */
  readonly perPage: number
  /** The window that the answer echoes, milliseconds; absent if it echoes none. */
  readonly window?: { readonly from: number; readonly to: number }
  /** The service's clock, milliseconds, where it is known. */
  readonly servedAt?: number
}

/** An operation that lists feedback by entity in numbered pages. */
export type FeedbackOperation = {
  readonly name: string
  /** The most identifiers of a request, until the service refuses so many. */
  readonly maxIdentifiers: number
  readonly firstPage: 0 | 1
  /** The attribute that identifies a row among those of its entity. */
  readonly key: string
  readonly createFetch: (source: SourceEnv) => (request: FeedbackRequest) => TaskEither<ApiError, FeedbackPage>
}

/** The feedback of the only requested entity, under whatever id the service lists it; none if it lists nothing. */
export const findEntityFeedback = (id: string, { entities }: FeedbackPage): EntityFeedback | undefined => {
  const [first] = entities
  const sameId = entities.find((entity) => entity.id === id)
  return sameId ?? (first === undefined ? undefined : { ...first, rows: entities.flatMap(({ rows }) => rows) })
}

/** What the answers so far show about the size of pages. */
export type PageSizes = {
  /** The most rows of one entity in a page, and of all entities together. */
  readonly maxEntityRows: number
  readonly maxPageRows: number
  /** Whether the page counts of answers have been right so far. */
  readonly trustsPageCounts: boolean
}

export const initialPageSizes: PageSizes = { maxEntityRows: 0, maxPageRows: 0, trustsPageCounts: true }

const countRows = ({ entities }: FeedbackPage): number => entities.reduce((count, { rows }) => count + rows.length, 0)

export const updatePageSizes = (sizes: PageSizes, page: FeedbackPage): PageSizes => ({
  ...sizes,
  maxEntityRows: Math.max(sizes.maxEntityRows, ...page.entities.map(({ rows }) => rows.length)),
  maxPageRows: Math.max(sizes.maxPageRows, countRows(page)),
})

/** A page with fewer rows than this is not taken for one that an unknown limit of the service has cut short. */
const minFullRows = 10

/**
 * Whether an entity's feedback is complete: it has fewer rows than a page can hold. Two cases are uncertain until the next
 * page is empty: as many rows as ever before, since a limit that the service does not tell may have cut them, and several
 * pages by the answer's own count.
 */
export const checkCompleteness = (
  sizes: PageSizes,
  feedback: EntityFeedback | undefined,
  { perPage }: Pick<FeedbackPage, 'perPage'>,
): 'complete' | 'uncertain' | 'incomplete' => {
  if (feedback === undefined || perPage === Number.POSITIVE_INFINITY) return 'complete'
  const { rows, pages = 1 } = feedback
  if (rows.length >= perPage) return 'incomplete'
  return (sizes.trustsPageCounts && pages > 1) || (rows.length >= minFullRows && rows.length >= sizes.maxEntityRows)
    ? 'uncertain'
    : 'complete'
}

/** Whether an answer about many entities may be one page over all of them: as many rows as a page can hold, or as ever before. */
export const isFullPage = (sizes: PageSizes, page: FeedbackPage): boolean => {
  const count = countRows(page)
  if (page.perPage === Number.POSITIVE_INFINITY) return false
  return count === page.perPage || (count >= minFullRows && count >= sizes.maxPageRows)
}

/** Comments are not spread evenly over time: most parts of a window that is split finely at once would be empty. */
const maxSplitParts = 4

/** The number of parts to split a window into: by the answer's page count while these are right, else two. */
export const splitCount = ({ trustsPageCounts }: PageSizes, feedback: EntityFeedback | undefined): number =>
  trustsPageCounts ? Math.min(maxSplitParts, Math.max(2, feedback?.pages ?? 0)) : 2

export const isEmptyPage = (page: FeedbackPage): boolean => countRows(page) === 0

/** Whether a later page has only rows of the first, because the service repeats its last page. */
export const isRepeatedPage = (key: string, first: FeedbackPage, next: FeedbackPage): boolean => {
  const firstKeys = new Set(first.entities.flatMap(({ id, rows }) => rows.map((row) => `${id} ${row[key]}`)))
  return next.entities.every(({ id, rows }) => rows.every((row) => firstKeys.has(`${id} ${row[key]}`)))
}
