import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import type { TaskEither } from 'fp-ts/TaskEither'
import * as TE from 'fp-ts/TaskEither'
import type { ApiError } from '../../api'
import { defined } from '../../cdk'
import {
  checkNoneMoved,
  checkPagesAreUsed,
  checkWindowIsUsed,
  type ExpectedRow,
  fetchByKey,
  findEcho,
  ignoredWindowError,
  isLastPage,
  isOutsideWindow,
  lacksExpectedRows,
  maxWindowAttempts,
  toExpectedRows,
} from './consistency'
import type { EntityKind } from './entities'
import {
  checkCompleteness,
  type EntityResult,
  type FeedbackPage,
  type FeedbackService,
  findEntityFeedback,
  findNextPage,
  isEmptyPage,
  isFullPage,
  isPagedByEntity,
  isRepeatedPage,
  type PageSizes,
  readTiedRows,
  splitCount,
  toEntityResult,
} from './page'

/** A window of time to read for some entities of one kind; milliseconds, `from` at a whole second. */
export type FeedbackWindow = {
  readonly kind: EntityKind
  readonly ids: ReadonlyArray<string>
  readonly from: number
  /** None: up to the run's cutoff. Such a window is the last one of its entities. */
  readonly to: number | undefined
  /** Up to when an earlier run has sent the rows of its entities, milliseconds. */
  readonly sentUpTo?: number
  /** Rows of the only entity that an answer for a longer window had. */
  readonly expectedRows?: ReadonlyArray<ExpectedRow>
  /** Which attempt to read the window this is, counted while answers lack expected rows. */
  readonly attempt?: number
}

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
  /** Whether the next run reads again whatever this one may miss in the window. */
  readonly isReadAgain: boolean
}

type WindowResolution = {
  readonly results: ReadonlyArray<EntityResult>
  /** The windows that are still to be read in place of this one. */
  readonly remaining: ReadonlyArray<FeedbackWindow>
  /** What the answers have shown about pages. */
  readonly traits: Pick<PageSizes, 'trustsPageCounts' | 'hasShortPages' | 'certainEnds' | 'windows'>
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

const traitsOf = ({
  trustsPageCounts,
  hasShortPages,
  certainEnds,
  windows,
}: PageSizes): WindowResolution['traits'] => ({ trustsPageCounts, hasShortPages, certainEnds, windows })

const resolveSingle = (service: FeedbackService, answered: AnsweredWindow): TaskEither<ApiError, WindowResolution> => {
  const { operation } = service
  const { window, to, requestedTo, page, sizes } = answered
  const [id = ''] = window.ids
  const traits = traitsOf(sizes)
  // The pages after the first are those of its own window: a shorter one has fewer.
  const request = { kind: window.kind, ids: window.ids, from: window.from, to: requestedTo }
  const feedback = findEntityFeedback(id, page)
  const rowCount = feedback?.rows.length ?? 0
  const { attempt = 1 } = window
  const readAgain: WindowResolution = { results: [], remaining: [{ ...window, attempt: attempt + 1 }], traits }
  const resolveComplete = (shown: Partial<WindowResolution['traits']> = {}): WindowResolution =>
    attempt < maxWindowAttempts && lacksExpectedRows(service.operation, window, to, feedback)
      ? readAgain
      : {
          results: [toEntityResult(window, id, E.right(feedback))],
          remaining: [],
          traits: { ...traits, ...shown },
        }
  const resolveIncomplete = (next?: FeedbackPage): TaskEither<ApiError, WindowResolution> => {
    if (feedback !== undefined && isOutsideWindow(request.from, requestedTo, feedback))
      return TE.left(ignoredWindowError)
    if (!isSplittable(window, to)) return resolveTied()
    const nextCount = next === undefined ? 0 : (findEntityFeedback(id, next)?.rows.length ?? 0)
    const shown = {
      // The answer told one page, and there is another.
      trustsPageCounts: traits.trustsPageCounts && (next === undefined || feedback?.pages !== 1),
      hasShortPages:
        traits.hasShortPages || rowCount < Math.min(page.perPage, Math.max(sizes.maxEntityRows, nextCount)),
      certainEnds: Number.NEGATIVE_INFINITY,
    }
    return pipe(
      sizes.windows !== 'unknown' || findEcho(request, page) === 'requested'
        ? TE.right(sizes.windows)
        : checkWindowIsUsed(service, request, page),
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
      checkPagesAreUsed(service, request, page),
      TE.flatMap(() => readTiedRows(service, { ...request, to }, sizes)),
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
  /** No rows follow: complete, unless one has moved to the first page meanwhile. Then the window is read again, or in parts. */
  const resolveEnd = (): TaskEither<ApiError, WindowResolution> =>
    pipe(
      checkNoneMoved(service, request, answered, feedback === undefined ? [] : [feedback]),
      TE.flatMap(({ isComplete, certainEnds }): TaskEither<ApiError, WindowResolution> => {
        const trustsPageCounts = traits.trustsPageCounts && (feedback?.pages ?? 1) <= 1
        if (isComplete) return TE.right(resolveComplete({ trustsPageCounts, certainEnds }))
        return attempt < maxWindowAttempts ? TE.right(readAgain) : resolveIncomplete()
      }),
    )
  /** The page after the first by its number; complete if it has no rows that are not in the first. */
  const resolveByPage = (): TaskEither<ApiError, WindowResolution> =>
    pipe(
      findNextPage(service, request, sizes),
      TE.flatMap((next) =>
        next === undefined
          ? resolveEnd()
          : pipe(
              isLastPage(service, request, answered, { next, isSplittable: isSplittable(window, to) }),
              TE.flatMap((isLast) => (isLast ? TE.right(resolveComplete()) : resolveIncomplete(next))),
            ),
      ),
    )
  const state = checkCompleteness(sizes, feedback, page)
  if (state === 'incomplete') return resolveIncomplete()
  if (page.scrollKey === undefined) return state === 'complete' ? TE.right(resolveComplete()) : resolveByPage()
  // The service tells that rows follow.
  const byKey = { ...request, ...defined({ days: page.days, scrollKey: page.scrollKey }) }
  return pipe(
    fetchByKey(service, { ...byKey, page: operation.firstPage }, attempt),
    TE.flatMap((next) => {
      if (next === undefined) return TE.right(readAgain)
      return isRepeatedPage(operation.key, page, next) ? resolveByPage() : resolveIncomplete(next)
    }),
  )
}

const resolveGroup = (service: FeedbackService, answered: AnsweredWindow): TaskEither<ApiError, WindowResolution> => {
  const { window, requestedTo, page, sizes } = answered
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
  const request = { kind: window.kind, ids: window.ids, from: window.from, to: requestedTo }
  const resolveParts = (): WindowResolution => ({
    results: [],
    remaining:
      window.ids.length > maxSeparated
        ? splitIdentifiers(window, Math.ceil(window.ids.length / 2))
        : separateWindows(window.ids),
    traits,
  })
  return pipe(
    findNextPage(service, request, sizes),
    TE.flatMap((next) => {
      if (next?.isRefused) return TE.right(resolveWith(({ state }) => state === 'complete' && !isFullPage(sizes, page)))
      if (next !== undefined && (!isPagedByEntity(page) || traits.hasShortPages)) return TE.right(resolveParts())
      const nextIds = new Set(next?.entities.flatMap(({ id, rows }) => (rows.length === 0 ? [] : [id])))
      const hasEnded = ({ feedback, state }: (typeof checked)[number]): boolean =>
        state !== 'incomplete' && !nextIds.has(feedback.id)
      const isRight =
        next !== undefined || checked.every(({ feedback: { pages = 1 }, state }) => state !== 'uncertain' || pages <= 1)
      return pipe(
        checkNoneMoved(
          service,
          request,
          answered,
          checked.filter(hasEnded).map(({ feedback }) => feedback),
        ),
        TE.map(({ isComplete, certainEnds }) =>
          isComplete
            ? resolveWith(hasEnded, {
                ...traits,
                trustsPageCounts: traits.trustsPageCounts && isRight,
                certainEnds,
              })
            : resolveParts(),
        ),
      )
    }),
  )
}

/** A group of at most so many entities whose rows do not fit a page is read one by one; a larger one in halves. */
const maxSeparated = 6
