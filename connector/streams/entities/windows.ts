import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as O from 'fp-ts/Option'
import type { TaskEither } from 'fp-ts/TaskEither'
import * as TE from 'fp-ts/TaskEither'
import { type ApiError, toFailure } from '../../api/error'
import { type Note, signpost } from '../../api/scan/signpost'
import type { Failure } from '../../cdk/failure'
import { type Feed, items, type Step, unfold } from '../../cdk/feed'
import { askingAhead } from './ahead'
import { another } from './heed'
import { type Lengths, learn, noLengths } from './judge'
import { type Part, partOf, type Service, settle } from './settle'
import { cutSpan, inParts, isCuttable, type Task } from './span'

export type Outcome = {
  readonly parts: ReadonlyArray<Part>
  /** The time that the run reads up to, once an answer has told it; milliseconds. */
  readonly until: number | undefined
  readonly notes: ReadonlyArray<Note>
}

export type Windows = Service & {
  readonly now: () => number
  /** Requests under way at a time. */
  readonly concurrency: number
}

type Work = {
  readonly tasks: ReadonlyArray<Task>
  /** The signpost, once an answer has told the service's time. */
  readonly until: number | undefined
  readonly lengths: Lengths
  readonly answered: boolean
  /** Entities refused in a row. */
  readonly refused: number
}

const day = 86_400_000

/**
 * Reads every window without loss though pages shift while they are read: one is cut until it comes whole in one page, judged by
 * the page size that the answer echoes; only a window of one second is paged. An entity's windows come in the order of time.
 */
export const readWindows = (env: Windows, tasks: ReadonlyArray<Task>): Feed<Failure, Outcome> => {
  const ask = askingAhead(env)

  const step = (work: Work): TaskEither<ApiError, Step<Work, Outcome>> => {
    const [task, ...rest] = work.tasks as readonly [Task, ...ReadonlyArray<Task>]
    // Before the service's time is known, rows later than the signpost come too: they are the next run's.
    const to = task.to ?? work.until ?? env.now() + day
    if (task.from >= to) return TE.right(onward({ ...work, tasks: rest }, [], [inTheFuture(env, task)]))
    return pipe(
      ask(task, to, work.until === undefined ? [] : rest.slice(0, env.concurrency - 1), work.until),
      TE.flatMap((page) => {
        const [until, notes] = work.until === undefined ? signpost(page.servedAt, env.now()) : [work.until, []]
        const learnt = { ...work, until, answered: true, refused: 0 }
        if (task.to === undefined && until > to) return TE.right(onward(learnt, [], notes))
        return pipe(
          settle(env, { task, to: task.to ?? until, page, lengths: work.lengths }),
          TE.map(({ parts, more, counted, alone }) => {
            const left = alone ? rest.flatMap((one) => (one.kind === task.kind ? inParts(one, 1) : [one])) : rest
            const lengths = { ...learn(work.lengths, page), counted }
            return onward({ ...learnt, lengths, tasks: [...more, ...left] }, parts, notes)
          }),
        )
      }),
      TE.orElse((error) =>
        TE.fromEither(E.map((next: Next) => onward(...next))(refusal({ ...work, tasks: rest }, task, to, error))),
      ),
    )
  }

  const begin: Work = { tasks, until: undefined, lengths: noLengths, answered: false, refused: 0 }
  return tasks.length === 0
    ? items()
    : unfold((work: Work) =>
        pipe(
          step(work),
          TE.mapLeft((error) => toFailure(env.operation.name, error)),
        ),
      )(begin)
}

/** Work that is left, what has come of it so far, and what there is to say. */
type Next = readonly [work: Work, parts: ReadonlyArray<Part>, notes: ReadonlyArray<Note>]

const onward = (...[work, parts, notes]: Next): Step<Work, Outcome> => [
  { parts, until: work.until, notes },
  work.tasks.length === 0 ? O.none : O.some(work),
]

const inTheFuture = ({ operation }: Windows, { ids: [id] }: Task): Note => ({
  level: 'warn',
  message: `${operation.name}: the cursor of ${id} lies ahead of the service's time, so nothing is read until then. If that is a mistake, refresh the stream.`,
})

/** How many entities in a row may be refused, with and without any answer so far, until it is the service that is out of order. */
const mostRefused = (answered: boolean): number => (answered ? 100 : 10)

/** What an error leaves to be done; `work` is what follows the window that was refused. */
const refusal = (work: Work, task: Task, to: number, error: ApiError): E.Either<ApiError, Next> => {
  const { tasks: rest, answered, refused } = work
  const many = task.ids.length > 1
  const half = Math.ceil(task.ids.length / 2)
  if (many && error._tag === 'Http' && error.status === 413)
    return E.right([{ ...work, tasks: [task, ...rest].flatMap((one) => inParts(one, half)) }, [], []])
  if (many && (error._tag === 'TooLarge' || isOfOne(error)))
    return E.right([{ ...work, tasks: [...inParts(task, half), ...rest] }, [], []])
  if (error._tag === 'TooLarge' && isCuttable(task, to))
    return E.right([{ ...work, tasks: [...cutSpan(task, to, 2), ...rest] }, [], []])
  const tolerable = refused + 1 < mostRefused(answered) && (answered || rest.length > 0)
  return isOfOne(error) && tolerable
    ? E.right([{ ...work, refused: refused + 1 }, task.ids.map((id) => partOf(task, id, E.left(error))), []])
    : E.left(error)
}

/** Errors that may be about an entity and not about the service: those inside a 200, whose codes are not shown, a 404, an answer about another. */
const isOfOne = (error: ApiError): boolean =>
  error._tag === 'Application' || (error._tag === 'Http' && error.status === 404) || error === another
