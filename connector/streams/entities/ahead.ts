import type { Either } from 'fp-ts/Either'
import type { TaskEither } from 'fp-ts/TaskEither'
import type { ApiError } from '../../api/error'
import type { ListPage } from './listing'
import type { Service } from './settle'
import type { Task } from './span'

/** Asks for the first page of a window, and for those of the windows that will follow if all goes well; `until`: where the last ones end. */
export const askingAhead = ({ operation, fetch }: Service) => {
  const underWay = new Map<Task, Promise<Either<ApiError, ListPage>>>()
  const ask = (task: Task, to: number): Promise<Either<ApiError, ListPage>> => {
    const { kind, ids, from } = task
    const asked = underWay.get(task) ?? fetch({ kind, ids, from, to, page: operation.firstPage })()
    underWay.set(task, asked)
    asked.catch(() => undefined)
    return asked
  }
  return (
    task: Task,
    to: number,
    following: ReadonlyArray<Task>,
    until: number | undefined,
  ): TaskEither<ApiError, ListPage> =>
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
