import { pipe } from 'fp-ts/function'
import * as O from 'fp-ts/Option'
import type { TaskEither } from 'fp-ts/TaskEither'
import * as TE from 'fp-ts/TaskEither'
import type { ApiError } from '../../api/error'
import { drain, type Step, unfold } from '../../cdk/feed'
import { type Ask, type Listing, type ListPage, listingOf, type Operation } from './listing'

type Rows = Listing['rows']
type Fetch = (request: Ask) => TaskEither<ApiError, ListPage>

const mostRounds = 5
/** Pages in a row without a new row, after which it is the service that does not turn the page. */
const mostStale = 3

/** All rows of a window of one second, by its pages to an empty one; again until two readings hold the same rows. */
export const twiceAlike = (
  operation: Operation,
  fetch: Fetch,
  request: Omit<Ask, 'page'>,
): TaskEither<ApiError, Rows> => {
  const round = (n: number, before: string | undefined): TaskEither<ApiError, Rows> =>
    pipe(
      allPages(operation, fetch, request),
      TE.flatMap((rows) => {
        const keys = [...rows.keys()].sort().join()
        if (keys === before) return TE.right([...rows.values()])
        return n < mostRounds
          ? round(n + 1, keys)
          : TE.left(broken(`the pages of one second differed at each of ${mostRounds} readings`))
      }),
    )
  return round(1, undefined)
}

const broken = (message: string): ApiError => ({ _tag: 'Decode', path: '$.data.entities', message })

const allPages = (
  { key, firstPage }: Operation,
  fetch: Fetch,
  request: Omit<Ask, 'page'>,
): TaskEither<ApiError, ReadonlyMap<string, Rows[number]>> => {
  const rows = new Map<string, Rows[number]>()
  let stale = 0
  return pipe(
    firstPage as number,
    unfold((page: number) =>
      pipe(
        fetch({ ...request, page }),
        TE.map((answer): Step<number, Rows> => {
          const found = listingOf(request.ids[0] ?? '', answer)?.rows ?? []
          return [found, found.length === 0 ? O.none : O.some(page + 1)]
        }),
      ),
    ),
    drain((page) => {
      const known = rows.size
      for (const row of page) rows.set(String(row[key]), row)
      stale = rows.size === known ? stale + 1 : 0
      return stale > mostStale
        ? TE.left(broken('a page of one second is the same as those before'))
        : TE.right(undefined)
    }),
    TE.map(() => rows),
  )
}
