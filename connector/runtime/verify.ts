import { pipe } from 'fp-ts/function'
import * as O from 'fp-ts/Option'
import * as TE from 'fp-ts/TaskEither'
import { DeletedReview, toFailure, toInstant } from '../api'
import { concatFeed, defined, type Failure, type Feed, flatMapFeed, unfoldFeed } from '../cdk'
import { createCutter, createDeletedReviewFetcher, type FetchPage, type ScanFilters, scan } from '../export'
import type { ServiceReview, ServiceReviews } from '../snapshot'
import { reviewExportOperation, type SourceEnv } from '../streams'

/** Reads the ids and times of the service's reviews, for `feedback verify` to compare with those in a snapshot. */
export const createReviewService = (source: SourceEnv): ServiceReviews => {
  const { api, startDate, lookback, pageSize } = source
  const fetch = reviewExportOperation.fetch(source, [])
  const filters = reviewExportOperation.filters(source)
  const fetchDeleted = createDeletedReviewFetcher(
    api,
    createCutter({
      codec: DeletedReview,
      list: 'reviews',
      primaryKey: 'id',
      cursor: 'modifiedTime',
      undeclared: 'drop',
    }),
  )
  return {
    startDate,
    lookback,
    reviews: pipe(
      scan({
        operation: reviewExportOperation.name,
        fetch,
        now: source.now,
        concurrency: source.concurrency,
        limit: pageSize,
        order: source.order,
        hasMentionTime: true,
      })({ origin: { startDate, cursor: O.none, lookback }, filters, resumeToken: O.none }),
      flatMapFeed(({ rows, completion }) => [{ rows, ...defined({ cutoff: completion?.cutoff }) }]),
    ),
    changesSince: ({ changed, deleted }) =>
      pipe(
        fetchPages(fetch, reviewExportOperation.name, filters, changed, pageSize),
        concatFeed(() => fetchPages(fetchDeleted, 'export deleted reviews', {}, deleted - lookback, pageSize)),
      ),
  }
}

/** One pass over the pages; it may miss a row that moves to another page during the pass. */
const fetchPages = (
  fetch: FetchPage,
  operation: string,
  filters: ScanFilters,
  since: number,
  limit: number,
): Feed<Failure, ReadonlyArray<ServiceReview>> =>
  unfoldFeed((offset: number) =>
    pipe(
      fetch({ ...filters, modifiedTimeFrom: toInstant(since - 1_000), offset, limit }),
      TE.bimap(
        (error) => toFailure(operation, error),
        ({ rows }) => [rows, rows.length === 0 ? O.none : O.some(offset + rows.length)] as const,
      ),
    ),
  )(0)
