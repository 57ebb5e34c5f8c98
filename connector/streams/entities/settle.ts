import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import type { TaskEither } from 'fp-ts/TaskEither'
import * as TE from 'fp-ts/TaskEither'
import type { ApiError } from '../../api/error'
import { toMillis } from '../../api/model/scalar'
import type { Kind } from './entity'
import { isUnheeded, unheeded } from './heed'
import { isEmpty, isFull, isRepeated, judge, type Lengths, partsFor } from './judge'
import { type Ask, type Listing, type ListPage, listingOf, type Operation } from './listing'
import { twiceAlike } from './pages'
import { cutSpan, isCuttable, type Seen, type Task } from './span'

/** What is known of one entity's window: its rows, or why the service does not give them. */
export type Part = {
  readonly kind: Kind
  readonly id: string
  /** The window's end in milliseconds; none: the signpost, and with it the entity is complete. */
  readonly to: number | undefined
  /** None: the service knows nothing of it. */
  readonly listing: E.Either<ApiError, Listing | undefined>
}

export type Settled = {
  readonly parts: ReadonlyArray<Part>
  /** What is yet to be read in place of this window. */
  readonly more: ReadonlyArray<Task>
  /** Whether the pages that answers count have not been found wrong. */
  readonly counted: boolean
  /** The service calls entities otherwise than we do: they can only be told apart one a request. */
  readonly alone?: true
}

export type Service = {
  readonly operation: Operation
  readonly fetch: (request: Ask) => TaskEither<ApiError, ListPage>
}

type Answered = { readonly task: Task; readonly to: number; readonly page: ListPage; readonly lengths: Lengths }

export const partOf = ({ kind, to }: Task, id: string, listing: Part['listing']): Part => ({ kind, id, to, listing })

/** What an answer settles, and what it leaves to be asked. `to`: the end of the window that was asked for. */
export const settle = (service: Service, answered: Answered): TaskEither<ApiError, Settled> =>
  answered.task.ids.length === 1 ? settleOne(service, answered) : settleMany(service, answered)

const second = 1000
const mostTries = 3

/** What a longer answer showed to lie well inside the window, and this one does not hold: deleted since, or this is no answer to us. */
const isLacking = (
  { key }: Operation,
  { seen = [], from }: Task,
  to: number,
  listing: Listing | undefined,
): boolean => {
  const keys = new Set(listing?.rows.map((row) => String(row[key])))
  return seen.some((row) => row.time > from + second && row.time < to - second && !keys.has(row.key))
}

const seenIn = ({ key }: Operation, listing: Listing | undefined): ReadonlyArray<Seen> =>
  (listing?.rows ?? []).map((row) => ({ key: String(row[key]), time: toMillis(String(row.mentionTime)) }))

const settleOne = (service: Service, { task, to, page, lengths }: Answered): TaskEither<ApiError, Settled> => {
  const [id = ''] = task.ids
  const { counted } = lengths
  const listing = listingOf(id, page)
  const { tries = 1 } = task
  const whole = (parts: ReadonlyArray<Part>, still = counted): Settled =>
    tries < mostTries && isLacking(service.operation, task, to, listing)
      ? { parts: [], more: [{ ...task, tries: tries + 1 }], counted }
      : { parts, more: [], counted: still }
  const more = (): TaskEither<ApiError, Settled> => {
    if (listing !== undefined && isUnheeded(task.from, to, listing)) return TE.left(unheeded)
    return isCuttable(task, to)
      ? TE.right({
          parts: [],
          more: cutSpan(
            { ...task, seen: seenIn(service.operation, listing), tries: 1 },
            to,
            partsFor(lengths, listing),
          ),
          counted,
        })
      : pipe(
          twiceAlike(service.operation, service.fetch, { ...task, to }),
          TE.map((rows) => ({
            parts: [partOf(task, id, E.right({ id, name: listing?.name, rows }))],
            more: [],
            counted,
          })),
        )
  }
  switch (judge(lengths, listing, page)) {
    case 'whole':
      return TE.right(whole([partOf(task, id, E.right(listing))]))
    case 'more':
      return more()
    case 'doubtful':
      return pipe(
        nextPage(service, task, to),
        TE.flatMap((next) =>
          // A repeated page may also be one that came in place of another: where the window can be cut, nothing is taken on trust.
          isEmpty(next) || (!isCuttable(task, to) && isRepeated(service.operation.key, page, next))
            ? TE.right(whole([partOf(task, id, E.right(listing))], counted && (listing?.pages ?? 1) <= 1))
            : more(),
        ),
      )
  }
}

const settleMany = (service: Service, { task, to, page, lengths }: Answered): TaskEither<ApiError, Settled> => {
  const { counted } = lengths
  const alone = (ids: ReadonlyArray<string>): ReadonlyArray<Task> =>
    ids.map((id) => ({
      ...task,
      ids: [id],
      seen: seenIn(
        service.operation,
        page.listings.find((listing) => listing.id === id),
      ),
    }))
  if (page.listings.some(({ id }) => !task.ids.includes(id)))
    return TE.right({ parts: [], more: alone(task.ids), counted, alone: true })
  const whole = page.listings.filter((listing) => judge(lengths, listing, page) === 'whole')
  const known = new Set(whole.map(({ id }) => id))
  const settled: Settled = {
    parts: whole.map((listing) => partOf(task, listing.id, E.right(listing))),
    more: alone(task.ids.filter((id) => !known.has(id))),
    counted,
  }
  return isFull(lengths, page)
    ? pipe(
        nextPage(service, task, to),
        TE.map((next) => (isEmpty(next) ? settled : { parts: [], more: alone(task.ids), counted })),
      )
    : TE.right(settled)
}

const nextPage = (
  { operation, fetch }: Service,
  { kind, ids, from }: Task,
  to: number,
): TaskEither<ApiError, ListPage> => fetch({ kind, ids, from, to, page: operation.firstPage + 1 })
