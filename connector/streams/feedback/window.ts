import type { Either } from 'fp-ts/Either'
import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import type { TaskEither } from 'fp-ts/TaskEither'
import * as TE from 'fp-ts/TaskEither'
import type { ApiError } from '../../api'
import { defined } from '../../cdk'
import { checkWindowIsUsed, findEcho, ignoredPageError, ignoredWindowError, isOutsideWindow } from './consistency'
import type { EntityKind } from './entities'
import {
  checkCompleteness,
  type EntityFeedback,
  type ExpectedRow,
  type FeedbackPage,
  type FeedbackService,
  findEntityFeedback,
  findNextPage,
  isEmptyPage,
  isFullPage,
  isPagedByEntity,
  isRepeatedPage,
  lacksExpectedRows,
  maxWindowAttempts,
  minRepeatedRows,
  type PageSizes,
  readTiedRows,
  splitCount,
  toExpectedRows,
} from './page'

/** A window of time to read for some entities of one kind; milliseconds, `from` at a whole second. */
export type FeedbackWindow = {
  readonly kind: EntityKind
  readonly ids: ReadonlyArray<string>
  readonly from: number
  /** None: up to the run's cutoff. Such a window is the last one of its entities. */
  readonly to: number | undefined
  /** Rows of the only entity that an answer for a longer window had. */
  readonly expectedRows?: ReadonlyArray<ExpectedRow>
  /** Which attempt to read the window this is, counted while answers lack expected rows. */
  readonly attempt?: number
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
  { kind, to }: FeedbackWindow,
  id: string,
  feedback: EntityResult['feedback'],
): EntityResult => ({ kind, id, to, feedback })

const second = 1000

/** Whether a window that ends at `to` can be split: one of a single second cannot. */
export const isSplittable = ({ from }: FeedbackWindow, to: number): boolean => to - from > second + 1

/** A window in up to `count` parts, in order of time; they overlap by a millisecond, since it is not known whether the bounds are inclusive. */
export const splitFeedbackWindow = (
  window: FeedbackWindow,
  to: number,
  count: number,
): ReadonlyArray<FeedbackWindow> => {
  const seconds = Math.ceil((to - 1 - window.from) / second)
  const parts = Math.min(count, seconds)
  const boundary = (n: number): number => window.from + Math.floor((n * seconds) / parts) * second
  return Array.from({ length: parts }, (_, n) => ({
    ...window,
    from: boundary(n),
    to: n === parts - 1 ? window.to : boundary(n + 1) + 1,
  }))
}

/** The same window for at most `size` entities at a time. */
export const splitIdentifiers = (window: FeedbackWindow, size: number): ReadonlyArray<FeedbackWindow> =>
  window.ids.length <= size
    ? [window]
    : Array.from({ length: Math.ceil(window.ids.length / size) }, (_, n) => ({
        ...window,
        ids: window.ids.slice(n * size, (n + 1) * size),
      }))

/** A window with the first page of its answer; times in milliseconds. */
type AnsweredWindow = {
  readonly window: FeedbackWindow
  /** The end of the window to read, and the end that was requested, which is later before the service's time is known. */
  readonly to: number
  readonly requestedTo: number
  readonly page: FeedbackPage
  readonly sizes: PageSizes
}

type WindowResolution = {
  readonly results: ReadonlyArray<EntityResult>
  /** The windows that are still to be read in place of this one. */
  readonly remaining: ReadonlyArray<FeedbackWindow>
  /** What the answers have shown about pages. */
  readonly traits: Pick<PageSizes, 'trustsPageCounts' | 'hasShortPages' | 'windows'>
  /** The service lists entities under other ids than the requested ones: each needs a request of its own. */
  readonly splitAll?: true
}

/** The entities whose feedback an answer completes, and the windows to read for the others. */
export const resolveWindow = (
  service: FeedbackService,
  answered: AnsweredWindow,
): TaskEither<ApiError, WindowResolution> => {
  const { window, requestedTo, page, sizes } = answered
  const resolve = (checked: AnsweredWindow): TaskEither<ApiError, WindowResolution> =>
    window.ids.length === 1 ? resolveSingle(service, checked) : resolveGroup(service, checked)
  const request = { kind: window.kind, ids: window.ids, from: window.from, to: requestedTo }
  return sizes.windows === 'unknown' && findEcho(request, page) === 'wider' && !isEmptyPage(page)
    ? pipe(
        checkWindowIsUsed(service, request, page),
        TE.flatMap(() => resolve({ ...answered, sizes: { ...sizes, windows: 'used' } })),
      )
    : resolve(answered)
}

const traitsOf = ({ trustsPageCounts, hasShortPages, windows }: PageSizes): WindowResolution['traits'] => ({
  trustsPageCounts,
  hasShortPages,
  windows,
})

const resolveSingle = (service: FeedbackService, answered: AnsweredWindow): TaskEither<ApiError, WindowResolution> => {
  const { operation } = service
  const { window, to, requestedTo, page, sizes } = answered
  const [id = ''] = window.ids
  const traits = traitsOf(sizes)
  const request = { kind: window.kind, ids: window.ids, from: window.from, to }
  const feedback = findEntityFeedback(id, page)
  const rowCount = feedback?.rows.length ?? 0
  const resolveComplete = (trustsPageCounts = traits.trustsPageCounts): WindowResolution => {
    const { attempt = 1 } = window
    return attempt < maxWindowAttempts && lacksExpectedRows(service.operation, window, to, feedback)
      ? { results: [], remaining: [{ ...window, attempt: attempt + 1 }], traits }
      : {
          results: [toEntityResult(window, id, E.right(feedback))],
          remaining: [],
          traits: { ...traits, trustsPageCounts },
        }
  }
  const resolveIncomplete = (next?: FeedbackPage): TaskEither<ApiError, WindowResolution> => {
    const requested = { ...request, to: requestedTo }
    if (feedback !== undefined && isOutsideWindow(requested.from, requestedTo, feedback))
      return TE.left(ignoredWindowError)
    if (!isSplittable(window, to)) return resolveTied()
    const nextCount = next === undefined ? 0 : (findEntityFeedback(id, next)?.rows.length ?? 0)
    const shown = {
      // The answer told one page, and there is another.
      trustsPageCounts: traits.trustsPageCounts && (next === undefined || feedback?.pages !== 1),
      hasShortPages:
        traits.hasShortPages || rowCount < Math.min(page.perPage, Math.max(sizes.maxEntityRows, nextCount)),
    }
    return pipe(
      sizes.windows !== 'unknown' || findEcho(requested, page) === 'requested'
        ? TE.right(sizes.windows)
        : checkWindowIsUsed(service, requested, page),
      TE.map((windows) => ({
        results: [],
        remaining: splitFeedbackWindow(
          { ...window, expectedRows: toExpectedRows(service.operation, feedback), attempt: 1 },
          to,
          splitCount(sizes, feedback),
        ),
        traits: { ...traits, ...(next === undefined ? {} : shown), windows },
      })),
    )
  }
  /** Reads a window of one second page by page, if the service uses pages: where it gives a scrollKey, the second one is asked for first. */
  const resolveTied = (): TaskEither<ApiError, WindowResolution> =>
    pipe(
      page.scrollKey === undefined
        ? TE.right(true)
        : pipe(
            service.fetch({ ...request, page: operation.firstPage + 1 }),
            TE.map((next) => !isRepeatedPage(operation.key, page, next)),
          ),
      TE.flatMap((isPaged) => (isPaged ? TE.right(undefined) : TE.left(ignoredPageError))),
      TE.flatMap(() => readTiedRows(service, request, sizes)),
      TE.map((read) => ({
        results: [
          toEntityResult(
            window,
            id,
            pipe(
              read,
              E.map((rows) => ({ id, name: feedback?.name, rows })),
            ),
          ),
        ],
        remaining: [],
        traits,
      })),
    )
  /**
   * Whether a page after the first shows that there are no more rows: it repeats the first one, and asked for again it is empty
   * (another answer had come in its place), or it repeats a small page again (the service ignores the page number).
   */
  const isLastRepeated = (next: FeedbackPage): TaskEither<ApiError, boolean> => {
    const { key, firstPage } = operation
    if (!isRepeatedPage(key, page, next)) return TE.right(false)
    // A repeated page may also have come in place of another one: it proves nothing while the window can be split.
    if (!isSplittable(window, to)) return TE.right(true)
    return pipe(
      service.fetch({ ...request, page: firstPage + 1 }),
      TE.map(
        (again) =>
          isEmptyPage(again) ||
          (isRepeatedPage(key, page, again) && rowCount < Math.max(minRepeatedRows, sizes.maxEntityRows)),
      ),
    )
  }
  /** The page after the first by its number; complete if it has no rows that are not in the first. */
  const resolveByPage = (): TaskEither<ApiError, WindowResolution> =>
    pipe(
      findNextPage(service, request, sizes),
      TE.flatMap((next) =>
        next === undefined
          ? TE.right(resolveComplete(traits.trustsPageCounts && (feedback?.pages ?? 1) <= 1))
          : pipe(
              isLastRepeated(next),
              TE.flatMap((isLast) => (isLast ? TE.right(resolveComplete()) : resolveIncomplete(next))),
            ),
      ),
    )
  const state = checkCompleteness(sizes, feedback, page)
  if (state === 'incomplete') return resolveIncomplete()
  if (page.scrollKey === undefined) return state === 'complete' ? TE.right(resolveComplete()) : resolveByPage()
  // The service tells that rows follow.
  const byKey = { ...request, to: requestedTo, ...defined({ days: page.days, scrollKey: page.scrollKey }) }
  return pipe(
    service.fetch({ ...byKey, page: operation.firstPage }),
    TE.flatMap((next) => (isRepeatedPage(operation.key, page, next) ? resolveByPage() : resolveIncomplete(next))),
  )
}

const resolveGroup = (
  service: FeedbackService,
  { window, to, page, sizes }: AnsweredWindow,
): TaskEither<ApiError, WindowResolution> => {
  const traits = traitsOf(sizes)
  const separateWindows = (ids: ReadonlyArray<string>): ReadonlyArray<FeedbackWindow> =>
    ids.map((id) => ({
      ...window,
      ids: [id],
      expectedRows: toExpectedRows(
        service.operation,
        page.entities.find((feedback) => feedback.id === id),
      ),
    }))
  if (page.entities.some(({ id }) => !window.ids.includes(id)))
    return TE.right({ results: [], remaining: separateWindows(window.ids), traits, splitAll: true })
  const checked = page.entities.map((feedback) => ({ feedback, state: checkCompleteness(sizes, feedback, page) }))
  const resolveWith = (isComplete: (entity: (typeof checked)[number]) => boolean, shown = traits): WindowResolution => {
    const complete = checked.filter(isComplete).map(({ feedback }) => feedback)
    const completeIds = new Set(complete.map(({ id }) => id))
    return {
      results: complete.map((feedback) => toEntityResult(window, feedback.id, E.right(feedback))),
      remaining: separateWindows(window.ids.filter((id) => !completeIds.has(id))),
      traits: shown,
    }
  }
  if (!isFullPage(sizes, page) && checked.every(({ state }) => state !== 'uncertain'))
    return TE.right(resolveWith(({ state }) => state === 'complete'))
  return pipe(
    findNextPage(service, { kind: window.kind, ids: window.ids, from: window.from, to }, sizes),
    TE.map((next) => {
      if (next === undefined) {
        const isRight = checked.every(({ feedback: { pages = 1 }, state }) => state !== 'uncertain' || pages <= 1)
        return resolveWith(({ state }) => state !== 'incomplete', {
          ...traits,
          trustsPageCounts: traits.trustsPageCounts && isRight,
        })
      }
      const nextIds = new Set(next.entities.flatMap(({ id, rows }) => (rows.length === 0 ? [] : [id])))
      if (isPagedByEntity(page) && !traits.hasShortPages)
        return resolveWith(({ feedback, state }) => state !== 'incomplete' && !nextIds.has(feedback.id))
      const remaining =
        window.ids.length > maxSeparated
          ? splitIdentifiers(window, Math.ceil(window.ids.length / 2))
          : separateWindows(window.ids)
      return { results: [], remaining, traits }
    }),
  )
}

/** A group of at most so many entities whose rows do not fit a page is read one by one; a larger one in halves. */
const maxSeparated = 6
