import type { Either } from 'fp-ts/Either'
import type { TaskEither } from 'fp-ts/TaskEither'
import { type ApiError, toInstant } from '../../api'
import type { ExportPage, FetchPage } from '../fetch-page'
import { type ScanState, windowOverlap } from './state'
import { type ScanFilters, wholeWindow, windowFilters } from './window'

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
  readonly takePage: (request: PageRequest) => TaskEither<ApiError, ExportPage>
}

/** The first pages are not measured: until our code is compiled, each takes far longer than any later one. */
const warmUpPages = 4

type PendingPage = {
  readonly page: Promise<Either<ApiError, ExportPage>>
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
  const { pass, longestPage, limit, isSorted } = state
  const overlap = windowOverlap(state)
  if (isSorted || pass.isConfirmingEnd || pass.foundAtStart !== undefined) return [0]
  if (pass.fullPagesInARow === 0 && areAllPagesFull(before) && pass.pageCount > before.pass.pageCount)
    return [0, overlap]
  const isFullPageLikely = pass.fullPagesInARow > 1 || (pass.fullPagesInARow === 1 && longestPage >= limit)
  return isFullPageLikely && longestPage > overlap
    ? Array.from({ length: concurrency }, (_, i) => i * (longestPage - overlap))
    : [0]
}

/** Whether every page so far was full. */
const areAllPagesFull = ({ pass }: ScanState): boolean => pass.pageCount > 0 && pass.fullPagesInARow === pass.pageCount
