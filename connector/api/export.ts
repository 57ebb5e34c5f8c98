import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as T from 'fp-ts/Task'
import * as TE from 'fp-ts/TaskEither'
import type { Api } from './api'
import type { Cutter, Sheet } from './cut'
import { foreign, narrowed } from './echo'
import type { ApiError } from './error'
import type { ExportRequest } from './model/export'
import type { FetchPage, Page } from './page'
import type { Answer } from './route'

/** Pages of operation 6. A broken answer is asked for again twice; one that is too large is the caller's to halve. */
export const fetchReviews = (api: Pick<Api, 'exportReviews'>, cut: Cutter): FetchPage =>
  fetchPage(api.exportReviews, cut)

/** Pages of operation 7, which knows no mention time; else as `fetchReviews`. */
export const fetchDeletedReviews = (api: Pick<Api, 'exportDeletedReviews'>, cut: Cutter): FetchPage =>
  fetchPage(
    ({ mentionTimeAfter, mentionTimeBefore, additionalFields, ...request }) => api.exportDeletedReviews(request),
    cut,
  )

const fetchPage =
  (ask: (request: ExportRequest) => TE.TaskEither<ApiError, Answer>, cut: Cutter): FetchPage =>
  (request, turn = T.of(undefined)) => {
    const once = pipe(
      ask(request),
      TE.tapTask(() => turn),
      TE.chainEitherK((answer) =>
        pipe(
          cut(answer.body),
          E.chain((sheet) => toPage(request, sheet)),
          E.map((page) => ({
            ...page,
            ...(answer.servedAt === undefined ? {} : { servedAt: answer.servedAt }),
            release: () => {
              page.release?.()
              answer.release?.()
            },
          })),
        ),
      ),
    )
    return again(once, 2)
  }

const again = <A>(effect: TE.TaskEither<ApiError, A>, times: number): TE.TaskEither<ApiError, A> =>
  times === 0
    ? effect
    : pipe(
        effect,
        TE.orElse((error) => (isBroken(error) ? again(effect, times - 1) : TE.left(error))),
      )

const isBroken = (error: ApiError): boolean =>
  error._tag === 'Application' || (error._tag === 'Decode' && error.remedy === undefined)

/** Holds an answer against its request. More rows than asked for are taken: a page is judged by the rows it brings. */
const toPage = (request: ExportRequest, { listed, ...sheet }: Sheet): E.Either<ApiError, Page> => {
  const error = foreign(request, sheet.filter)
  if (error !== undefined) return E.left(error)
  if (!listed && sheet.filter.modifiedTimeFrom == null)
    return E.left({ _tag: 'Decode', path: '$', message: 'neither records nor an echo of the request' })
  const less = narrowed(request, sheet.filter)
  return E.right(less.length === 0 ? sheet : { ...sheet, narrowed: less })
}
