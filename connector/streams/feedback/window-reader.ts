import type { Either } from 'fp-ts/Either'
import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as O from 'fp-ts/Option'
import type { TaskEither } from 'fp-ts/TaskEither'
import * as TE from 'fp-ts/TaskEither'
import { type ApiError, toFailure } from '../../api'
import { type Failure, type Feed, type FeedStep, feedOf, unfoldFeed } from '../../cdk'
import { chooseCutoff, type RunNote } from '../../export'
import { otherEntityError } from './consistency'
import { type FeedbackPage, initialPageSizes, type PageSizes, updatePageSizes } from './page'
import {
  type EntityResult,
  type FeedbackService,
  type FeedbackWindow,
  isSplittable,
  resolveWindow,
  splitFeedbackWindow,
  splitIdentifiers,
  toEntityResult,
} from './window'

/** Fetches the first page of a window, and begins to fetch those of the windows after it; `cutoff`: the end of the last ones. */
const prefetchWindows = ({ operation, fetch }: FeedbackService) => {
  const pending = new Map<FeedbackWindow, Promise<Either<ApiError, FeedbackPage>>>()
  const fetchFirstPage = (window: FeedbackWindow, to: number): Promise<Either<ApiError, FeedbackPage>> => {
    const { kind, ids, from } = window
    const page = pending.get(window) ?? fetch({ kind, ids, from, to, page: operation.firstPage })()
    pending.set(window, page)
    page.catch(() => undefined)
    return page
  }
  return (
    window: FeedbackWindow,
    to: number,
    following: ReadonlyArray<FeedbackWindow>,
    cutoff: number | undefined,
  ): TaskEither<ApiError, FeedbackPage> =>
    async () => {
      const next = new Set([window, ...following])
      for (const other of pending.keys()) if (!next.has(other)) pending.delete(other)
      const firstPage = fetchFirstPage(window, to)
      for (const other of following) {
        const end = other.to ?? cutoff
        if (end !== undefined && other.from < end) fetchFirstPage(other, end)
      }
      const page = await firstPage
      pending.delete(window)
      return page
    }
}

/** What one step of reading windows brought. */
export type WindowResults = {
  readonly results: ReadonlyArray<EntityResult>
  /** The time that the run reads up to, milliseconds; none until an answer has given the service's time. */
  readonly cutoff: number | undefined
  readonly notes: ReadonlyArray<RunNote>
}

type WindowReaderEnv = FeedbackService & {
  readonly now: () => number
  /** The most requests in flight. */
  readonly concurrency: number
}

/** The windows that are still to be read, and what the answers so far have shown. */
type WindowQueue = {
  readonly windows: ReadonlyArray<FeedbackWindow>
  /** None until an answer has given the service's time. */
  readonly cutoff: number | undefined
  readonly sizes: PageSizes
  readonly hasAnswer: boolean
  /** How many entities in a row the service has refused. */
  readonly refusals: number
}

const day = 86_400_000

/**
 * Reads every window without loss, though rows move between pages meanwhile. A window is split until it fits one page, by the
 * page size that the answer echoes; only a window of one second is read page by page. The windows of an entity come in order
 * of time.
 */
export const readWindows = (
  env: WindowReaderEnv,
  windows: ReadonlyArray<FeedbackWindow>,
): Feed<Failure, WindowResults> => {
  const fetchWindow = prefetchWindows(env)

  const readNext = (queue: WindowQueue): TaskEither<ApiError, QueueStep> => {
    const [window, ...rest] = queue.windows as readonly [FeedbackWindow, ...ReadonlyArray<FeedbackWindow>]
    // Until the service's time is known, rows later than the cutoff come too: they are left for the next run.
    const to = window.to ?? queue.cutoff ?? env.now() + day
    if (window.from >= to)
      return TE.right([
        { ...queue, windows: rest },
        { results: [], notes: [futureCursorNote(env, window)] },
      ])
    const following = queue.cutoff === undefined ? [] : rest.slice(0, env.concurrency - 1)
    return pipe(
      fetchWindow(window, to, following, queue.cutoff),
      TE.flatMap((page) => {
        const [cutoff, notes] = queue.cutoff === undefined ? chooseCutoff(page.servedAt, env.now()) : [queue.cutoff, []]
        const answered = { ...queue, cutoff, hasAnswer: true, refusals: 0 }
        if (window.to === undefined && cutoff > to)
          return TE.right<ApiError, QueueStep>([answered, { results: [], notes }])
        return pipe(
          resolveWindow(env, { window, to: window.to ?? cutoff, page, sizes: queue.sizes }),
          TE.map(({ results, remaining, trustsPageCounts, splitAll }): QueueStep => {
            const others = splitAll
              ? rest.flatMap((other) => (other.kind === window.kind ? splitIdentifiers(other, 1) : [other]))
              : rest
            const sizes = { ...updatePageSizes(queue.sizes, page), trustsPageCounts }
            return [
              { ...answered, sizes, windows: [...remaining, ...others] },
              { results, notes },
            ]
          }),
        )
      }),
      TE.orElse((error) => TE.fromEither(recoverRefusal({ ...queue, windows: rest }, window, to, error))),
    )
  }

  return windows.length === 0
    ? feedOf()
    : unfoldFeed((queue: WindowQueue) =>
        pipe(
          readNext(queue),
          TE.bimap(
            (error) => toFailure(env.operation.name, error),
            ([next, output]): FeedStep<WindowQueue, WindowResults> => [
              { ...output, cutoff: next.cutoff },
              next.windows.length === 0 ? O.none : O.some(next),
            ],
          ),
        ),
      )({ windows, cutoff: undefined, sizes: initialPageSizes, hasAnswer: false, refusals: 0 })
}

/** The queue after a step, and what the step brought. */
type QueueStep = readonly [queue: WindowQueue, output: Omit<WindowResults, 'cutoff'>]

const futureCursorNote = ({ operation }: WindowReaderEnv, { ids: [id] }: FeedbackWindow): RunNote => ({
  level: 'warn',
  message: `${operation.name}: the cursor of ${id} lies ahead of the service's time, so nothing is read until then. If that is a mistake, refresh the stream.`,
})

/** How many entities in a row may be refused before the service itself is taken to be at fault. */
const maxRefusals = (hasAnswer: boolean): number => (hasAnswer ? 100 : 10)

/** The step after an error: smaller requests, or the entity's refusal as its result. `queue`: the windows after the refused one. */
const recoverRefusal = (
  queue: WindowQueue,
  window: FeedbackWindow,
  to: number,
  error: ApiError,
): E.Either<ApiError, QueueStep> => {
  const { windows, hasAnswer, refusals } = queue
  const replaceWindows = (next: ReadonlyArray<FeedbackWindow>): E.Either<ApiError, QueueStep> =>
    E.right([
      { ...queue, windows: next },
      { results: [], notes: [] },
    ])
  const hasMany = window.ids.length > 1
  const half = Math.ceil(window.ids.length / 2)
  if (hasMany && error._tag === 'Http' && error.status === 413)
    return replaceWindows([window, ...windows].flatMap((each) => splitIdentifiers(each, half)))
  if (hasMany && (error._tag === 'TooLarge' || concernsEntity(error)))
    return replaceWindows([...splitIdentifiers(window, half), ...windows])
  if (error._tag === 'TooLarge' && isSplittable(window, to))
    return replaceWindows([...splitFeedbackWindow(window, to, 2), ...windows])
  const isTolerable = refusals + 1 < maxRefusals(hasAnswer) && (hasAnswer || windows.length > 0)
  return concernsEntity(error) && isTolerable
    ? E.right([
        { ...queue, refusals: refusals + 1 },
        { results: window.ids.map((id) => toEntityResult(window, id, E.left(error))), notes: [] },
      ])
    : E.left(error)
}

/**
 * Whether an error may be about an entity and not about the service: an error inside a 200, whose codes are not specified, a
 * 404, or an answer about another entity.
 */
const concernsEntity = (error: ApiError): boolean =>
  error._tag === 'Application' || (error._tag === 'Http' && error.status === 404) || error === otherEntityError
