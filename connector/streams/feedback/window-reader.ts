import type { Either } from 'fp-ts/Either'
import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as O from 'fp-ts/Option'
import type { TaskEither } from 'fp-ts/TaskEither'
import * as TE from 'fp-ts/TaskEither'
import { type ApiError, toFailure } from '../../api'
import { defined, type Failure, type Feed, type FeedStep, feedOf, unfoldFeed } from '../../cdk'
import { chooseCutoff, type RunNote } from '../../reading'
import { ignoredPageError, needsScroll } from './consistency'
import type { Entity } from './entities'
import {
  type FeedbackOperation,
  type FeedbackPage,
  type FeedbackService,
  initialPageSizes,
  toEntityResult,
  updatePageSizes,
} from './page'
import { createScrolls } from './scroll'
import { type FeedbackWindow, resolveWindow, splitIdentifiers } from './window'
import {
  firstPageOf,
  joinFeedbackWindows,
  type QueueStep,
  recoverRefusal,
  type WindowQueue,
  type WindowReaderEnv,
  type WindowResults,
  withoutRefused,
} from './window-queue'

/**
 * The first windows of a run: entities of one kind that begin at the same time (`fromOf`, milliseconds) share one. `cursorOf`: up
 * to when an earlier run has read an entity, milliseconds; minus infinity: it has not.
 */
export const groupEntities = (
  { maxIdentifiers }: FeedbackOperation,
  entities: ReadonlyArray<Entity>,
  fromOf: (entity: Entity) => number,
  cursorOf: (entity: Entity) => number = () => Number.NEGATIVE_INFINITY,
): ReadonlyArray<FeedbackWindow> => {
  const groups = new Map<string, Entity[]>()
  for (const entity of entities) {
    const key = `${entity.kind} ${fromOf(entity)}`
    const group = groups.get(key) ?? []
    group.push(entity)
    groups.set(key, group)
  }
  return [...groups.values()].flatMap((group) =>
    group.slice(0, 1).flatMap((entity) =>
      splitIdentifiers(
        {
          kind: entity.kind,
          ids: group.map(({ id }) => id),
          from: fromOf(entity),
          to: undefined,
          sentUpTo: group.reduce((least, each) => Math.min(least, cursorOf(each)), Number.POSITIVE_INFINITY),
        },
        maxIdentifiers,
      ),
    ),
  )
}

/** The most first pages that are kept until their window is read. */
const maxPendingWindows = 16

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
      // A window that splitting has pushed back will be asked for again; one that was split itself is dropped in time.
      for (const other of pending.keys())
        if (pending.size > maxPendingWindows && !next.has(other)) pending.delete(other)
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

const day = 86_400_000

/**
 * Reads every window without loss, though rows move between pages meanwhile. A window is split until it fits one page, by the
 * page size that the answer echoes; only a window of one second is read page by page. The windows of an entity come in order
 * of time. Where an answer shows that the service ignores windows, each entity is read page by page from then on.
 */
export const readWindows = (
  env: WindowReaderEnv,
  windows: ReadonlyArray<FeedbackWindow>,
): Feed<Failure, WindowResults> => {
  const byDays: WindowReaderEnv = { ...env, fetch: (request) => env.fetch({ ...request, byDays: true }) }
  const [fetchWindow, fetchDays] = [prefetchWindows(env), prefetchWindows(byDays)]
  const startScroll = createScrolls(env.operation)
  let coveredDays = Number.POSITIVE_INFINITY

  /** What follows from the first days that the service says to cover fewer of than were requested. */
  const daysNotes = (page: FeedbackPage, { from }: FeedbackWindow, now: number): ReadonlyArray<RunNote> => {
    const { coveredDays: days = coveredDays } = page
    if (days >= coveredDays || from >= now - days * day) return []
    coveredDays = days
    return [coveredDaysNote(env, days)]
  }

  /** Reads one more page of the first window's entity. */
  const readNextPage = (
    queue: WindowQueue,
    window: FeedbackWindow,
    rest: ReadonlyArray<FeedbackWindow>,
    to: number,
  ): TaskEither<ApiError, QueueStep> => {
    const scroll = queue.scroll ?? startScroll(window)
    const [id = ''] = window.ids
    return pipe(
      scroll.isFirst()
        ? fetchDays(window, to, rest.slice(0, env.concurrency - 1), queue.cutoff)
        : byDays.fetch(scroll.createRequest(to)),
      TE.map((page): QueueStep => {
        const [cutoff, notes] = queue.cutoff === undefined ? chooseCutoff(page.servedAt, env.now()) : [queue.cutoff, []]
        const { feedback, reading, isEnd, error } = scroll.takePage(page, queue.sizes, cutoff)
        const result = toEntityResult(window, id, E.right(feedback))
        const failed = error === undefined ? [] : [toEntityResult(window, id, E.left(error))]
        return [
          {
            ...queue,
            cutoff,
            sizes: updatePageSizes(queue.sizes, page),
            answered: firstPageOf(env, window, to),
            refusals: 0,
            scroll: isEnd ? undefined : scroll,
            windows: isEnd ? rest : queue.windows,
          },
          {
            results: [{ ...result, scroll: { reading, isEnd: isEnd && error === undefined } }, ...failed],
            notes: [...notes, ...daysNotes(page, window, cutoff)],
          },
        ]
      }),
      TE.orElse((error) => {
        const reported = scroll.recover(error)
        return reported === undefined
          ? TE.right<ApiError, QueueStep>([
              { ...queue, scroll },
              { results: [], notes: [] },
            ])
          : recoverRefusal(byDays, { ...queue, windows: rest, scroll: undefined }, window, to, reported)
      }),
    )
  }

  const readNext = (queue: WindowQueue): TaskEither<ApiError, QueueStep> => {
    const [window, ...rest] = queue.windows as readonly [FeedbackWindow, ...ReadonlyArray<FeedbackWindow>]
    // Until the service's time is known, rows later than the cutoff come too: they are left for the next run.
    const to = window.to ?? queue.cutoff ?? env.now() + day
    if (window.from >= to)
      return TE.right([
        { ...queue, windows: rest },
        { results: [], notes: [] },
      ])
    const following = queue.cutoff === undefined ? [] : rest.slice(0, env.concurrency - 1)
    const isByDays = queue.sizes.windows === 'ignored'
    if (isByDays && window.ids.length === 1) return readNextPage(queue, window, rest, to)
    return pipe(
      (isByDays ? fetchDays : fetchWindow)(window, to, following, queue.cutoff),
      TE.flatMap((page) => {
        const [cutoff, notes] = queue.cutoff === undefined ? chooseCutoff(page.servedAt, env.now()) : [queue.cutoff, []]
        const answered = { ...queue, cutoff, answered: firstPageOf(env, window, to), refusals: 0 }
        if (window.to === undefined && cutoff > to)
          return TE.right<ApiError, QueueStep>([answered, { results: [], notes }])
        const sizes = updatePageSizes(queue.sizes, page)
        return pipe(
          resolveWindow(isByDays ? byDays : env, {
            window,
            to: window.to ?? cutoff,
            requestedTo: to,
            page,
            sizes,
            isReadAgain: Math.max(window.from, window.sentUpTo ?? 0) >= cutoff - env.lookback,
          }),
          TE.map(({ results, remaining, traits, splitAll }): QueueStep => {
            const others = splitAll
              ? rest.flatMap((other) => (other.kind === window.kind ? splitIdentifiers(other, 1) : [other]))
              : rest
            return [
              {
                ...answered,
                sizes: { ...sizes, ...traits },
                windows: withoutRefused([...remaining, ...others], results),
              },
              { results, notes },
            ]
          }),
        )
      }),
      TE.orElse((error) =>
        needsScroll(error) && !isByDays
          ? TE.right<ApiError, QueueStep>([
              {
                ...queue,
                windows: joinFeedbackWindows(queue.windows),
                sizes: { ...queue.sizes, windows: 'ignored' },
              },
              { results: [], notes: [scrollNote(env, error)] },
            ])
          : recoverRefusal(isByDays ? byDays : env, { ...queue, windows: rest }, window, to, error),
      ),
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
              { ...output, cutoff: next.cutoff, ...defined({ next: next.windows[0] }) },
              next.windows.length === 0 ? O.none : O.some(next),
            ],
          ),
        ),
      )({ windows, cutoff: undefined, sizes: initialPageSizes, answered: undefined, refusals: 0 })
}

const scrollNote = ({ operation }: WindowReaderEnv, error: ApiError): RunNote => ({
  level: 'info',
  message: `${operation.name}: the service ignores ${error === ignoredPageError ? 'page' : 'fromDate and toDate'}. Each entity is read from page to page to its end, and rows outside its window are left out.`,
})

const coveredDaysNote = ({ operation }: WindowReaderEnv, days: number): RunNote => ({
  level: 'warn',
  message: `${operation.name}: the service goes back ${days} days at most, by the days of its answer. Older rows cannot be read; set a later start_date to agree with that.`,
})
