import type { Either } from 'fp-ts/Either'
import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as O from 'fp-ts/Option'
import type { TaskEither } from 'fp-ts/TaskEither'
import * as TE from 'fp-ts/TaskEither'
import { type ApiError, toMillis } from '../../api'
import { drainFeed, type FeedStep, unfoldFeed } from '../../cdk'
import { ignoredWindowError, isOutsideWindow } from './consistency'
import type { Entity, EntityKind } from './entities'
import {
  checkCompleteness,
  type EntityFeedback,
  type FeedbackOperation,
  type FeedbackPage,
  type FeedbackRequest,
  findEntityFeedback,
  isEmptyPage,
  isFullPage,
  isRepeatedPage,
  type PageSizes,
  splitCount,
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

/** The key of a row, and its mention time in milliseconds. */
export type ExpectedRow = { readonly key: string; readonly time: number }

/** What the service answered for one entity in a window. */
export type EntityResult = {
  readonly kind: EntityKind
  readonly id: string
  /** The window's end in milliseconds; none: the run's cutoff, and the entity is complete. */
  readonly to: number | undefined
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

/** The first windows of a run: entities of one kind that begin at the same time (`fromOf`, milliseconds) share one. */
export const groupEntities = (
  { maxIdentifiers }: FeedbackOperation,
  entities: ReadonlyArray<Entity>,
  fromOf: (entity: Entity) => number,
): ReadonlyArray<FeedbackWindow> => {
  const groups = new Map<string, { readonly kind: EntityKind; readonly from: number; readonly ids: string[] }>()
  for (const entity of entities) {
    const from = fromOf(entity)
    const key = `${entity.kind} ${from}`
    const group = groups.get(key) ?? { kind: entity.kind, from, ids: [] }
    group.ids.push(entity.id)
    groups.set(key, group)
  }
  return [...groups.values()].flatMap((group) => splitIdentifiers({ ...group, to: undefined }, maxIdentifiers))
}

/** A feedback operation, and how a page of it is fetched. */
export type FeedbackService = {
  readonly operation: FeedbackOperation
  readonly fetch: (request: FeedbackRequest) => TaskEither<ApiError, FeedbackPage>
}

/** A window with the first page of its answer. `to`: the end of the window that was requested, milliseconds. */
type AnsweredWindow = {
  readonly window: FeedbackWindow
  readonly to: number
  readonly page: FeedbackPage
  readonly sizes: PageSizes
}

type WindowResolution = {
  readonly results: ReadonlyArray<EntityResult>
  /** The windows that are still to be read in place of this one. */
  readonly remaining: ReadonlyArray<FeedbackWindow>
  /** Whether the page counts of answers are still right. */
  readonly trustsPageCounts: boolean
  /** The service lists entities under other ids than the requested ones: each needs a request of its own. */
  readonly splitAll?: true
}

/** The entities whose feedback an answer completes, and the windows to read for the others. */
export const resolveWindow = (
  service: FeedbackService,
  answered: AnsweredWindow,
): TaskEither<ApiError, WindowResolution> =>
  answered.window.ids.length === 1 ? resolveSingle(service, answered) : resolveGroup(service, answered)

const resolveSingle = (
  service: FeedbackService,
  { window, to, page, sizes }: AnsweredWindow,
): TaskEither<ApiError, WindowResolution> => {
  const [id = ''] = window.ids
  const { trustsPageCounts } = sizes
  const feedback = findEntityFeedback(id, page)
  const resolveComplete = (trusts: boolean): WindowResolution => {
    const { attempt = 1 } = window
    return attempt < maxWindowAttempts && lacksExpectedRows(service.operation, window, to, feedback)
      ? { results: [], remaining: [{ ...window, attempt: attempt + 1 }], trustsPageCounts }
      : { results: [toEntityResult(window, id, E.right(feedback))], remaining: [], trustsPageCounts: trusts }
  }
  const resolveIncomplete = (): TaskEither<ApiError, WindowResolution> => {
    if (feedback !== undefined && isOutsideWindow(window.from, to, feedback)) return TE.left(ignoredWindowError)
    return isSplittable(window, to)
      ? TE.right({
          results: [],
          remaining: splitFeedbackWindow(
            { ...window, expectedRows: toExpectedRows(service.operation, feedback), attempt: 1 },
            to,
            splitCount(sizes, feedback),
          ),
          trustsPageCounts,
        })
      : pipe(
          readStablePages(service, { ...window, to }),
          TE.map((rows) => ({
            results: [toEntityResult(window, id, E.right({ id, name: feedback?.name, rows }))],
            remaining: [],
            trustsPageCounts,
          })),
        )
  }
  switch (checkCompleteness(sizes, feedback, page)) {
    case 'complete':
      return TE.right(resolveComplete(trustsPageCounts))
    case 'incomplete':
      return resolveIncomplete()
    case 'uncertain':
      return pipe(
        fetchNextPage(service, window, to),
        TE.flatMap((next) =>
          // A repeated page may also have come in place of another one: it proves nothing while the window can be split.
          isEmptyPage(next) || (!isSplittable(window, to) && isRepeatedPage(service.operation.key, page, next))
            ? TE.right(resolveComplete(trustsPageCounts && (feedback?.pages ?? 1) <= 1))
            : resolveIncomplete(),
        ),
      )
  }
}

const resolveGroup = (
  service: FeedbackService,
  { window, to, page, sizes }: AnsweredWindow,
): TaskEither<ApiError, WindowResolution> => {
  const { trustsPageCounts } = sizes
  const separateWindows = (ids: ReadonlyArray<string>): ReadonlyArray<FeedbackWindow> =>
    ids.map((id) => ({
      ...window,
      ids: [id],
      expectedRows: toExpectedRows(
        service.operation,
        page.entities.find((feedback) => feedback.id === id),
      ),
    }))
  const separateAll: WindowResolution = { results: [], remaining: separateWindows(window.ids), trustsPageCounts }
  if (page.entities.some(({ id }) => !window.ids.includes(id))) return TE.right({ ...separateAll, splitAll: true })
  const complete = page.entities.filter((feedback) => checkCompleteness(sizes, feedback, page) === 'complete')
  const completeIds = new Set(complete.map(({ id }) => id))
  const resolution: WindowResolution = {
    results: complete.map((feedback) => toEntityResult(window, feedback.id, E.right(feedback))),
    remaining: separateWindows(window.ids.filter((id) => !completeIds.has(id))),
    trustsPageCounts,
  }
  return isFullPage(sizes, page)
    ? pipe(
        fetchNextPage(service, window, to),
        TE.map((next) => (isEmptyPage(next) ? resolution : separateAll)),
      )
    : TE.right(resolution)
}

const fetchNextPage = (
  { operation, fetch }: FeedbackService,
  { kind, ids, from }: FeedbackWindow,
  to: number,
): TaskEither<ApiError, FeedbackPage> => fetch({ kind, ids, from, to, page: operation.firstPage + 1 })

/** An expected row this close to an end of the window (milliseconds) may be missing: it is not known which rows the bounds include. */
const edgeMargin = 1000
const maxWindowAttempts = 3

/** Whether rows are missing that lie well inside the window: they were deleted, or the answer belongs to another request. */
const lacksExpectedRows = (
  { key }: FeedbackOperation,
  { expectedRows = [], from }: FeedbackWindow,
  to: number,
  feedback: EntityFeedback | undefined,
): boolean => {
  const keys = new Set(feedback?.rows.map((row) => String(row[key])))
  return expectedRows.some((row) => row.time > from + edgeMargin && row.time < to - edgeMargin && !keys.has(row.key))
}

const toExpectedRows = ({ key }: FeedbackOperation, feedback: EntityFeedback | undefined): ReadonlyArray<ExpectedRow> =>
  (feedback?.rows ?? []).map((row) => ({ key: String(row[key]), time: toMillis(String(row.mentionTime)) }))

type FeedbackRows = EntityFeedback['rows']
type PagedRequest = Omit<FeedbackRequest, 'page'>

const maxReadings = 5
/** The most pages in a row without a new row; after more, the service ignores the page number. */
const maxStalePages = 3

/** All rows of a window of one second, read page by page up to an empty one, and again until two readings have the same rows. */
const readStablePages = (service: FeedbackService, request: PagedRequest): TaskEither<ApiError, FeedbackRows> => {
  const readAgain = (reading: number, previousKeys: string | undefined): TaskEither<ApiError, FeedbackRows> =>
    pipe(
      readAllPages(service, request),
      TE.flatMap((rows) => {
        const keys = [...rows.keys()].sort().join()
        if (keys === previousKeys) return TE.right([...rows.values()])
        return reading < maxReadings
          ? readAgain(reading + 1, keys)
          : TE.left(pagingError(`the pages of one second differed at each of ${maxReadings} readings`))
      }),
    )
  return readAgain(1, undefined)
}

const readAllPages = (
  { operation: { key, firstPage }, fetch }: FeedbackService,
  request: PagedRequest,
): TaskEither<ApiError, ReadonlyMap<string, FeedbackRows[number]>> => {
  const byKey = new Map<string, FeedbackRows[number]>()
  let stalePages = 0
  return pipe(
    firstPage as number,
    unfoldFeed((page: number) =>
      pipe(
        fetch({ ...request, page }),
        TE.map((answer): FeedStep<number, FeedbackRows> => {
          const rows = findEntityFeedback(request.ids[0] ?? '', answer)?.rows ?? []
          return [rows, rows.length === 0 ? O.none : O.some(page + 1)]
        }),
      ),
    ),
    drainFeed((rows) => {
      const sizeBefore = byKey.size
      for (const row of rows) byKey.set(String(row[key]), row)
      stalePages = byKey.size === sizeBefore ? stalePages + 1 : 0
      return stalePages > maxStalePages
        ? TE.left(pagingError('a page of one second is the same as those before'))
        : TE.right(undefined)
    }),
    TE.map(() => byKey),
  )
}

const pagingError = (message: string): ApiError => ({ _tag: 'Decode', path: '$.data.entities', message })
