import type { Either } from 'fp-ts/Either'
import type { TaskEither } from 'fp-ts/TaskEither'
import type { ApiError } from '../error'
import type { FetchPage, Page } from '../page'

export type PageRequest = Parameters<FetchPage>[0]

/** Fetches a page, and asks for those that will follow if all goes well; what is then not wanted is forgotten. */
export type Ahead = (request: PageRequest, following: ReadonlyArray<PageRequest>) => TaskEither<ApiError, Page>

export const pagesAhead = (fetch: FetchPage): Ahead => {
  const underWay = new Map<string, Promise<Either<ApiError, Page>>>()
  const ask = (request: PageRequest): Promise<Either<ApiError, Page>> => {
    const key = JSON.stringify(request)
    const asked = underWay.get(key) ?? fetch(request)()
    underWay.set(key, asked)
    asked.catch(() => undefined)
    return asked
  }
  return (request, following) => async () => {
    const wanted = new Set([request, ...following].map((one) => JSON.stringify(one)))
    for (const key of underWay.keys()) if (!wanted.has(key)) underWay.delete(key)
    const answer = ask(request)
    following.forEach(ask)
    const page = await answer
    underWay.delete(JSON.stringify(request))
    return page
  }
}
