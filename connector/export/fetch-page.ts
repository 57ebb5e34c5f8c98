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
  toInstant,
  toMillis,
} from '../api'
import { defined } from '../cdk'
import type { CutPage, Cutter } from './cut/page'
import { type ScanState, windowOverlap } from './scan/state'
import { type ScanFilters, wholeWindow, windowFilters } from './scan/window'

/** A page of an export, checked against its request. */
export type ExportPage = Omit<CutPage, 'hasList'> & {
  /** The filters that the service applied more narrowly than the request asked, by its own echo, such as `sources`. */
  readonly narrowerFilters?: ReadonlyArray<string>
  /** The service refused the offset of the request, so there are no rows. */
  readonly isRefused?: boolean
  /** The service's clock when it began to answer, milliseconds since 1970, where it is known. */
  readonly servedAt?: number
}

/** Fetches one page of an export, cuts it and checks it against the request. An answer that has arrived waits for `turn` before it is cut. */
export type FetchPage = (
  request: ExportRequest & { readonly offset: number; readonly limit: number },
  turn?: T.Task<void>,
) => TE.TaskEither<ApiError, ExportPage>

/** The first difference between the request and its echo in the answer; undefined if there is none. An echo may leave out any attribute. */
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

/** The filters that the service applied more narrowly than the request asked. The echo of one that the request leaves out is a default. */
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

/** Pages of operation 6. A broken answer is requested again, twice at most; a caller halves the limit of one that is too large. */
export const createReviewFetcher = (api: Pick<Api, 'exportReviews'>, cut: Cutter): FetchPage =>
  createPageFetcher(api.exportReviews, cut)

/** As `createReviewFetcher`, of operation 7, which has no filters by mention time and no additional fields. */
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
    /** An error of the request itself has had its attempts; `times`: how often one that only the cut has found is met with another. */
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

/** The answer, checked against its request. It may hold more rows than requested: a scan goes by the rows it gets. */
const toExportPage = (request: ExportRequest, { hasList, ...page }: CutPage): E.Either<ApiError, ExportPage> => {
  const error = checkEcho(request, page.filter)
  if (error !== undefined) return E.left(error)
  if (!hasList && page.filter.modifiedTimeFrom == null)
    return E.left({ _tag: 'Decode', path: '$', message: 'neither records nor an echo of the request' })
  const narrower = narrowerFilters(request, page.filter)
  return E.right(narrower.length === 0 ? page : { ...page, narrowerFilters: narrower })
}

export type PageRequest = Parameters<FetchPage>[0]

/** Sends requests for pages before they are needed. */
export type Prefetcher = {
  /**
   * Requests the pages that are probably needed next, and drops the pending ones that are not among them. Requests at most as many
   * as are needed to never wait: twice the time of an answer over the time that a page is worked on. More would only take memory.
   */
  readonly prefetchPages: (requests: ReadonlyArray<PageRequest>) => void
  /** Whether the page of a request was asked for before the page in front of it was taken: it may be the older one. */
  readonly isPrefetched: (request: PageRequest) => boolean
  /** The page of a request, whether prefetched or not. Only now is it cut: until then a prefetched answer is nothing but its bytes. */
  readonly takePage: (request: PageRequest) => TE.TaskEither<ApiError, ExportPage>
}

/** The first pages are not measured: until our code is compiled, each takes far longer than any later one. */
const warmUpPages = 4

type PendingPage = {
  readonly page: Promise<E.Either<ApiError, ExportPage>>
  readonly startCut: () => void
  /** Other pages are to come in front of it. */
  readonly isAhead: boolean
}

/** `now`: milliseconds. */
export const createPrefetcher = (fetchPage: FetchPage, now: () => number): Prefetcher => {
  const pending = new Map<string, PendingPage>()
  /** Milliseconds from a request to its answer, and from taking a page to asking for the next. Decaying minima: a busy event loop inflates single measurements. */
  let answerTime: number | undefined
  let workTime: number | undefined
  let workStart: number | undefined
  let takenPages = 0

  const requestPage = (request: PageRequest, isAhead: boolean): PendingPage => {
    const key = requestKey(request)
    const earlier = pending.get(key)
    if (earlier !== undefined) return earlier
    const sentAt = now()
    let startCut = () => {}
    const isTaken = new Promise<void>((resolve) => {
      startCut = resolve
    })
    const page = fetchPage(request, async () => {
      answerTime = decayMinimum(answerTime, now() - sentAt)
      await isTaken
      workStart = now()
    })()
    page.catch(() => undefined)
    const started = { page, startCut, isAhead }
    pending.set(key, started)
    return started
  }
  return {
    prefetchPages: (requests) => {
      const keys = new Set(requests.map(requestKey))
      for (const key of pending.keys()) if (!keys.has(key)) pending.delete(key)
      const depth =
        workTime === undefined || workTime === 0
          ? requests.length
          : Math.ceil((2 * (answerTime ?? workTime)) / workTime)
      for (const [i, request] of requests.slice(0, Math.max(1, depth)).entries()) requestPage(request, i > 0)
    },
    isPrefetched: (request) => pending.get(requestKey(request))?.isAhead === true,
    takePage: (request) => async () => {
      if (workStart !== undefined && takenPages > warmUpPages) workTime = decayMinimum(workTime, now() - workStart)
      takenPages += 1
      workStart = undefined
      const { page, startCut } = requestPage(request, false)
      startCut()
      pending.delete(requestKey(request))
      return page
    },
  }
}

const requestKey = (request: PageRequest): string => JSON.stringify(request)

/** A minimum that forgets: it moves a sixteenth of the way towards a larger value. */
const decayMinimum = (minimum: number | undefined, value: number): number =>
  minimum === undefined || value < minimum ? value : minimum + (value - minimum) / 16

/** The next page to ask for. */
export const nextPageRequest = (filters: ScanFilters, { pass, windows, limit }: ScanState): PageRequest => ({
  modifiedTimeFrom: toInstant(pass.from),
  ...windowFilters(filters, windows[0] ?? wholeWindow),
  offset: pass.offset,
  limit,
})

/** The pages that a pass without surprises asks for next, `concurrency` at most. `before`: the state before the last page. */
export const requestsAhead = (
  concurrency: number,
  filters: ScanFilters,
  before: ScanState,
  state: ScanState,
): ReadonlyArray<PageRequest> => {
  if (concurrency === 1 || state.windows.length === 0) return []
  const next = nextPageRequest(filters, state)
  return offsetsAhead(concurrency, before, state).map((distance) => ({ ...next, offset: next.offset + distance }))
}

/**
 * Distances in rows from the next page's offset, the first being 0. While pages are full, each page overlaps the one before. After
 * the first short page, the probable last page is asked for together with the page behind it that confirms the end.
 */
const offsetsAhead = (concurrency: number, before: ScanState, state: ScanState): ReadonlyArray<number> => {
  const { pass, longestPage, limit } = state
  const overlap = windowOverlap(state)
  if (pass.isConfirmingEnd || pass.foundAtStart !== undefined) return [0]
  if (pass.fullPagesInARow === 0 && areAllPagesFull(before) && pass.pageCount > before.pass.pageCount)
    return [0, overlap]
  const isFullPageLikely = pass.fullPagesInARow > 1 || (pass.fullPagesInARow === 1 && longestPage >= limit)
  return isFullPageLikely && longestPage > overlap
    ? Array.from({ length: concurrency }, (_, i) => i * (longestPage - overlap))
    : [0]
}

/** Whether every page so far was full. */
const areAllPagesFull = ({ pass }: ScanState): boolean => pass.pageCount > 0 && pass.fullPagesInARow === pass.pageCount
