import type { Either } from 'fp-ts/Either'
import type { TaskEither } from 'fp-ts/TaskEither'
import type { ApiError } from '../error'
import type { FetchPage, Page } from '../page'

export type PageRequest = Parameters<FetchPage>[0]

/** Fetches pages before they are wanted. */
export type Ahead = {
  /**
   * Asks for the pages that will be taken next if all goes well, and forgets those it was told before. No more of them than
   * twice what keeps us busy while an answer is on its way: others would only lie here and fill the memory.
   */
  readonly expect: (requests: ReadonlyArray<PageRequest>) => void
  /** The page, which is cut only now: what lies here are the bytes of answers alone. */
  readonly take: (request: PageRequest) => TaskEither<ApiError, Page>
}

/** So many pages are not measured: until our code is compiled, one keeps us busy far longer than any later one. */
const cold = 4

type Expected = { readonly page: Promise<Either<ApiError, Page>>; readonly wanted: () => void }

/** `now`: milliseconds. */
export const pagesAhead = (fetch: FetchPage, now: () => number): Ahead => {
  const underWay = new Map<string, Expected>()
  /** About the least of late, since at times we do other things as well: what an answer takes, and what we do with a page. */
  let taking: number | undefined
  let busy: number | undefined
  let since: number | undefined
  let taken = 0

  const ask = (request: PageRequest): Expected => {
    const known = underWay.get(keyOf(request))
    if (known !== undefined) return known
    const asked = now()
    let wanted = () => {}
    const turn = new Promise<void>((resolve) => {
      wanted = resolve
    })
    const page = fetch(request, async () => {
      taking = least(taking, now() - asked)
      await turn
      since = now()
    })()
    page.catch(() => undefined)
    underWay.set(keyOf(request), { page, wanted })
    return { page, wanted }
  }
  return {
    expect: (requests) => {
      const wanted = new Set(requests.map(keyOf))
      for (const key of underWay.keys()) if (!wanted.has(key)) underWay.delete(key)
      const depth = busy === undefined || busy === 0 ? requests.length : Math.ceil((2 * (taking ?? busy)) / busy)
      requests.slice(0, Math.max(1, depth)).forEach(ask)
    },
    take: (request) => async () => {
      if (since !== undefined && taken > cold) busy = least(busy, now() - since)
      taken += 1
      since = undefined
      const { page, wanted } = ask(request)
      wanted()
      underWay.delete(keyOf(request))
      return page
    },
  }
}

const keyOf = (request: PageRequest): string => JSON.stringify(request)

/** A minimum that forgets: it follows what is more by a sixteenth. */
const least = (held: number | undefined, time: number): number =>
  held === undefined || time < held ? time : held + (time - held) / 16
