import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import type { TaskEither } from 'fp-ts/TaskEither'
import * as TE from 'fp-ts/TaskEither'
import { type ApiError, isRefusalInBody } from '../../api'
import type { RunNote } from '../../reading'
import { otherEntityError, refusedKeyError } from './consistency'
import { type EntityResult, type FeedbackRequest, type FeedbackService, type PageSizes, toEntityResult } from './page'
import type { Scroll } from './scroll'
import { type FeedbackWindow, isSplittable, splitFeedbackWindow, splitIdentifiers } from './window'

/** What one step of reading windows brought. */
export type WindowResults = {
  readonly results: ReadonlyArray<EntityResult>
  /** The time that the run reads up to, milliseconds; none until an answer has given the service's time. */
  readonly cutoff: number | undefined
  readonly notes: ReadonlyArray<RunNote>
  /** The window that is requested next. */
  readonly next?: FeedbackWindow
}

export type WindowReaderEnv = FeedbackService & {
  readonly now: () => number
  /** How far before this run's cutoff the next one begins, milliseconds: what it reads again. */
  readonly lookback: number
  /** The most requests in flight. */
  readonly concurrency: number
}

/** The windows that are still to be read, and what the answers so far have shown. */
export type WindowQueue = {
  readonly windows: ReadonlyArray<FeedbackWindow>
  /** None until an answer has given the service's time. */
  readonly cutoff: number | undefined
  readonly sizes: PageSizes
  /** A request that the service has answered in this run. */
  readonly answered: FeedbackRequest | undefined
  /** The reading of the first window's entity, where entities are read page by page and it has begun. */
  readonly scroll?: Scroll | undefined
  /** How many entities in a row the service has refused. */
  readonly refusals: number
}

/** The queue after a step, and what the step brought. */
export type QueueStep = readonly [queue: WindowQueue, output: Pick<WindowResults, 'results' | 'notes'>]

/** The request for the first page of a window, as one for its first entity. */
export const firstPageOf = (
  { operation }: WindowReaderEnv,
  { kind, ids, from }: FeedbackWindow,
  to: number,
): FeedbackRequest => ({ kind, ids: ids.slice(0, 1), from, to, page: operation.firstPage })

/** The windows without those of entities that are left out of this run. */
export const withoutRefused = (
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

/** The windows with those of each single entity joined to one, from the earliest on. */
export const joinFeedbackWindows = (windows: ReadonlyArray<FeedbackWindow>): ReadonlyArray<FeedbackWindow> => {
  const joined = new Map<string, FeedbackWindow>()
  for (const { kind, ids, from } of windows) {
    const name = `${kind} ${ids.join(' ')}`
    if (!joined.has(name)) joined.set(name, { kind, ids, from, to: undefined })
  }
  return [...joined.values()]
}

/** How many entities in a row may be refused before the service is asked for others, to see whether it is at fault itself. */
const maxRefusals = (hasAnswer: boolean): number => (hasAnswer ? 100 : 10)
/** How many entities are asked for then, spread over those that are left. */
const maxProbes = 20

/** The step after an error: smaller requests, or the entity's refusal as its result. `queue`: the windows after the refused one. */
export const recoverRefusal = (
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
  if (error._tag === 'TooLarge' && queue.sizes.windows !== 'ignored' && isSplittable(window, to))
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
 * Whether an error may be about an entity and not about the service: an error inside a 200, whose codes are not specified, unless it
 * is an outage, a rate limit or about the token, a 403, 404 or 410, with which a service may answer for a closed location, or an answer about another entity.
 */
const concernsEntity = (error: ApiError): boolean =>
  isRefusalInBody(error) ||
  (error._tag === 'Http' && [403, 404, 410].includes(error.status)) ||
  error === otherEntityError ||
  error === refusedKeyError
