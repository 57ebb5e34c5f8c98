import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as O from 'fp-ts/Option'
import * as TE from 'fp-ts/TaskEither'
import { toFailure, toInstant } from '../api'
import { defined, type Failure, type Feed, flatMapFeed, unfoldFeed } from '../cdk'
import { type FetchPage, filterFrom, type ScanFilters, scan } from '../export'
import type { NextRead, ServiceReview, ServiceReviews } from '../snapshot'
import { createDeletionFetcher, decodeExportState, reviewExportOperation, type SourceEnv } from '../streams'

/** Reads the ids and times of the service's reviews, for `feedback verify` to compare with those in a snapshot. */
export const createReviewService = (source: SourceEnv): ServiceReviews => {
  const { api, startDate, pageSize } = source
  const fetch = reviewExportOperation.fetch(source, [])
  const filters = reviewExportOperation.filters(source)
  const fetchDeleted = createDeletionFetcher({ api, onUnknown: 'drop' })
  return {
    startDate,
    planNextRead: (stream, state) => planNextRead(source, stream, state),
    reviews: pipe(
      scan({
        operation: reviewExportOperation.name,
        fetch,
        now: source.now,
        ...defined({ wait: source.wait }),
        concurrency: source.concurrency,
        limit: pageSize,
        order: source.order,
        hasMentionTime: true,
      })({ origin: { startDate, cursor: O.none, lookback: source.lookback }, filters, resumeToken: O.none }),
      flatMapFeed(({ rows, completion }) => [{ rows, ...defined({ cutoff: completion?.cutoff }) }]),
    ),
    changedSince: (time) => fetchPages(fetch, reviewExportOperation.name, filters, time, pageSize),
    deletedSince: (time) => fetchPages(fetchDeleted, 'export deleted reviews', {}, time, pageSize),
  }
}

/** What the next run reads from a state: the same decoder, filter and list of sent rows as the run itself. */
const planNextRead = (source: SourceEnv, stream: string, state: unknown): NextRead | undefined =>
  pipe(
    decodeExportState(stream, O.fromNullable(state)),
    E.match(
      () => undefined,
      ({ cursor, slack, sentRows, resumeToken }) => ({
        from: filterFrom(source.startDate, cursor, source.lookback + slack),
        sent: [...sentRows, ...(O.isSome(resumeToken) ? resumeToken.value.recent : [])].map(([id, modifiedTime]) => ({
          id,
          modifiedTime,
        })),
      }),
    ),
  )

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
