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

/** Asks for the first page of a window, and for those of the windows that will follow if all goes well; `until`: where the last ones end. */
export const prefetchWindows = ({ operation, fetch }: FeedbackService) => {
  const underWay = new Map<FeedbackWindow, Promise<Either<ApiError, FeedbackPage>>>()
  const ask = (task: FeedbackWindow, to: number): Promise<Either<ApiError, FeedbackPage>> => {
    const { kind, ids, from } = task
    const asked = underWay.get(task) ?? fetch({ kind, ids, from, to, page: operation.firstPage })()
    underWay.set(task, asked)
    asked.catch(() => undefined)
    return asked
  }
  return (
    task: FeedbackWindow,
    to: number,
    following: ReadonlyArray<FeedbackWindow>,
    until: number | undefined,
  ): TaskEither<ApiError, FeedbackPage> =>
    async () => {
      const wanted = new Set([task, ...following])
      for (const other of underWay.keys()) if (!wanted.has(other)) underWay.delete(other)
      const answer = ask(task, to)
      for (const next of following) {
        const end = next.to ?? until
        if (end !== undefined && next.from < end) ask(next, end)
      }
      const page = await answer
      underWay.delete(task)
      return page
    }
}

export type WindowResults = {
  readonly parts: ReadonlyArray<EntityResult>
  /** The time that the run reads up to, once an answer has told it; milliseconds. */
  readonly cutoff: number | undefined
  readonly notes: ReadonlyArray<RunNote>
}

export type WindowReaderEnv = FeedbackService & {
  readonly now: () => number
  /** Requests under way at a time. */
  readonly concurrency: number
}

type WindowQueue = {
  readonly tasks: ReadonlyArray<FeedbackWindow>
  /** The signpost, once an answer has told the service's time. */
  readonly until: number | undefined
  readonly lengths: PageSizes
  readonly answered: boolean
  /** Entities refused in a row. */
  readonly refused: number
}

const day = 86_400_000

/**
 * Reads every window without loss though pages shift while they are read: one is cut until it comes whole in one page, judged by
 * the page size that the answer echoes; only a window of one second is paged. An entity's windows come in the order of time.
 */
export const readWindows = (
  env: WindowReaderEnv,
  tasks: ReadonlyArray<FeedbackWindow>,
): Feed<Failure, WindowResults> => {
  const ask = prefetchWindows(env)

  const step = (work: WindowQueue): TaskEither<ApiError, FeedStep<WindowQueue, WindowResults>> => {
    const [task, ...rest] = work.tasks as readonly [FeedbackWindow, ...ReadonlyArray<FeedbackWindow>]
    // Before the service's time is known, rows later than the signpost come too: they are the next run's.
    const to = task.to ?? work.until ?? env.now() + day
    if (task.from >= to) return TE.right(toStep({ ...work, tasks: rest }, [], [futureCursorNote(env, task)]))
    return pipe(
      ask(task, to, work.until === undefined ? [] : rest.slice(0, env.concurrency - 1), work.until),
      TE.flatMap((page) => {
        const [until, notes] = work.until === undefined ? chooseCutoff(page.servedAt, env.now()) : [work.until, []]
        const learnt = { ...work, until, answered: true, refused: 0 }
        if (task.to === undefined && until > to) return TE.right(toStep(learnt, [], notes))
        return pipe(
          resolveWindow(env, { task, to: task.to ?? until, page, lengths: work.lengths }),
          TE.map(({ parts, more, counted, splitAll }) => {
            const left = splitAll
              ? rest.flatMap((one) => (one.kind === task.kind ? splitIdentifiers(one, 1) : [one]))
              : rest
            const lengths = { ...updatePageSizes(work.lengths, page), counted }
            return toStep({ ...learnt, lengths, tasks: [...more, ...left] }, parts, notes)
          }),
        )
      }),
      TE.orElse((error) =>
        TE.fromEither(
          E.map((next: NextWork) => toStep(...next))(recoverRefusal({ ...work, tasks: rest }, task, to, error)),
        ),
      ),
    )
  }

  const begin: WindowQueue = { tasks, until: undefined, lengths: initialPageSizes, answered: false, refused: 0 }
  return tasks.length === 0
    ? feedOf()
    : unfoldFeed((work: WindowQueue) =>
        pipe(
          step(work),
          TE.mapLeft((error) => toFailure(env.operation.name, error)),
        ),
      )(begin)
}

/** Work that is left, what has come of it so far, and what there is to say. */
type NextWork = readonly [work: WindowQueue, parts: ReadonlyArray<EntityResult>, notes: ReadonlyArray<RunNote>]

const toStep = (...[work, parts, notes]: NextWork): FeedStep<WindowQueue, WindowResults> => [
  { parts, cutoff: work.until, notes },
  work.tasks.length === 0 ? O.none : O.some(work),
]

const futureCursorNote = ({ operation }: WindowReaderEnv, { ids: [id] }: FeedbackWindow): RunNote => ({
  level: 'warn',
  message: `${operation.name}: the cursor of ${id} lies ahead of the service's time, so nothing is read until then. If that is a mistake, refresh the stream.`,
})

/** How many entities in a row may be refused, with and without any answer so far, until it is the service that is out of order. */
const maxRefusals = (answered: boolean): number => (answered ? 100 : 10)

/** What an error leaves to be done; `work` is what follows the window that was refused. */
const recoverRefusal = (
  work: WindowQueue,
  task: FeedbackWindow,
  to: number,
  error: ApiError,
): E.Either<ApiError, NextWork> => {
  const { tasks: rest, answered, refused } = work
  const many = task.ids.length > 1
  const half = Math.ceil(task.ids.length / 2)
  if (many && error._tag === 'Http' && error.status === 413)
    return E.right([{ ...work, tasks: [task, ...rest].flatMap((one) => splitIdentifiers(one, half)) }, [], []])
  if (many && (error._tag === 'TooLarge' || concernsEntity(error)))
    return E.right([{ ...work, tasks: [...splitIdentifiers(task, half), ...rest] }, [], []])
  if (error._tag === 'TooLarge' && isSplittable(task, to))
    return E.right([{ ...work, tasks: [...splitFeedbackWindow(task, to, 2), ...rest] }, [], []])
  const tolerable = refused + 1 < maxRefusals(answered) && (answered || rest.length > 0)
  return concernsEntity(error) && tolerable
    ? E.right([{ ...work, refused: refused + 1 }, task.ids.map((id) => toEntityResult(task, id, E.left(error))), []])
    : E.left(error)
}

/** Errors that may be about an entity and not about the service: those inside a 200, whose codes are not shown, a 404, an answer about another. */
const concernsEntity = (error: ApiError): boolean =>
  error._tag === 'Application' || (error._tag === 'Http' && error.status === 404) || error === otherEntityError
