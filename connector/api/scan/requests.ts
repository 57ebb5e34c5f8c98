import { toInstant } from '../model/scalar'
import type { PageRequest } from './ahead'
import { overlapNow, type State } from './state'
import { type Filters, whole, within } from './window'

/** The page to be asked for next. */
export const request = (filters: Filters, { pass, windows, limit }: State): PageRequest => ({
  modifiedTimeFrom: toInstant(pass.from),
  ...within(filters, windows[0] ?? whole),
  offset: pass.offset,
  limit,
})

/** The pages that come next if all goes well, where several may be under way; `before`: the state before the last page. */
export const following = (
  concurrency: number,
  filters: Filters,
  before: State,
  state: State,
): ReadonlyArray<PageRequest> => {
  if (concurrency === 1 || state.windows.length === 0) return []
  const next = request(filters, state)
  return stepsAhead(concurrency, before, state).map((step) => ({ ...next, offset: next.offset + step }))
}

/**
 * How many rows behind the next page they begin, itself the first. While pages are full, each joins on to the one before;
 * behind the first that is short, the page that should be the last comes with its confirmation.
 */
const stepsAhead = (concurrency: number, before: State, state: State): ReadonlyArray<number> => {
  const { pass, longest, limit, sorted } = state
  const overlap = overlapNow(state)
  if (sorted || pass.confirming) return [0]
  if (pass.full === 0 && isWhole(before) && pass.pages > before.pass.pages) return [0, overlap]
  const sure = pass.full > 1 || (pass.full === 1 && longest >= limit)
  return sure && longest > overlap ? Array.from({ length: concurrency }, (_, i) => i * (longest - overlap)) : [0]
}

/** Every page so far was full. */
const isWhole = ({ pass }: State): boolean => pass.pages > 0 && pass.full === pass.pages
