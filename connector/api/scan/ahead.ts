import type { Either } from 'fp-ts/Either'
import type { TaskEither } from 'fp-ts/TaskEither'
import type { ApiError } from '../error'
import type { FetchPage, Page } from '../page'

export type PageRequest = Parameters<FetchPage>[0]

/**
 * Fetches a page, and asks for those that will follow if all goes well; what is then not wanted is forgotten. No more of them
 * than it takes to keep us busy while an answer is on its way: others would only lie here and fill the memory.
 */
export type Ahead = (request: PageRequest, following: ReadonlyArray<PageRequest>) => TaskEither<ApiError, Page>

/** `now`: milliseconds. */
export const pagesAhead = (fetch: FetchPage, now: () => number): Ahead => {
  const underWay = new Map<string, Promise<Either<ApiError, Page>>>()
  /** About the least that an answer takes of late: some take longer only because we were busy. */
  let taking = Number.POSITIVE_INFINITY
  /** About what we are busy with a page; unknown before the second. */
  let busy: number | undefined
  let handed: number | undefined

  const ask = (request: PageRequest): Promise<Either<ApiError, Page>> => {
    const key = JSON.stringify(request)
    const known = underWay.get(key)
    if (known !== undefined) return known
    const asked = now()
    const page = fetch(request)()
    underWay.set(key, page)
    const arrived = () => {
      const took = now() - asked
      taking = took < taking ? took : taking + (took - taking) / 16
    }
    page.then(arrived, arrived)
    return page
  }
  return (request, following) => async () => {
    const wanted = new Set([request, ...following].map((one) => JSON.stringify(one)))
    for (const key of underWay.keys()) if (!wanted.has(key)) underWay.delete(key)
    if (handed !== undefined) {
      const spent = now() - handed
      busy = busy === undefined ? spent : busy + (spent - busy) / 4
    }
    const answer = ask(request)
    const depth = busy === undefined || busy <= 0 ? following.length : Math.max(1, Math.ceil(taking / busy))
    following.slice(0, depth).forEach(ask)
    const page = await answer
    underWay.delete(JSON.stringify(request))
    handed = now()
    return page
  }
}
