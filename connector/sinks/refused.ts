import * as E from 'fp-ts/Either'
import { type ApiError, toFailure } from '../api/error'
import type { Failure } from '../cdk/failure'
import type { Answer } from '../cdk/sink'

/** Statuses that speak of the request rather than of us or of the service: a smaller batch may pass. */
const speaksOfBatch = (status: number): boolean =>
  status >= 400 && status < 500 && ![401, 403, 404, 405, 407, 408, 429].includes(status)

/** An error of a whole batch: an answer about the batch, or the end of the run. */
export const refused = (operation: string, error: ApiError): E.Either<Failure, Answer> =>
  error._tag === 'Http' && speaksOfBatch(error.status)
    ? E.right({
        _tag: 'Refused',
        reason: `the service answered ${error.status}: ${error.message}`,
        tooLarge: error.status === 413,
      })
    : E.left(toFailure(operation, error))
