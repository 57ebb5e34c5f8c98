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
  /** About the least of late, since at times we do other things as well: what an answer takes, and what we do with a page. */
  let taking: number | undefined
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
      taking = least(taking, now() - asked)
    }
    page.then(arrived, arrived)
    return page
  }
  return (request, following) => async () => {
    const wanted = new Set([request, ...following].map((one) => JSON.stringify(one)))
    for (const key of underWay.keys()) if (!wanted.has(key)) underWay.delete(key)
    if (handed !== undefined) busy = least(busy, now() - handed)
    const answer = ask(request)
    const depth = busy === undefined || busy === 0 ? following.length : Math.ceil((taking ?? busy) / busy)
    following.slice(0, Math.max(1, depth)).forEach(ask)
    const page = await answer
    underWay.delete(JSON.stringify(request))
    handed = now()
    return page
  }
}

/** A minimum that forgets: it follows what is more by a sixteenth. */
const least = (held: number | undefined, time: number): number =>
  held === undefined || time < held ? time : held + (time - held) / 16
