import type { Either } from 'fp-ts/Either'
import type { TaskEither } from 'fp-ts/TaskEither'
import type { ApiError } from '../error'
import type { FetchPage, Page } from '../page'

export type PageRequest = Parameters<FetchPage>[0]

/**
 * Fetches a page, and asks for those that will follow if all goes well; what is then not wanted is forgotten. Of those fewer
 * are asked for while pages lie here before they are wanted, since they would only fill the memory.
 */
export type Ahead = (request: PageRequest, following: ReadonlyArray<PageRequest>) => TaskEither<ApiError, Page>

type Asked = { readonly page: Promise<Either<ApiError, Page>>; here: boolean }

export const pagesAhead = (fetch: FetchPage): Ahead => {
  const underWay = new Map<string, Asked>()
  let depth = 1
  const ask = (request: PageRequest): Asked => {
    const key = JSON.stringify(request)
    const known = underWay.get(key)
    if (known !== undefined) return known
    const asked: Asked = { page: fetch(request)(), here: false }
    underWay.set(key, asked)
    const arrived = () => {
      asked.here = true
    }
    asked.page.then(arrived, arrived)
    return asked
  }
  return (request, following) => async () => {
    const wanted = new Set([request, ...following].map((one) => JSON.stringify(one)))
    for (const key of underWay.keys()) if (!wanted.has(key)) underWay.delete(key)
    const asked = ask(request)
    depth = Math.max(1, asked.here ? depth - 1 : Math.min(depth * 2, following.length))
    following.slice(0, depth).forEach(ask)
    const page = await asked.page
    underWay.delete(JSON.stringify(request))
    return page
  }
}
