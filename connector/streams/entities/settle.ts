import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import type { TaskEither } from 'fp-ts/TaskEither'
import * as TE from 'fp-ts/TaskEither'
import type { ApiError } from '../../api/error'
import { toMillis } from '../../api/model/scalar'
import type { Kind } from './entity'
import { isEmptyBeyond, isFull, judge, type Lengths, partsFor } from './judge'
import { type Ask, type Listing, type ListPage, listingOf, type Operation } from './listing'
import { twiceAlike } from './pages'
import { cutSpan, inParts, isCuttable, type Task } from './span'

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

const settleOne = (service: Service, { task, to, page, lengths }: Answered): TaskEither<ApiError, Settled> => {
  const [id = ''] = task.ids
  const { counted } = lengths
  const listing = listingOf(id, page)
  const whole = (parts: ReadonlyArray<Part>, still = counted): Settled => ({ parts, more: [], counted: still })
  const more = (): TaskEither<ApiError, Settled> => {
    if (isUnheeded(task, to, listing)) return TE.left(unheeded)
    return isCuttable(task, to)
      ? TE.right({ parts: [], more: cutSpan(task, to, partsFor(lengths, listing)), counted })
      : pipe(
          twiceAlike(service.operation, service.fetch, { ...task, to }),
          TE.map((rows) => whole([partOf(task, id, E.right({ id, name: listing?.name, rows }))])),
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
          isEmptyBeyond(service.operation.key, page, next)
            ? TE.right(whole([partOf(task, id, E.right(listing))], counted && (listing?.pages ?? 1) <= 1))
            : more(),
        ),
      )
  }
}

const settleMany = (service: Service, { task, to, page, lengths }: Answered): TaskEither<ApiError, Settled> => {
  const { counted } = lengths
  const alone = (ids: ReadonlyArray<string>): ReadonlyArray<Task> =>
    ids.length === 0 ? [] : inParts({ ...task, ids }, 1)
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
        TE.map((next) =>
          isEmptyBeyond(service.operation.key, page, next) ? settled : { parts: [], more: alone(task.ids), counted },
        ),
      )
    : TE.right(settled)
}

const nextPage = (
  { operation, fetch }: Service,
  { kind, ids, from }: Task,
  to: number,
): TaskEither<ApiError, ListPage> => fetch({ kind, ids, from, to, page: operation.firstPage + 1 })

const day = 86_400_000

/** Rows from far outside the window: cutting it further would never come to an end. */
const isUnheeded = ({ from }: Task, to: number, listing: Listing | undefined): boolean =>
  (listing?.rows ?? []).some(({ mentionTime }) => {
    const time = toMillis(String(mentionTime))
    return time < from - day || time > to + day
  })

const unheeded: ApiError = {
  _tag: 'Decode',
  path: '$.data.entities',
  message: 'the service does not heed fromDate and toDate: rows from other times come with them',
}
