import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as T from 'fp-ts/Task'
import * as TE from 'fp-ts/TaskEither'
import { type Api, type ApiError, type ExportFilter, type ExportRequest, type RawResponse, toMillis } from '../api'
import { defined } from '../cdk'
import type { CutPage, Cutter } from './cut/page'
import type { ExportPage, FetchPage } from './export-page'

/** The first sign that an answer is not to our request; an echo may leave out what it likes. */
export const checkEcho = (request: ExportRequest, echo: ExportFilter): ApiError | undefined => {
  const { modifiedTimeFrom, offset } = echo
  if (modifiedTimeFrom != null && toMillis(modifiedTimeFrom) !== toMillis(request.modifiedTimeFrom))
    return {
      _tag: 'Decode',
      path: '$.filter.modifiedTimeFrom',
      message: `not the ${request.modifiedTimeFrom} asked for`,
    }
  if (offset != null && offset !== (request.offset ?? 0))
    return { _tag: 'Decode', path: '$.filter.offset', message: `not the ${request.offset ?? 0} asked for` }
  return undefined
}

/** The attributes in which the service says that it selected less than asked; what was not asked for has defaults (Export filter echo). */
export const narrowerFilters = (request: ExportRequest, echo: ExportFilter): ReadonlyArray<string> => {
  const served = echo.sources == null ? undefined : new Set(echo.sources.map(Number))
  return [
    ...(served !== undefined && request.sources?.some((source) => !served.has(source)) ? ['sources'] : []),
    ...(isAfter(echo.mentionTimeAfter, request.mentionTimeAfter) ? ['mentionTimeAfter'] : []),
    ...(isAfter(request.mentionTimeBefore, echo.mentionTimeBefore) ? ['mentionTimeBefore'] : []),
  ]
}

const isAfter = (a: string | null | undefined, b: string | null | undefined): boolean =>
  a != null && b != null && toMillis(a) > toMillis(b)

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
            ...defined({ servedAt: answer.servedAt }),
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
