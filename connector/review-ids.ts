import { pipe } from 'fp-ts/function'
import * as O from 'fp-ts/Option'
import * as TE from 'fp-ts/TaskEither'
import { cutter } from './api/cut'
import { toFailure } from './api/error'
import { fetchDeletedReviews } from './api/export'
import { DeletedReview } from './api/model/review'
import { toInstant } from './api/model/scalar'
import type { FetchPage } from './api/page'
import { scan } from './api/scan'
import type { Filters } from './api/scan/window'
import type { Failure } from './cdk/failure'
import { andThen, chain, type Feed, unfold } from './cdk/feed'
import type { Service, ServiceRow } from './snapshot/service'
import { reviewOperation } from './streams/reviews'
import type { Source } from './streams/source'

/** The ids and times of the service's reviews, for `feedback verify` to hold ours against. */
export const reviewIds = (source: Source): Service => {
  const { api, startDate, lookback, pageSize } = source
  const fetch = reviewOperation.fetch(source, [])
  const filters = reviewOperation.filters(source)
  const fetchDeleted = fetchDeletedReviews(
    api,
    cutter({ codec: DeletedReview, list: 'reviews', key: 'id', cursor: 'modifiedTime', undeclared: 'drop' }),
  )
  return {
    startDate,
    lookback,
    reviews: pipe(
      scan({
        operation: reviewOperation.name,
        fetch,
        now: source.now,
        concurrency: source.concurrency,
        limit: pageSize,
        order: source.order,
        hasMentionTime: true,
      })({ from: { startDate, cursor: O.none, lookback }, filters, marker: O.none }),
      chain(({ rows, last }) => [{ rows, ...(last === undefined ? {} : { signpost: last.signpost }) }]),
    ),
    movedSince: ({ changed, deleted }) =>
      pipe(
        pages(fetch, reviewOperation.name, filters, changed, pageSize),
        andThen(() => pages(fetchDeleted, 'export deleted reviews', {}, deleted - lookback, pageSize)),
      ),
  }
}

/** One pass over the pages; a row that moves meanwhile may be missed. */
const pages = (
  fetch: FetchPage,
  operation: string,
  filters: Filters,
  since: number,
  limit: number,
): Feed<Failure, ReadonlyArray<ServiceRow>> =>
  unfold((offset: number) =>
    pipe(
      fetch({ ...filters, modifiedTimeFrom: toInstant(since - 1_000), offset, limit }),
      TE.bimap(
        (error) => toFailure(operation, error),
        ({ rows }) => [rows, rows.length === 0 ? O.none : O.some(offset + rows.length)] as const,
      ),
    ),
  )(0)
