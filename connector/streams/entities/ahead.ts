import type { Either } from 'fp-ts/Either'
import type { TaskEither } from 'fp-ts/TaskEither'
import type { ApiError } from '../../api/error'
import type { FeedbackPage } from './listing'
import type { FeedbackService } from './settle'
import type { FeedbackWindow } from './span'

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
