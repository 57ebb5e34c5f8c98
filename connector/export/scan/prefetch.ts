import type { Either } from 'fp-ts/Either'
import type { TaskEither } from 'fp-ts/TaskEither'
import { type ApiError, toInstant } from '../../api'
import type { ExportPage, FetchPage } from '../export-page'
import { type ScanState, windowOverlap } from './state'
import { type ScanFilters, wholeWindow, windowFilters } from './window'

export type PageRequest = Parameters<FetchPage>[0]

/** Fetches pages before they are wanted. */
export type Prefetcher = {
  /**
   * Asks for the pages that will be taken next if all goes well, and forgets those it was told before. No more of them than
   * twice what keeps us busy while an answer is on its way: others would only lie here and fill the memory.
   */
  readonly prefetchPages: (requests: ReadonlyArray<PageRequest>) => void
  /** The page, which is cut only now: what lies here are the bytes of answers alone. */
  readonly takePage: (request: PageRequest) => TaskEither<ApiError, ExportPage>
}

/** So many pages are not measured: until our code is compiled, one keeps us busy far longer than any later one. */
const warmUpPages = 4

type PendingPage = { readonly page: Promise<Either<ApiError, ExportPage>>; readonly request: () => void }

/** `now`: milliseconds. */
export const createPrefetcher = (fetch: FetchPage, now: () => number): Prefetcher => {
  const underWay = new Map<string, PendingPage>()
  /** About the least of late, since at times we do other things as well: what an answer takes, and what we do with a page. */
  let taking: number | undefined
  let busy: number | undefined
  let since: number | undefined
  let taken = 0

  const ask = (request: PageRequest): PendingPage => {
    const known = underWay.get(requestKey(request))
    if (known !== undefined) return known
    const asked = now()
    let wanted = () => {}
    const turn = new Promise<void>((resolve) => {
      wanted = resolve
    })
    const page = fetch(request, async () => {
      taking = decayMinimum(taking, now() - asked)
      await turn
      since = now()
    })()
    page.catch(() => undefined)
    underWay.set(requestKey(request), { page, request: wanted })
    return { page, request: wanted }
  }
  return {
    prefetchPages: (requests) => {
      const wanted = new Set(requests.map(requestKey))
      for (const key of underWay.keys()) if (!wanted.has(key)) underWay.delete(key)
      const depth = busy === undefined || busy === 0 ? requests.length : Math.ceil((2 * (taking ?? busy)) / busy)
      requests.slice(0, Math.max(1, depth)).forEach(ask)
    },
    takePage: (request) => async () => {
      if (since !== undefined && taken > warmUpPages) busy = decayMinimum(busy, now() - since)
      taken += 1
      since = undefined
      const { page, request: wanted } = ask(request)
      wanted()
      underWay.delete(requestKey(request))
      return page
    },
  }
}

const requestKey = (request: PageRequest): string => JSON.stringify(request)

/** A minimum that forgets: it follows what is more by a sixteenth. */
const decayMinimum = (held: number | undefined, time: number): number =>
  held === undefined || time < held ? time : held + (time - held) / 16

/** The page to be asked for next. */
export const nextPageRequest = (filters: ScanFilters, { pass, windows, limit }: ScanState): PageRequest => ({
  modifiedTimeFrom: toInstant(pass.from),
  ...windowFilters(filters, windows[0] ?? wholeWindow),
  offset: pass.offset,
  limit,
})

/** The pages that come next if all goes well, where several may be under way; `before`: the state before the last page. */
export const requestsAhead = (
  concurrency: number,
  filters: ScanFilters,
  before: ScanState,
  state: ScanState,
): ReadonlyArray<PageRequest> => {
  if (concurrency === 1 || state.windows.length === 0) return []
  const next = nextPageRequest(filters, state)
  return offsetsAhead(concurrency, before, state).map((step) => ({ ...next, offset: next.offset + step }))
}

/**
 * How many rows behind the next page they begin, itself the first. While pages are full, each joins on to the one before;
 * behind the first that is short, the page that should be the last comes with its confirmation.
 */
const offsetsAhead = (concurrency: number, before: ScanState, state: ScanState): ReadonlyArray<number> => {
  const { pass, longestPage, limit, isSorted } = state
  const overlap = windowOverlap(state)
  if (isSorted || pass.confirming) return [0]
  if (pass.full === 0 && areAllPagesFull(before) && pass.pages > before.pass.pages) return [0, overlap]
  const sure = pass.full > 1 || (pass.full === 1 && longestPage >= limit)
  return sure && longestPage > overlap
    ? Array.from({ length: concurrency }, (_, i) => i * (longestPage - overlap))
    : [0]
}

/** Every page so far was full. */
const areAllPagesFull = ({ pass }: ScanState): boolean => pass.pages > 0 && pass.full === pass.pages
