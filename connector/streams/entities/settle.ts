import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import type { TaskEither } from 'fp-ts/TaskEither'
import * as TE from 'fp-ts/TaskEither'
import type { ApiError } from '../../api/error'
import { toMillis } from '../../api/model/scalar'
import type { EntityKind } from './entity'
import { ignoredWindowError, isOutsideWindow } from './heed'
import { type AnswerLengths, checkCompleteness, isEmptyPage, isFullPage, isRepeatedPage, splitCount } from './judge'
import {
  type EntityListing,
  type FeedbackOperation,
  type FeedbackPage,
  type FeedbackRequest,
  findListing,
} from './listing'
import { readStablePages } from './pages'
import { type ExpectedRow, type FeedbackWindow, isSplittable, splitFeedbackWindow } from './span'

/** What is known of one entity's window: its rows, or why the service does not give them. */
export type EntityResult = {
  readonly kind: EntityKind
  readonly id: string
  /** The window's end in milliseconds; none: the signpost, and with it the entity is complete. */
  readonly to: number | undefined
  /** None: the service knows nothing of it. */
  readonly listing: E.Either<ApiError, EntityListing | undefined>
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

type WindowAnswer = {
  readonly task: FeedbackWindow
  readonly to: number
  readonly page: FeedbackPage
  readonly lengths: AnswerLengths
}

export const toEntityResult = (
  { kind, to }: FeedbackWindow,
  id: string,
  listing: EntityResult['listing'],
): EntityResult => ({ kind, id, to, listing })

/** What an answer settles, and what it leaves to be asked. `to`: the end of the window that was asked for. */
export const resolveWindow = (
  service: FeedbackService,
  answered: WindowAnswer,
): TaskEither<ApiError, WindowResolution> =>
  answered.task.ids.length === 1 ? resolveSingle(service, answered) : resolveGroup(service, answered)

const edgeMargin = 1000
const maxWindowAttempts = 3

/** What a longer answer showed to lie well inside the window, and this one does not hold: deleted since, or this is no answer to us. */
const lacksExpectedRows = (
  { key }: FeedbackOperation,
  { expectedRows = [], from }: FeedbackWindow,
  to: number,
  listing: EntityListing | undefined,
): boolean => {
  const keys = new Set(listing?.rows.map((row) => String(row[key])))
  return expectedRows.some((row) => row.time > from + edgeMargin && row.time < to - edgeMargin && !keys.has(row.key))
}

const toExpectedRows = ({ key }: FeedbackOperation, listing: EntityListing | undefined): ReadonlyArray<ExpectedRow> =>
  (listing?.rows ?? []).map((row) => ({ key: String(row[key]), time: toMillis(String(row.mentionTime)) }))

const resolveSingle = (
  service: FeedbackService,
  { task, to, page, lengths }: WindowAnswer,
): TaskEither<ApiError, WindowResolution> => {
  const [id = ''] = task.ids
  const { counted } = lengths
  const listing = findListing(id, page)
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
  { task, to, page, lengths }: WindowAnswer,
): TaskEither<ApiError, WindowResolution> => {
  const { counted } = lengths
  const alone = (ids: ReadonlyArray<string>): ReadonlyArray<FeedbackWindow> =>
    ids.map((id) => ({
      ...task,
      ids: [id],
      expectedRows: toExpectedRows(
        service.operation,
        page.listings.find((listing) => listing.id === id),
      ),
    }))
  if (page.listings.some(({ id }) => !task.ids.includes(id)))
    return TE.right({ parts: [], more: alone(task.ids), counted, splitAll: true })
  const whole = page.listings.filter((listing) => checkCompleteness(lengths, listing, page) === 'whole')
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
