import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as O from 'fp-ts/Option'
import type { TaskEither } from 'fp-ts/TaskEither'
import * as TE from 'fp-ts/TaskEither'
import { type ApiError, toMillis } from '../../api'
import { drainFeed, type FeedStep, unfoldFeed } from '../../cdk'
import { ignoredWindowError, isOutsideWindow } from './consistency'
import type { EntityKind } from './entities'
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

/** A window of time to be read for some entities of one kind; milliseconds, `from` at a whole second. */
export type FeedbackWindow = {
  readonly kind: EntityKind
  readonly ids: ReadonlyArray<string>
  readonly from: number
  /** None: up to the run's signpost. Such a window is its entities' last. */
  readonly to: number | undefined
  /** Rows that a longer answer showed of the only entity; `tries`: how often an answer lacked some of them. */
  readonly expectedRows?: ReadonlyArray<ExpectedRow>
  readonly attempts?: number
}

/** A row's key and its time, milliseconds. */
export type ExpectedRow = { readonly key: string; readonly time: number }

const second = 1000

/** Whether a window that ends at `to` is longer than the one second that is not cut any more. */
export const isSplittable = ({ from }: FeedbackWindow, to: number): boolean => to - from > second + 1

/** A window in up to `count` parts, in the order of time; they overlap by a millisecond, since neither bound is known to be inclusive. */
export const splitFeedbackWindow = (task: FeedbackWindow, to: number, count: number): ReadonlyArray<FeedbackWindow> => {
  const seconds = Math.ceil((to - 1 - task.from) / second)
  const parts = Math.min(count, seconds)
  const edge = (n: number): number => task.from + Math.floor((n * seconds) / parts) * second
  return Array.from({ length: parts }, (_, n) => ({
    ...task,
    from: edge(n),
    to: n === parts - 1 ? task.to : edge(n + 1) + 1,
  }))
}

/** The same window for at most `size` entities at a time. */
export const splitIdentifiers = (task: FeedbackWindow, size: number): ReadonlyArray<FeedbackWindow> =>
  task.ids.length <= size
    ? [task]
    : Array.from({ length: Math.ceil(task.ids.length / size) }, (_, n) => ({
        ...task,
        ids: task.ids.slice(n * size, (n + 1) * size),
      }))

type FeedbackRows = EntityFeedback['rows']
type FetchFeedbackPage = (request: FeedbackRequest) => TaskEither<ApiError, FeedbackPage>

const maxReadings = 5
/** Pages in a row without a new row, after which it is the service that does not turn the page. */
const maxStalePages = 3

/** All rows of a window of one second, by its pages to an empty one; again until two readings hold the same rows. */
export const readStablePages = (
  operation: FeedbackOperation,
  fetch: FetchFeedbackPage,
  request: Omit<FeedbackRequest, 'page'>,
): TaskEither<ApiError, FeedbackRows> => {
  const round = (n: number, before: string | undefined): TaskEither<ApiError, FeedbackRows> =>
    pipe(
      readAllPages(operation, fetch, request),
      TE.flatMap((rows) => {
        const keys = [...rows.keys()].sort().join()
        if (keys === before) return TE.right([...rows.values()])
        return n < maxReadings
          ? round(n + 1, keys)
          : TE.left(pagingError(`the pages of one second differed at each of ${maxReadings} readings`))
      }),
    )
  return round(1, undefined)
}

const pagingError = (message: string): ApiError => ({ _tag: 'Decode', path: '$.data.entities', message })

const readAllPages = (
  { key, firstPage }: FeedbackOperation,
  fetch: FetchFeedbackPage,
  request: Omit<FeedbackRequest, 'page'>,
): TaskEither<ApiError, ReadonlyMap<string, FeedbackRows[number]>> => {
  const rows = new Map<string, FeedbackRows[number]>()
  let stale = 0
  return pipe(
    firstPage as number,
    unfoldFeed((page: number) =>
      pipe(
        fetch({ ...request, page }),
        TE.map((answer): FeedStep<number, FeedbackRows> => {
          const found = findEntityFeedback(request.ids[0] ?? '', answer)?.rows ?? []
          return [found, found.length === 0 ? O.none : O.some(page + 1)]
        }),
      ),
    ),
    drainFeed((page) => {
      const known = rows.size
      for (const row of page) rows.set(String(row[key]), row)
      stale = rows.size === known ? stale + 1 : 0
      return stale > maxStalePages
        ? TE.left(pagingError('a page of one second is the same as those before'))
        : TE.right(undefined)
    }),
    TE.map(() => rows),
  )
}

/** What is known of one entity's window: its rows, or why the service does not give them. */
export type EntityResult = {
  readonly kind: EntityKind
  readonly id: string
  /** The window's end in milliseconds; none: the signpost, and with it the entity is complete. */
  readonly to: number | undefined
  /** None: the service knows nothing of it. */
  readonly feedback: E.Either<ApiError, EntityFeedback | undefined>
}

export type WindowResolution = {
  readonly parts: ReadonlyArray<EntityResult>
  /** What is yet to be read in place of this window. */
  readonly more: ReadonlyArray<FeedbackWindow>
  /** Whether the pages that answers count have not been found wrong. */
  readonly counted: boolean
  /** The service calls entities otherwise than we do: they can only be told apart one a request. */
  readonly splitAll?: true
}

export type FeedbackService = {
  readonly operation: FeedbackOperation
  readonly fetch: (request: FeedbackRequest) => TaskEither<ApiError, FeedbackPage>
}

type AnsweredWindow = {
  readonly task: FeedbackWindow
  readonly to: number
  readonly page: FeedbackPage
  readonly lengths: PageSizes
}

export const toEntityResult = (
  { kind, to }: FeedbackWindow,
  id: string,
  listing: EntityResult['feedback'],
): EntityResult => ({ kind, id, to, feedback: listing })

/** What an answer settles, and what it leaves to be asked. `to`: the end of the window that was asked for. */
export const resolveWindow = (
  service: FeedbackService,
  answered: AnsweredWindow,
): TaskEither<ApiError, WindowResolution> =>
  answered.task.ids.length === 1 ? resolveSingle(service, answered) : resolveGroup(service, answered)

const edgeMargin = 1000
const maxWindowAttempts = 3

/** What a longer answer showed to lie well inside the window, and this one does not hold: deleted since, or this is no answer to us. */
const lacksExpectedRows = (
  { key }: FeedbackOperation,
  { expectedRows = [], from }: FeedbackWindow,
  to: number,
  listing: EntityFeedback | undefined,
): boolean => {
  const keys = new Set(listing?.rows.map((row) => String(row[key])))
  return expectedRows.some((row) => row.time > from + edgeMargin && row.time < to - edgeMargin && !keys.has(row.key))
}

const toExpectedRows = ({ key }: FeedbackOperation, listing: EntityFeedback | undefined): ReadonlyArray<ExpectedRow> =>
  (listing?.rows ?? []).map((row) => ({ key: String(row[key]), time: toMillis(String(row.mentionTime)) }))

const resolveSingle = (
  service: FeedbackService,
  { task, to, page, lengths }: AnsweredWindow,
): TaskEither<ApiError, WindowResolution> => {
  const [id = ''] = task.ids
  const { counted } = lengths
  const listing = findEntityFeedback(id, page)
  const { attempts = 1 } = task
  const whole = (parts: ReadonlyArray<EntityResult>, still = counted): WindowResolution =>
    attempts < maxWindowAttempts && lacksExpectedRows(service.operation, task, to, listing)
      ? { parts: [], more: [{ ...task, attempts: attempts + 1 }], counted }
      : { parts, more: [], counted: still }
  const more = (): TaskEither<ApiError, WindowResolution> => {
    if (listing !== undefined && isOutsideWindow(task.from, to, listing)) return TE.left(ignoredWindowError)
    return isSplittable(task, to)
      ? TE.right({
          parts: [],
          more: splitFeedbackWindow(
            { ...task, expectedRows: toExpectedRows(service.operation, listing), attempts: 1 },
            to,
            splitCount(lengths, listing),
          ),
          counted,
        })
      : pipe(
          readStablePages(service.operation, service.fetch, { ...task, to }),
          TE.map((rows) => ({
            parts: [toEntityResult(task, id, E.right({ id, name: listing?.name, rows }))],
            more: [],
            counted,
          })),
        )
  }
  switch (checkCompleteness(lengths, listing, page)) {
    case 'whole':
      return TE.right(whole([toEntityResult(task, id, E.right(listing))]))
    case 'more':
      return more()
    case 'doubtful':
      return pipe(
        fetchNextPage(service, task, to),
        TE.flatMap((next) =>
          // A repeated page may also be one that came in place of another: where the window can be cut, nothing is taken on trust.
          isEmptyPage(next) || (!isSplittable(task, to) && isRepeatedPage(service.operation.key, page, next))
            ? TE.right(whole([toEntityResult(task, id, E.right(listing))], counted && (listing?.pages ?? 1) <= 1))
            : more(),
        ),
      )
  }
}

const resolveGroup = (
  service: FeedbackService,
  { task, to, page, lengths }: AnsweredWindow,
): TaskEither<ApiError, WindowResolution> => {
  const { counted } = lengths
  const alone = (ids: ReadonlyArray<string>): ReadonlyArray<FeedbackWindow> =>
    ids.map((id) => ({
      ...task,
      ids: [id],
      expectedRows: toExpectedRows(
        service.operation,
        page.entities.find((listing) => listing.id === id),
      ),
    }))
  if (page.entities.some(({ id }) => !task.ids.includes(id)))
    return TE.right({ parts: [], more: alone(task.ids), counted, splitAll: true })
  const whole = page.entities.filter((listing) => checkCompleteness(lengths, listing, page) === 'whole')
  const known = new Set(whole.map(({ id }) => id))
  const settled: WindowResolution = {
    parts: whole.map((listing) => toEntityResult(task, listing.id, E.right(listing))),
    more: alone(task.ids.filter((id) => !known.has(id))),
    counted,
  }
  return isFullPage(lengths, page)
    ? pipe(
        fetchNextPage(service, task, to),
        TE.map((next) => (isEmptyPage(next) ? settled : { parts: [], more: alone(task.ids), counted })),
      )
    : TE.right(settled)
}

const fetchNextPage = (
  { operation, fetch }: FeedbackService,
  { kind, ids, from }: FeedbackWindow,
  to: number,
): TaskEither<ApiError, FeedbackPage> => fetch({ kind, ids, from, to, page: operation.firstPage + 1 })
