import type { Either } from 'fp-ts/Either'
import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as O from 'fp-ts/Option'
import type { TaskEither } from 'fp-ts/TaskEither'
import * as TE from 'fp-ts/TaskEither'
import { type ApiError, toFailure } from '../../api'
import { defined, type Failure, type Feed, type FeedStep, feedOf, unfoldFeed } from '../../cdk'
import { chooseCutoff, type RunNote } from '../../export'
import { otherEntityError } from './consistency'
import type { Entity, EntityKind } from './entities'
import {
  type FeedbackOperation,
  type FeedbackPage,
  type FeedbackRequest,
  type FeedbackService,
  initialPageSizes,
  type PageSizes,
  updatePageSizes,
} from './page'
import {
  type EntityResult,
  type FeedbackWindow,
  isSplittable,
  resolveWindow,
  splitFeedbackWindow,
  splitIdentifiers,
  toEntityResult,
} from './window'

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

/** What one step of reading windows brought. */
export type WindowResults = {
  readonly results: ReadonlyArray<EntityResult>
  /** The time that the run reads up to, milliseconds; none until an answer has given the service's time. */
  readonly cutoff: number | undefined
  readonly notes: ReadonlyArray<RunNote>
  /** The window that is requested next. */
  readonly next?: FeedbackWindow
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
  /** A request that the service has answered in this run. */
  readonly answered: FeedbackRequest | undefined
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
        const answered = { ...queue, cutoff, answered: firstPageOf(env, window, to), refusals: 0 }
        if (window.to === undefined && cutoff > to)
          return TE.right<ApiError, QueueStep>([answered, { results: [], notes }])
        return pipe(
          resolveWindow(env, { window, to: window.to ?? cutoff, page, sizes: queue.sizes }),
          TE.map(({ results, remaining, traits, splitAll }): QueueStep => {
            const others = splitAll
              ? rest.flatMap((other) => (other.kind === window.kind ? splitIdentifiers(other, 1) : [other]))
              : rest
            const sizes = { ...updatePageSizes(queue.sizes, page), ...traits }
            return [
              { ...answered, sizes, windows: withoutRefused([...remaining, ...others], results) },
              { results, notes },
            ]
          }),
        )
      }),
      TE.orElse((error) => recoverRefusal(env, { ...queue, windows: rest }, window, to, error)),
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

/** The queue after a step, and what the step brought. */
type QueueStep = readonly [queue: WindowQueue, output: Pick<WindowResults, 'results' | 'notes'>]

const futureCursorNote = ({ operation }: WindowReaderEnv, { ids: [id] }: FeedbackWindow): RunNote => ({
  level: 'warn',
  message: `${operation.name}: the cursor of ${id} lies ahead of the service's time, so nothing is read until then. If that is a mistake, refresh the stream.`,
})

/** The request for the first page of a window, as one for its first entity. */
const firstPageOf = (
  { operation }: WindowReaderEnv,
  { kind, ids, from }: FeedbackWindow,
  to: number,
): FeedbackRequest => ({ kind, ids: ids.slice(0, 1), from, to, page: operation.firstPage })

/** The windows without those of entities that are left out of this run. */
const withoutRefused = (
  windows: ReadonlyArray<FeedbackWindow>,
  results: ReadonlyArray<EntityResult>,
): ReadonlyArray<FeedbackWindow> => {
  const refused = results.filter(({ feedback }) => E.isLeft(feedback))
  return refused.length === 0
    ? windows
    : windows.filter(
        ({ kind, ids }) => !refused.some((one) => one.kind === kind && ids.length === 1 && ids[0] === one.id),
      )
}

/** How many entities in a row may be refused before the service is asked for others, to see whether it is at fault itself. */
const maxRefusals = (hasAnswer: boolean): number => (hasAnswer ? 100 : 10)
/** How many entities are asked for then, spread over those that are left. */
const maxProbes = 20

/** The step after an error: smaller requests, or the entity's refusal as its result. `queue`: the windows after the refused one. */
const recoverRefusal = (
  env: WindowReaderEnv,
  queue: WindowQueue,
  window: FeedbackWindow,
  to: number,
  error: ApiError,
): TaskEither<ApiError, QueueStep> => {
  const { windows, answered } = queue
  const replaceWindows = (next: ReadonlyArray<FeedbackWindow>): TaskEither<ApiError, QueueStep> =>
    TE.right([
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
  if (!concernsEntity(error) || (answered === undefined && windows.length === 0)) return TE.left(error)
  const results = window.ids.map((id) => toEntityResult(window, id, E.left(error)))
  const refuse = (changes: Partial<WindowQueue>): QueueStep => [
    { ...queue, windows: withoutRefused(windows, results), ...changes },
    { results, notes: [] },
  ]
  const refusals = queue.refusals + 1
  return refusals < maxRefusals(answered !== undefined)
    ? TE.right(refuse({ refusals }))
    : pipe(
        findAnswer(env, answered === undefined ? spreadRequests(env, windows, to) : [answered], error),
        TE.map((found) => refuse({ refusals: 0, answered: found })),
      )
}

/** Requests for entities that are spread over the windows. */
const spreadRequests = (
  env: WindowReaderEnv,
  windows: ReadonlyArray<FeedbackWindow>,
  to: number,
): ReadonlyArray<FeedbackRequest> => {
  const all = windows.flatMap((window) => splitIdentifiers(window, 1))
  const count = Math.min(maxProbes, all.length)
  return Array.from({ length: count }, (_, n) => all[Math.floor((n * all.length) / count)]).flatMap((window) =>
    window === undefined ? [] : [firstPageOf(env, window, Math.max(to, window.from + 1))],
  )
}

/** The first of the requests that the service answers; it is at fault itself, with `error`, if it answers none. */
const findAnswer = (
  env: WindowReaderEnv,
  [request, ...others]: ReadonlyArray<FeedbackRequest>,
  error: ApiError,
): TaskEither<ApiError, FeedbackRequest> =>
  request === undefined
    ? TE.left(error)
    : pipe(
        env.fetch(request),
        TE.map(() => request),
        TE.orElse((other) => (concernsEntity(other) ? findAnswer(env, others, error) : TE.left(other))),
      )

/**
 * Whether an error may be about an entity and not about the service: an error inside a 200, whose codes are not specified, a
 * 403, 404 or 410, with which a service may answer for a closed location, or an answer about another entity.
 */
const concernsEntity = (error: ApiError): boolean =>
  error._tag === 'Application' ||
  (error._tag === 'Http' && [403, 404, 410].includes(error.status)) ||
  error === otherEntityError
