import { pipe } from 'fp-ts/function'
import * as O from 'fp-ts/Option'
import type { TaskEither } from 'fp-ts/TaskEither'
import * as TE from 'fp-ts/TaskEither'
import type { ApiError } from '../../api/error'
import { drainFeed, type FeedStep, unfoldFeed } from '../../cdk/feed'
import {
  type EntityListing,
  type FeedbackOperation,
  type FeedbackPage,
  type FeedbackRequest,
  findListing,
} from './listing'

type ListingRows = EntityListing['rows']
type FetchFeedbackPage = (request: FeedbackRequest) => TaskEither<ApiError, FeedbackPage>

const maxReadings = 5
/** Pages in a row without a new row, after which it is the service that does not turn the page. */
const maxStalePages = 3

/** All rows of a window of one second, by its pages to an empty one; again until two readings hold the same rows. */
export const readStablePages = (
  operation: FeedbackOperation,
  fetch: FetchFeedbackPage,
  request: Omit<FeedbackRequest, 'page'>,
): TaskEither<ApiError, ListingRows> => {
  const round = (n: number, before: string | undefined): TaskEither<ApiError, ListingRows> =>
    pipe(
      readAllPages(operation, fetch, request),
      TE.flatMap((rows) => {
        const keys = [...rows.keys()].sort().join()
        if (keys === before) return TE.right([...rows.values()])
        return n < maxReadings
          ? round(n + 1, keys)
          : TE.left(pagingError(`the pages of one second differed at each of ${maxReadings} readings`))
      }),
    )
  return round(1, undefined)
}

const pagingError = (message: string): ApiError => ({ _tag: 'Decode', path: '$.data.entities', message })

const readAllPages = (
  { key, firstPage }: FeedbackOperation,
  fetch: FetchFeedbackPage,
  request: Omit<FeedbackRequest, 'page'>,
): TaskEither<ApiError, ReadonlyMap<string, ListingRows[number]>> => {
  const rows = new Map<string, ListingRows[number]>()
  let stale = 0
  return pipe(
    firstPage as number,
    unfoldFeed((page: number) =>
      pipe(
        fetch({ ...request, page }),
        TE.map((answer): FeedStep<number, ListingRows> => {
          const found = findListing(request.ids[0] ?? '', answer)?.rows ?? []
          return [found, found.length === 0 ? O.none : O.some(page + 1)]
        }),
      ),
    ),
    drainFeed((page) => {
      const known = rows.size
      for (const row of page) rows.set(String(row[key]), row)
      stale = rows.size === known ? stale + 1 : 0
      return stale > maxStalePages
        ? TE.left(pagingError('a page of one second is the same as those before'))
        : TE.right(undefined)
    }),
    TE.map(() => rows),
  )
}
