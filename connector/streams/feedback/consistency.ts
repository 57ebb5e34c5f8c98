import { pipe } from 'fp-ts/function'
import type { TaskEither } from 'fp-ts/TaskEither'
import * as TE from 'fp-ts/TaskEither'
import { type ApiError, isRefusalInBody, toInstant, toMillis } from '../../api'
import { ceilToSecond } from '../../reading'
import {
  countRows,
  type EntityFeedback,
  type FeedbackOperation,
  type FeedbackPage,
  type FeedbackRequest,
  type FeedbackService,
  isEmptyPage,
  isFullPage,
  isPagedByEntity,
  isRepeatedPage,
  minRepeatedRows,
  type PageSizes,
} from './page'

type FetchFeedback = (request: FeedbackRequest) => TaskEither<ApiError, FeedbackPage>

const maxConsistencyAttempts = 3

/** Requests have whole seconds, and a service may leave the fractions of its rows out of account. */
const edgeMargin = 2000

/** Whether rows lie outside the window (milliseconds): then splitting the window would never end. */
export const isOutsideWindow = (from: number, to: number, { rows }: Pick<EntityFeedback, 'rows'>): boolean =>
  rows.some(({ mentionTime }) => {
    const time = toMillis(String(mentionTime))
    return time < from - edgeMargin || time > to + edgeMargin
  })

type TimeSpan = { readonly from: number; readonly to: number }

/** Whether an echoed window is wider than the requested one; a narrower one is allowed. Milliseconds. */
const isWiderWindow = (requested: TimeSpan, echoed: TimeSpan): boolean =>
  echoed.from < requested.from || echoed.to > ceilToSecond(requested.to)

/** What an answer echoes of the requested window. */
export const findEcho = (
  request: TimeSpan,
  { window }: Pick<FeedbackPage, 'window'>,
): 'requested' | 'wider' | 'none' =>
  window === undefined ? 'none' : isWiderWindow(request, window) ? 'wider' : 'requested'

/**
 * Fails with `ignoredWindowError` if the service ignores the window of a request: its answer has a scrollKey and does not
 * echo the window, or the answer to a window of one second has other rows. The latter takes one request.
 */
export const checkWindowIsUsed = (
  { operation: { firstPage }, fetch }: FeedbackService,
  request: Omit<FeedbackRequest, 'page'>,
  page: FeedbackPage,
): TaskEither<ApiError, 'used'> => {
  if (page.scrollKey !== undefined && findEcho(request, page) !== 'requested') return TE.left(ignoredWindowError)
  const { kind, ids, from } = request
  const hasRows = page.entities.find(({ id, rows }) => rows.length > 0 && ids.includes(id))?.id ?? ids[0] ?? ''
  const second = { kind, ids: [hasRows], from, to: Math.min(request.to, from + 1000), page: firstPage }
  return pipe(
    fetch(second),
    TE.map((answer) => answer.entities.some((feedback) => isOutsideWindow(from, second.to, feedback))),
    // It does not answer for such a window: so it uses the dates.
    TE.orElse((error) => (concernsRequest(error) ? TE.right(false) : TE.left(error))),
    TE.flatMap((isIgnored) => (isIgnored ? TE.left(ignoredWindowError) : TE.right('used' as const))),
  )
}

/** Fails with `ignoredPageError` if the service gives a scrollKey and answers the second page with the first one. */
export const checkPagesAreUsed = (
  { operation: { key, firstPage }, fetch }: FeedbackService,
  request: Omit<FeedbackRequest, 'page'>,
  page: FeedbackPage,
): TaskEither<ApiError, void> =>
  page.scrollKey === undefined
    ? TE.right(undefined)
    : pipe(
        fetch({ ...request, page: firstPage + 1 }),
        TE.flatMap((next) => (isRepeatedPage(key, page, next) ? TE.left(ignoredPageError) : TE.right(undefined))),
      )

/** A window's first page, the sizes of pages up to it, and whether the next run reads the window again. */
type FirstPage = { readonly page: FeedbackPage; readonly sizes: PageSizes; readonly isReadAgain: boolean }

/**
 * Whether a page after the first shows that there are no more rows: it repeats the first one, and asked for again it is empty
 * (another answer had come in its place), or it repeats a small page again (the service ignores the page number). A repeated
 * page may also have come in place of another one: it proves nothing while the window can be split. Nor does it where the first page
 * has other rows by then: so many came in front that its rows are the second page.
 */
export const isLastPage = (
  { operation: { key, firstPage }, fetch }: FeedbackService,
  request: Omit<FeedbackRequest, 'page'>,
  { page, sizes, isReadAgain }: FirstPage,
  { next, isSplittable }: { readonly next: FeedbackPage; readonly isSplittable: boolean },
): TaskEither<ApiError, boolean> => {
  const isRepeated = (other: FeedbackPage): boolean => isRepeatedPage(key, page, other)
  if (!isRepeated(next) || !isSplittable) return TE.right(isRepeated(next))
  return pipe(
    fetch({ ...request, page: firstPage + 1 }),
    TE.flatMap((again) => {
      if (isEmptyPage(again)) return TE.right(true)
      if (!isRepeated(again) || countRows(page) >= Math.max(minRepeatedRows, sizes.maxEntityRows))
        return TE.right(false)
      return isReadAgain ? TE.right(true) : pipe(fetch({ ...request, page: firstPage }), TE.map(isRepeated))
    }),
  )
}

/** So many windows that ended with as many rows as ever before show that no limit cuts there. */
const enoughCertainEnds = 3

/**
 * Whether a first page may be a full one, so that a row behind it moves to it, and is seen on neither page, if one of its rows is
 * deleted before the next page is asked for. `ended`: the entities for which the next page has no rows. What the next run reads
 * again needs no look: it brings such a row.
 */
const mayHaveMovedRows = ({ page, sizes, isReadAgain }: FirstPage, ended: ReadonlyArray<EntityFeedback>): boolean => {
  const { trustsPageCounts, hasShortPages, maxEntityRows, certainEnds } = sizes
  if (isReadAgain) return false
  if (hasShortPages || ended.some(({ pages = 1 }) => trustsPageCounts && pages > 1)) return true
  if (certainEnds >= enoughCertainEnds) return false
  const isOnePage = ({ pages }: EntityFeedback): boolean => trustsPageCounts && pages === 1
  return (
    ended.some((feedback) => feedback.rows.length >= Math.max(1, maxEntityRows) && !isOnePage(feedback)) ||
    (page.entities.length > 1 && !isPagedByEntity(page) && isFullPage(sizes, page))
  )
}

/**
 * Whether the first page had, at the time when the next one was read, all rows of the entities that the next one lacks (`ended`).
 * Where it may have been full, it is read once more: if that brings no other row, no row has left it, and so none has moved to it.
 */
export const checkNoneMoved = (
  { operation: { key, firstPage }, fetch }: FeedbackService,
  request: Omit<FeedbackRequest, 'page'>,
  first: FirstPage,
  ended: ReadonlyArray<EntityFeedback>,
): TaskEither<ApiError, { readonly isComplete: boolean; readonly certainEnds: number }> =>
  mayHaveMovedRows(first, ended)
    ? pipe(
        fetch({ ...request, page: firstPage }),
        TE.map((again) => ({
          isComplete: isRepeatedPage(key, first.page, again),
          certainEnds: first.sizes.certainEnds + 1,
        })),
      )
    : TE.right({ isComplete: true, certainEnds: first.sizes.certainEnds })

/** The path of the errors by which a service shows that it ignores windows or page numbers. */
const filterPath = '$.data.filter'

export const ignoredWindowError: ApiError = {
  _tag: 'Decode',
  path: filterPath,
  message: 'the service ignores fromDate and toDate: the answer has rows of other times',
}

export const ignoredPageError: ApiError = {
  _tag: 'Decode',
  path: filterPath,
  message: 'the service ignores page: it answers each page with the first one',
}

/** Whether the rows cannot be read by windows. */
export const needsScroll = (error: ApiError): boolean => error._tag === 'Decode' && error.path === filterPath

/** Whether an error may be about what was requested and not about the service. */
const concernsRequest = (error: ApiError): boolean =>
  isRefusalInBody(error) ||
  error._tag === 'TooLarge' ||
  (error._tag === 'Http' && [400, 403, 404, 410, 413, 414, 416, 422].includes(error.status))

export const otherEntityError: ApiError = {
  _tag: 'Decode',
  path: '$.data.entities.id',
  message: 'the answer is about another entity than the requested one',
}

export const refusedKeyError: ApiError & { readonly message: string } = {
  _tag: 'Decode',
  path: '$.data',
  message: 'the service refuses the scrollKey that it gave itself, three times',
}

/** Whether an error may say that a scroll key is no longer valid. */
export const isKeyRefusal = (error: ApiError): boolean =>
  isRefusalInBody(error) || (error._tag === 'Http' && [400, 404, 410].includes(error.status))

/** The page of a scrollKey; none if the service refuses the key, so that the window must be begun again, which it may be twice. */
export const fetchByKey = (
  { fetch }: FeedbackService,
  request: FeedbackRequest,
  attempt: number,
): TaskEither<ApiError, FeedbackPage | undefined> =>
  pipe(
    fetch(request),
    TE.orElse((error) => {
      if (!isKeyRefusal(error)) return TE.left(error)
      return attempt < maxWindowAttempts ? TE.right(undefined) : TE.left(refusedKeyError)
    }),
  )

const otherWindowError = ({ from, to }: FeedbackRequest): ApiError => ({
  _tag: 'Decode',
  path: filterPath,
  message: `the answer is not of the requested window from ${toInstant(from)} to ${toInstant(to)}`,
})

/** What a service may or may not do: echo the requested window, list an entity by its id, list a roll-up as itself. */
type Trait = 'echoes window' | 'keeps ids' | 'keeps roll-up ids'

/** A sign that an answer belongs to another request, and the trait of the service that it contradicts. */
type Inconsistency = { readonly trait: Trait; readonly error: ApiError }

/**
 * Checks each answer against its request, and requests it up to twice more if it seems to belong to another one. The
 * specification does not promise that the echo is exact, or that an answer has the requested ids; so traits are learned. A
 * trait that an answer has shown is required from then on. Ids that no answer has shown by the last attempt are not required.
 */
export const withConsistencyCheck = (fetch: FetchFeedback): FetchFeedback => {
  /** The learned traits: true if an answer has shown it, false if it is not required. */
  const traits = new Map<Trait, boolean>()
  const requestedIds = new Set<string>()

  const checkWindow = (request: FeedbackRequest, { window, entities }: FeedbackPage): ReadonlyArray<Inconsistency> => {
    const { from, to, byDays } = request
    const trait = 'echoes window'
    if (window?.from === from && window.to === ceilToSecond(to)) traits.set(trait, true)
    if (traits.get(trait) !== true || byDays === true) return []
    if (window !== undefined && isWiderWindow(request, window)) return [{ trait, error: otherWindowError(request) }]
    return entities.some((feedback) => isOutsideWindow(from, to, feedback))
      ? [{ trait, error: ignoredWindowError }]
      : []
  }

  const checkEntity = ({ kind, ids }: FeedbackRequest, { entities }: FeedbackPage): ReadonlyArray<Inconsistency> => {
    const [id = '', ...others] = ids
    if (entities.some((feedback) => ids.includes(feedback.id))) traits.set('keeps ids', true)
    if (others.length > 0 || entities.some((feedback) => feedback.id === id)) return []
    // An answer about a roll-up may list its members, and these may have been requested too.
    return entities.length === 1 && entities.some((feedback) => requestedIds.has(feedback.id))
      ? [{ trait: kind === 'entity' ? 'keeps roll-up ids' : 'keeps ids', error: otherEntityError }]
      : []
  }

  const fetchConsistent = (request: FeedbackRequest, attempt: number): TaskEither<ApiError, FeedbackPage> =>
    pipe(
      fetch(request),
      TE.flatMap((page) => {
        const inconsistencies = [...checkWindow(request, page), ...checkEntity(request, page)].filter(
          ({ trait }) => traits.get(trait) !== false,
        )
        if (inconsistencies.length === 0) return TE.right(page)
        if (attempt < maxConsistencyAttempts) return fetchConsistent(request, attempt + 1)
        const required = inconsistencies.find(({ trait }) => traits.get(trait) === true)
        if (required !== undefined) return TE.left(required.error)
        for (const { trait } of inconsistencies) traits.set(trait, false)
        return TE.right(page)
      }),
    )

  return (request) => {
    for (const id of request.ids) requestedIds.add(id)
    return fetchConsistent(request, 1)
  }
}

/** The key of a row, and its mention time in milliseconds. */
export type ExpectedRow = { readonly key: string; readonly time: number }

/** An expected row this close to an end of the window (milliseconds) may be missing: it is not known which rows the bounds include. */
const expectedMargin = 1000
export const maxWindowAttempts = 3

/** Whether rows are missing that lie well inside the window: they were deleted, or the answer belongs to another request. */
export const lacksExpectedRows = (
  { key }: FeedbackOperation,
  { expectedRows = [], from }: { readonly expectedRows?: ReadonlyArray<ExpectedRow>; readonly from: number },
  to: number,
  feedback: EntityFeedback | undefined,
): boolean => {
  const keys = new Set(feedback?.rows.map((row) => String(row[key])))
  return expectedRows.some(
    (row) => row.time > from + expectedMargin && row.time < to - expectedMargin && !keys.has(row.key),
  )
}

export const toExpectedRows = (
  { key }: FeedbackOperation,
  feedback: EntityFeedback | undefined,
): ReadonlyArray<ExpectedRow> =>
  (feedback?.rows ?? []).map((row) => ({ key: String(row[key]), time: toMillis(String(row.mentionTime)) }))
