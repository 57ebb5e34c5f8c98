import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as T from 'fp-ts/Task'
import * as TE from 'fp-ts/TaskEither'
import type { Api } from './api'
import type { CutPage, Cutter } from './cut'
import { checkEcho, narrowerFilters } from './echo'
import type { ApiError } from './error'
import type { ExportRequest } from './model/export'
import type { ExportPage, FetchPage } from './page'
import type { RawResponse } from './route'

/** Pages of operation 6. A broken answer is asked for again twice; one that is too large is the caller's to halve. */
export const createReviewFetcher = (api: Pick<Api, 'exportReviews'>, cut: Cutter): FetchPage =>
  createPageFetcher(api.exportReviews, cut)

/** Pages of operation 7, which knows no mention time; else as `fetchReviews`. */
export const createDeletedReviewFetcher = (api: Pick<Api, 'exportDeletedReviews'>, cut: Cutter): FetchPage =>
  createPageFetcher(
    ({ mentionTimeAfter, mentionTimeBefore, additionalFields, ...request }) => api.exportDeletedReviews(request),
    cut,
  )

const createPageFetcher =
  (ask: (request: ExportRequest) => TE.TaskEither<ApiError, RawResponse>, cut: Cutter): FetchPage =>
  (request, turn = T.of(undefined)) => {
    const once = pipe(
      ask(request),
      TE.tapTask(() => turn),
      TE.chainEitherK((answer) =>
        pipe(
          cut(answer.body),
          E.chain((sheet) => toExportPage(request, sheet)),
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
    return repeatFetch(once, 2)
  }

const repeatFetch = <A>(effect: TE.TaskEither<ApiError, A>, times: number): TE.TaskEither<ApiError, A> =>
  times === 0
    ? effect
    : pipe(
        effect,
        TE.orElse((error) => (isBrokenResponse(error) ? repeatFetch(effect, times - 1) : TE.left(error))),
      )

const isBrokenResponse = (error: ApiError): boolean =>
  error._tag === 'Application' || (error._tag === 'Decode' && error.remedy === undefined)

/** Holds an answer against its request. More rows than asked for are taken: a page is judged by the rows it brings. */
const toExportPage = (request: ExportRequest, { hasList, ...sheet }: CutPage): E.Either<ApiError, ExportPage> => {
  const error = checkEcho(request, sheet.filter)
  if (error !== undefined) return E.left(error)
  if (!hasList && sheet.filter.modifiedTimeFrom == null)
    return E.left({ _tag: 'Decode', path: '$', message: 'neither records nor an echo of the request' })
  const less = narrowerFilters(request, sheet.filter)
  return E.right(less.length === 0 ? sheet : { ...sheet, narrowerFilters: less })
}
