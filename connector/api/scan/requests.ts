import { toInstant } from '../model/scalar'
import type { PageRequest } from './ahead'
import { type ScanState, windowOverlap } from './state'
import { type ScanFilters, wholeWindow, windowFilters } from './window'

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
