import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import type { TaskEither } from 'fp-ts/TaskEither'
import * as TE from 'fp-ts/TaskEither'
import { cutter } from './api/cut'
import { type ApiError, toFailure } from './api/error'
import { fetchDeletedReviews, fetchReviews } from './api/export'
import { DeletedReview, Review } from './api/model/review'
import { toInstant } from './api/model/scalar'
import type { FetchPage, Page } from './api/page'
import { signpost } from './api/scan/signpost'
import { configFailure, type Failure } from './cdk/failure'
import type { Source } from './streams/source'

const shape = { list: 'reviews', key: 'id', cursor: 'modifiedTime', undeclared: 'drop' } as const

/** Asks each operation for a row; answers warnings. A failure says which operation is refused and what to do. */
export const probe = (source: Source): TaskEither<Failure, ReadonlyArray<string>> =>
  pipe(
    probeExport('export reviews', fetchReviews(source.api, cutter({ codec: Review, ...shape })), source),
    TE.flatMap((warnings) =>
      pipe(
        probeExport(
          'export deleted reviews',
          fetchDeletedReviews(source.api, cutter({ codec: DeletedReview, ...shape })),
          source,
        ),
        TE.map((more) => [...new Set([...warnings, ...more])]),
      ),
    ),
  )

/** A time so late that nothing can have changed after it: a service that still answers rows does not heed its filter. */
const tomorrow = 86_400_000

const probeExport = (
  operation: string,
  fetch: FetchPage,
  source: Source,
): TaskEither<Failure, ReadonlyArray<string>> => {
  const ask = (from: number): TaskEither<ApiError, Page> =>
    fetch({ ...source.filters, modifiedTimeFrom: toInstant(from), offset: 0, limit: 10 })
  return pipe(
    ask(source.startDate),
    TE.flatMap((page) =>
      pipe(
        ask(Math.max(source.now(), page.servedAt ?? 0) + tomorrow),
        TE.map((later) => ({ page, later })),
      ),
    ),
    TE.mapLeft((error) => toFailure(operation, error)),
    TE.flatMapEither(({ page, later }) =>
      later.rows.length > 0
        ? E.left(
            configFailure(
              `${operation}: the service answers reviews though modifiedTimeFrom lies in the future, so it does not heed its filter and every run would read everything. Ask its operator.`,
            ),
          )
        : E.right(signpost(page.servedAt, source.now())[1].map(({ message }) => message)),
    ),
  )
}
