import type { Either } from 'fp-ts/Either'
import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import type { TaskEither } from 'fp-ts/TaskEither'
import * as TE from 'fp-ts/TaskEither'
import { type ApiError, isRefusalInBody } from '../../api'
import type { SourceEnv } from '../source-env'
import type { EntityKind } from './entities'

/** One request for the feedback of some entities in a window of time; times in milliseconds. */
export type FeedbackRequest = {
  readonly kind: EntityKind
  readonly ids: ReadonlyArray<string>
  readonly from: number
  readonly to: number
  readonly page: number
  /** The rows to request for a page, where they differ from the configured ones. */
  readonly perPage?: number
  /** Leaves the dates out, for a service that ignores them: the days decide. */
  readonly byDays?: boolean
  /** The days of an earlier page, since a key may hold only for requests with equal filters. */
  readonly days?: number
  /** The key of the requested page, as the answer before gave it, in place of its number. */
  readonly scrollKey?: string
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
  /** The key of the page that follows, where the answer gives one. */
  readonly scrollKey?: string
  /** The service refused the page, which may be behind the last one, so there are no rows. */
  readonly isRefused?: true
  /** The days that were requested. */
  readonly days?: number
  /** The days that the answer covers, where its echo tells fewer than the requested ones. */
  readonly coveredDays?: number
  /** The service's clock, milliseconds, where it is known. */
  readonly servedAt?: number
}

/** What the service answered for one entity in a window. */
export type EntityResult = {
  readonly kind: EntityKind
  readonly id: string
  /** The window's end in milliseconds; none: the run's cutoff, and the entity is complete. */
  readonly to: number | undefined
  /** Of a page of an entity that is read page by page: which reading it belongs to, and whether the entity ends with it. */
  readonly scroll?: { readonly reading: number; readonly isEnd: boolean }
  /** Its feedback, or why the service refuses it. None: the service does not know the entity. */
  readonly feedback: Either<ApiError, EntityFeedback | undefined>
}

export const toEntityResult = (
  { kind, to }: Pick<EntityResult, 'kind' | 'to'>,
  id: string,
  feedback: EntityResult['feedback'],
): EntityResult => ({ kind, id, to, feedback })

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

/** A feedback operation, and how a page of it is fetched. */
export type FeedbackService = {
  readonly operation: FeedbackOperation
  readonly fetch: (request: FeedbackRequest) => TaskEither<ApiError, FeedbackPage>
}

/** The feedback of the only requested entity, under whatever id the service lists it; none if it lists nothing. */
export const findEntityFeedback = (id: string, { entities }: FeedbackPage): EntityFeedback | undefined => {
  const [first] = entities
  const sameId = entities.find((entity) => entity.id === id)
  return sameId ?? (first === undefined ? undefined : { ...first, rows: entities.flatMap(({ rows }) => rows) })
}

/** What the answers so far show about pages. */
export type PageSizes = {
  /** The most rows of one entity in a page, and of all entities together. */
  readonly maxEntityRows: number
  readonly maxPageRows: number
  /** Whether the page counts of answers have been right so far. */
  readonly trustsPageCounts: boolean
  /** Whether rows have followed a page that was shorter than others: the service filters a page after it has cut it. */
  readonly hasShortPages: boolean
  /**
   * How many windows or groups have ended, for certain, with as many rows as ever before: a limit would have cut one of them.
   * Minus infinity: rows have followed a page that seemed to have room for them, so there is a limit that is not told.
   */
  readonly certainEnds: number
  /** Whether the service uses windows, where an answer has shown it; ignored: each entity is read from page to page. */
  readonly windows: 'unknown' | 'used' | 'ignored'
}

export const initialPageSizes: PageSizes = {
  maxEntityRows: 0,
  maxPageRows: 0,
  trustsPageCounts: true,
  hasShortPages: false,
  certainEnds: 0,
  windows: 'unknown',
}

export const countRows = ({ entities }: FeedbackPage): number =>
  entities.reduce((count, { rows }) => count + rows.length, 0)

export const updatePageSizes = (sizes: PageSizes, page: FeedbackPage): PageSizes => {
  const maxEntityRows = Math.max(sizes.maxEntityRows, ...page.entities.map(({ rows }) => rows.length))
  const maxPageRows = Math.max(sizes.maxPageRows, countRows(page))
  const isLarger = maxEntityRows > sizes.maxEntityRows || maxPageRows > sizes.maxPageRows
  return { ...sizes, maxEntityRows, maxPageRows, certainEnds: Math.min(sizes.certainEnds, isLarger ? 0 : Infinity) }
}

/**
 * Whether an entity's feedback is complete by the answer's own page count. Without a count, or where there are as many rows as
 * ever before, which a limit that the service does not tell may have cut, it is uncertain until the next page is empty: a page
 * with fewer rows than requested need not be the last, since the service may filter a page after it has cut it.
 */
export const checkCompleteness = (
  sizes: PageSizes,
  feedback: EntityFeedback | undefined,
  { perPage }: Pick<FeedbackPage, 'perPage'>,
): 'complete' | 'uncertain' | 'incomplete' => {
  if (feedback === undefined || perPage === Number.POSITIVE_INFINITY) return 'complete'
  const { rows, pages } = feedback
  if (rows.length >= perPage) return 'incomplete'
  if (rows.length === 0)
    return sizes.hasShortPages || (sizes.trustsPageCounts && (pages ?? 0) > 1) ? 'uncertain' : 'complete'
  return sizes.trustsPageCounts && pages === 1 && rows.length < sizes.maxEntityRows ? 'complete' : 'uncertain'
}

/** Whether an answer about many entities may be one page over all of them: as many rows as a page can hold, or as ever before. */
export const isFullPage = (sizes: PageSizes, page: FeedbackPage): boolean => {
  const count = countRows(page)
  if (page.perPage === Number.POSITIVE_INFINITY || count === 0) return false
  return count === page.perPage || count >= sizes.maxPageRows
}

/** Whether pages hold more rows of all entities than a page may have: then pages are counted for each entity. */
export const isPagedByEntity = (page: FeedbackPage): boolean => countRows(page) > page.perPage

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

/** So many rows may be a page that a limit has cut, although the service answers each page number with it. */
export const minRepeatedRows = 10

/** The empty pages in a row that are the end of an entity's rows. */
const emptyPagesAtEnd = ({ hasShortPages }: PageSizes): number => (hasShortPages ? 3 : 1)

/** The first page after the first that has rows, or of several entities one that is refused; none if the rows end there. */
export const findNextPage = (
  { operation, fetch }: FeedbackService,
  request: Omit<FeedbackRequest, 'page'>,
  sizes: PageSizes,
): TaskEither<ApiError, FeedbackPage | undefined> => {
  const tryPage = (skipped: number): TaskEither<ApiError, FeedbackPage | undefined> =>
    skipped >= emptyPagesAtEnd(sizes)
      ? TE.right(undefined)
      : pipe(
          fetch({ ...request, page: operation.firstPage + 1 + skipped }),
          TE.flatMap((next) => {
            if (next.isRefused) return TE.right(request.ids.length > 1 ? next : undefined)
            return isEmptyPage(next) ? tryPage(skipped + 1) : TE.right(next)
          }),
        )
  return tryPage(0)
}

type Rows = EntityFeedback['rows']

/** One reading of all pages of a window: its rows by key, and how many rows the pages had, repeated ones included. */
type Reading = { readonly byKey: ReadonlyMap<string, Rows[number]>; readonly served: number; readonly largest: number }

/**
 * The page sizes of the readings of one second, as shares of the largest page of the first reading. The order of rows with one
 * time may depend on the page and on its size, so that readings of one size may all miss the same rows.
 */
const sizeShares = [0.5, 0.75, 0.6, 0.9, 0.4, 0.8, 0.3, 0.7, 0.95, 0.55, 0.35, 0.65, 0.85, 0.45, 0.25]
const maxPages = 10_000
/** The pages in a row with the rows of the page before; after more, the service ignores the page number. */
const maxRepeatedPages = 3

/**
 * All rows of a window of one second, which cannot be split, in whatever order the service serves rows of one time. The pages
 * of a reading tell by their rows how many there are; it is read until two readings tell the same number and so many different
 * rows were seen since. The inner Left: they were not, and only this entity is concerned.
 */
export const readTiedRows =
  (
    service: FeedbackService,
    request: Omit<FeedbackRequest, 'page' | 'perPage'>,
    sizes: PageSizes,
  ): TaskEither<ApiError, E.Either<ApiError, Rows>> =>
  async () => {
    const all = new Map<string, Rows[number]>()
    let counted = new Set<string>()
    let told: number | undefined
    let largest = 0
    for (let n = 0; n <= sizeShares.length + 1; n += 1) {
      // The second reading asks for one page that holds all: it has no order.
      const perPage =
        n === 0 ? undefined : n === 1 ? (told ?? 0) + 1 : Math.max(1, Math.floor(largest * (sizeShares[n - 2] ?? 1)))
      const reading = await readPages(service, { ...request, ...(perPage === undefined ? {} : { perPage }) }, sizes)()
      if (E.isLeft(reading)) {
        if (n === 1 && isSizeRefusal(reading.left)) continue
        return reading.left === repeatedPagesError ? E.right(reading) : reading
      }
      const { byKey, served } = reading.right
      if (n === 0) largest = reading.right.largest
      if (served !== told) counted = new Set()
      for (const [key, row] of byKey) {
        all.set(key, row)
        counted.add(key)
      }
      if (served === told && counted.size >= served) return E.right(E.right([...all.values()]))
      told = served
    }
    return E.right(
      E.left(
        pagingError(
          `the service serves ${told} rows of one second in changing order, and after ${sizeShares.length + 2} readings only ${counted.size} different ones have come`,
        ),
      ),
    )
  }

/** Whether an error says that so many rows cannot be requested at once. */
const isSizeRefusal = (error: ApiError): boolean =>
  isRefusalInBody(error) ||
  error._tag === 'TooLarge' ||
  (error._tag === 'Http' && [400, 413, 414, 416, 422].includes(error.status))

const readPages =
  (
    { operation: { key, firstPage }, fetch }: FeedbackService,
    request: Omit<FeedbackRequest, 'page'>,
    sizes: PageSizes,
  ): TaskEither<ApiError, Reading> =>
  async () => {
    const byKey = new Map<string, Rows[number]>()
    let [served, largest, emptyPages, repeatedPages] = [0, 0, 0, 0]
    let lastKeys = ''
    for (let page: number = firstPage; page < maxPages; page += 1) {
      const answer = await fetch({ ...request, page })()
      if (E.isLeft(answer)) return answer
      const rows = findEntityFeedback(request.ids[0] ?? '', answer.right)?.rows ?? []
      emptyPages = rows.length === 0 ? emptyPages + 1 : 0
      if (answer.right.isRefused || emptyPages >= emptyPagesAtEnd(sizes)) return E.right({ byKey, served, largest })
      const keys = rows.map((row) => String(row[key]))
      repeatedPages = keys.length > 0 && keys.join() === lastKeys ? repeatedPages + 1 : 0
      lastKeys = keys.join()
      if (repeatedPages >= maxRepeatedPages) return E.left(repeatedPagesError)
      rows.forEach((row, index) => {
        byKey.set(keys[index] ?? '', row)
      })
      served += rows.length
      largest = Math.max(largest, rows.length)
    }
    return E.left(repeatedPagesError)
  }

const pagingError = (message: string): ApiError => ({ _tag: 'Decode', path: '$.data.entities', message })

const repeatedPagesError = pagingError('the pages of one second do not end: each has the rows of the one before')
