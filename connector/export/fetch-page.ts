import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as T from 'fp-ts/Task'
import * as TE from 'fp-ts/TaskEither'
import {
  type Api,
  type ApiError,
  type ExportFilter,
  type ExportRequest,
  isTokenError,
  type RawResponse,
  toMillis,
} from '../api'
import { defined } from '../cdk'
import type { CutPage, Cutter } from './cut/page'

/** A page of an export, checked against its request. */
export type ExportPage = Omit<CutPage, 'hasList'> & {
  /** The filters, such as `sources`, that the service's echo shows to be narrower than requested. */
  readonly narrowerFilters?: ReadonlyArray<string>
  /** The service refused the offset of the request, so there are no rows. */
  readonly isRefused?: boolean
  /** The service's clock when it began to answer, milliseconds since 1970, if known. */
  readonly servedAt?: number
}

export type ExportPageRequest = ExportRequest & { readonly offset: number; readonly limit: number }

/**
 * Fetches one page of an export, cuts it and checks it against the request. An answer that has arrived waits for `turn`
 * before it is cut.
 */
export type FetchPage = (request: ExportPageRequest, turn?: T.Task<void>) => TE.TaskEither<ApiError, ExportPage>

/**
 * The first difference between the request and its echo in the answer; undefined if there is none. An echo may omit any
 * attribute.
 */
const checkEcho = (request: ExportRequest, echo: ExportFilter): ApiError | undefined => {
  const { modifiedTimeFrom, offset } = echo
  if (modifiedTimeFrom != null && toMillis(modifiedTimeFrom) !== toMillis(request.modifiedTimeFrom))
    return {
      _tag: 'Decode',
      path: '$.filter.modifiedTimeFrom',
      message: `not the requested ${request.modifiedTimeFrom}`,
    }
  if (offset != null && offset !== (request.offset ?? 0))
    return { _tag: 'Decode', path: '$.filter.offset', message: `not the requested ${request.offset ?? 0}` }
  return undefined
}

/**
 * The filters that the service applied more narrowly than requested. An echoed filter that was not requested is a
 * default.
 */
export const narrowerFilters = (request: ExportRequest, echo: ExportFilter): ReadonlyArray<string> => {
  const echoed = echo.sources == null ? undefined : new Set(echo.sources.map(Number))
  return [
    ...(echoed !== undefined && request.sources?.some((source) => !echoed.has(source)) ? ['sources'] : []),
    ...(isAfter(echo.mentionTimeAfter, request.mentionTimeAfter) ? ['mentionTimeAfter'] : []),
    ...(isAfter(request.mentionTimeBefore, echo.mentionTimeBefore) ? ['mentionTimeBefore'] : []),
  ]
}

const isAfter = (a: string | null | undefined, b: string | null | undefined): boolean =>
  a != null && b != null && toMillis(a) > toMillis(b)

/**
 * Fetches pages of operation 6. Requests a broken answer again, at most twice. If an answer is too large, the caller
 * halves the limit.
 */
export const createReviewFetcher = (api: Pick<Api, 'exportReviews'>, cut: Cutter): FetchPage =>
  createPageFetcher(api.exportReviews, cut)

/** Like `createReviewFetcher`, for operation 7, which has no filters by mention time and no additional fields. */
export const createDeletedReviewFetcher = (api: Pick<Api, 'exportDeletedReviews'>, cut: Cutter): FetchPage =>
  createPageFetcher(
    ({ mentionTimeAfter, mentionTimeBefore, additionalFields, ...request }) => api.exportDeletedReviews(request),
    cut,
  )

const createPageFetcher =
  (exportRows: (request: ExportRequest) => TE.TaskEither<ApiError, RawResponse>, cut: Cutter): FetchPage =>
  (request, turn = T.of(undefined)) => {
    const readAnswer = (answer: RawResponse): E.Either<ApiError, ExportPage> =>
      pipe(
        answer.hasNoContent === true
          ? emptyPage(request)
          : pipe(
              cut(answer.body),
              E.chain((cutPage) => toExportPage(request, cutPage)),
            ),
        E.map((page) => ({
          ...page,
          ...defined({ servedAt: answer.servedAt }),
          release: () => {
            page.release?.()
            answer.release?.()
          },
        })),
      )
    /**
     * An error of the request itself was already retried. `times`: how often to retry an error that only the cutter
     * found.
     */
    const fetchRows = (times: number): TE.TaskEither<ApiError, ExportPage> =>
      pipe(
        exportRows(request),
        TE.tapTask(() => turn),
        TE.map(readAnswer),
        TE.flatMap(
          E.match(
            (error) => (times > 0 && isBrokenResponse(error) ? fetchRows(times - 1) : TE.left(error)),
            (page) => TE.right(page),
          ),
        ),
      )
    return fetchRows(2)
  }

/** An answer without content: the export has no rows, or none at this offset. */
const emptyPage = ({ offset = 0 }: ExportRequest): E.Either<ApiError, ExportPage> =>
  offset === 0
    ? E.right({ rows: [], filter: {}, unknownPaths: [] })
    : E.left({ _tag: 'Http', status: 204, message: 'no content' })

const isBrokenResponse = (error: ApiError): boolean =>
  (error._tag === 'Application' && !isTokenError(error)) || (error._tag === 'Decode' && error.remedy === undefined)

/**
 * The answer, checked against its request. It may hold more rows than requested, since a scan counts the rows it gets.
 */
const toExportPage = (request: ExportRequest, { hasList, ...page }: CutPage): E.Either<ApiError, ExportPage> => {
  const error = checkEcho(request, page.filter)
  if (error !== undefined) return E.left(error)
  if (!hasList && page.filter.modifiedTimeFrom == null)
    return E.left({ _tag: 'Decode', path: '$', message: 'neither records nor an echo of the request' })
  const narrower = narrowerFilters(request, page.filter)
  return E.right(narrower.length === 0 ? page : { ...page, narrowerFilters: narrower })
}
