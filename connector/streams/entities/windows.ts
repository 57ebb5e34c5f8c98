import { pipe } from 'fp-ts/function'
import * as O from 'fp-ts/Option'
import type { TaskEither } from 'fp-ts/TaskEither'
import * as TE from 'fp-ts/TaskEither'
import { type ApiError, toFailure } from '../../api/error'
import type { Failure } from '../../cdk/failure'
import { drain, type Feed, type Step, unfold } from '../../cdk/feed'
import type { Ask, Listing, ListPage, Operation } from './listing'

/** A window of time to be read for some entities of one kind. */
export type Task = Omit<Ask, 'page'>

export type Outcome = {
  /** Entities that came whole for the window of a task; without a listing the service does not know them. */
  readonly whole: ReadonlyArray<{ readonly id: string; readonly listing: Listing | undefined }>
  /** Entities whose window was cut: each has one more window to come. */
  readonly cut: ReadonlyArray<string>
}

type Fetch = (request: Ask) => TaskEither<ApiError, ListPage>

/** `most`: identifiers a request may hold; learned from refusals. */
type Work = { readonly tasks: ReadonlyArray<Task>; readonly most: number }

type Settled = Outcome & { readonly more: ReadonlyArray<Task>; readonly alone?: true }

const nothing: Outcome = { whole: [], cut: [] }
const second = 1000

/**
 * Reads every task without loss though pages shift while they are read: a window is cut in halves until it comes whole in one
 * page, judged by the page size the answer itself echoes; only a window of one second is paged, until two readings agree.
 */
export const readWindows = (operation: Operation, fetch: Fetch, tasks: ReadonlyArray<Task>): Feed<Failure, Outcome> => {
  const step = ({ tasks: [task, ...rest], most }: Work): TaskEither<ApiError, Step<Work, Outcome>> => {
    if (task === undefined) return TE.right([nothing, O.none])
    const go = (outcome: Outcome, more: ReadonlyArray<Task>, limit: number): Step<Work, Outcome> => {
      const left = [...more, ...rest]
      return [outcome, left.length === 0 ? O.none : O.some({ tasks: left, most: limit })]
    }
    if (task.ids.length > most) return TE.right(go(nothing, inParts(task, most), most))
    return pipe(
      fetch({ ...task, page: operation.firstPage }),
      TE.flatMap((page) => settle(operation, fetch, task, page)),
      TE.map(({ more, alone, ...outcome }) => go(outcome, more, alone ? 1 : most)),
      TE.orElse((error) => {
        const half = Math.ceil(task.ids.length / 2)
        return task.ids.length > 1 && isTooMuch(error)
          ? TE.right(go(nothing, inParts(task, half), half))
          : TE.left(error)
      }),
    )
  }
  return unfold((work: Work) =>
    pipe(
      step(work),
      TE.mapLeft((error) => toFailure(operation.name, error)),
    ),
  )({
    tasks,
    most: operation.most,
  })
}

/** The gateway's limit on identifiers (Errors, 413), or ours on the size of an answer. */
const isTooMuch = (error: ApiError): boolean =>
  error._tag === 'TooLarge' || (error._tag === 'Http' && error.status === 413)

const inParts = (task: Task, size: number): ReadonlyArray<Task> =>
  Array.from({ length: Math.ceil(task.ids.length / size) }, (_, n) => ({
    ...task,
    ids: task.ids.slice(n * size, (n + 1) * size),
  }))

const settle = (
  operation: Operation,
  fetch: Fetch,
  task: Task,
  { listings, perPage }: ListPage,
): TaskEither<ApiError, Settled> => {
  const [only = '', ...others] = task.ids
  if (others.length === 0) {
    const [listing] = listings
    if (listing === undefined || isWhole(listing, perPage))
      return TE.right({ whole: [{ id: only, listing }], cut: [], more: [] })
    return task.to - task.from > second + 1
      ? TE.right({ whole: [], cut: [only], more: halves(task) })
      : pipe(
          twiceAlike(operation, fetch, task),
          TE.map((rows) => ({ whole: [{ id: only, listing: { ...listing, rows } }], cut: [], more: [] })),
        )
  }
  // An answer that names others cannot be told apart: the service may call an entity otherwise than we do.
  if (listings.some(({ id }) => !task.ids.includes(id)))
    return TE.right({ ...nothing, more: inParts(task, 1), alone: true })
  const whole = listings.filter((listing) => isWhole(listing, perPage))
  const open = task.ids.filter((id) => !whole.some((listing) => listing.id === id))
  return TE.right({
    whole: whole.map((listing) => ({ id: listing.id, listing })),
    cut: [],
    more: open.map((id) => ({ ...task, ids: [id] })),
  })
}

const isWhole = ({ rows, pages }: Listing, perPage: number): boolean => rows.length < perPage && pages <= 1

/** Two windows that overlap by a millisecond, since neither bound is known to be inclusive. */
const halves = (task: Task): ReadonlyArray<Task> => {
  const middle = Math.max(task.from + second, Math.floor((task.from + task.to) / 2 / second) * second)
  return [
    { ...task, to: middle + 1 },
    { ...task, from: middle },
  ]
}

type Rows = Listing['rows']
const mostRounds = 5
const mostPages = 10_000

/** All rows of a task by its pages, to an empty one; again until two readings hold the same rows. */
const twiceAlike = (operation: Operation, fetch: Fetch, task: Task): TaskEither<ApiError, Rows> => {
  const names = (rows: Rows): string =>
    rows
      .map((row) => String(row[operation.key]))
      .sort()
      .join()
  const round = (n: number, before: string | undefined): TaskEither<ApiError, Rows> =>
    pipe(
      allPages(operation, fetch, task),
      TE.flatMap((rows) => {
        if (names(rows) === before) return TE.right(rows)
        return n < mostRounds ? round(n + 1, names(rows)) : TE.left(differs(mostRounds))
      }),
    )
  return round(1, undefined)
}

const differs = (rounds: number): ApiError => ({
  _tag: 'Decode',
  path: '$.data.entities',
  message: `the pages of one second differed at each of ${rounds} readings`,
})

const allPages = (operation: Operation, fetch: Fetch, task: Task): TaskEither<ApiError, Rows> => {
  const rows = new Map<string, Rows[number]>()
  return pipe(
    operation.firstPage as number,
    unfold((page: number) =>
      pipe(
        fetch({ ...task, page }),
        TE.map(({ listings: [listing] }): Step<number, Rows> => {
          const next = (listing?.rows.length ?? 0) === 0 || page >= mostPages ? O.none : O.some(page + 1)
          return [listing?.rows ?? [], next]
        }),
      ),
    ),
    drain((page) => {
      for (const row of page) rows.set(String(row[operation.key]), row)
      return TE.right(undefined)
    }),
    TE.map(() => [...rows.values()]),
  )
}
