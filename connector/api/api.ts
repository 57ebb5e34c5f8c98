import type { TaskEither } from 'fp-ts/TaskEither'
import type { ApiError } from './error'
import type { Route } from './route'
import * as routes from './routes'

type Input<R> = R extends Route<infer I, infer _> ? I : never
type Output<R> = R extends Route<infer _, infer O> ? O : never

/** The service: one function per operation. The HTTP client is one of these; the sandbox is another. */
export type Api = {
  readonly [K in keyof typeof routes]: (
    input: Input<(typeof routes)[K]>,
  ) => TaskEither<ApiError, Output<(typeof routes)[K]>>
}

/** Carries one request to the service and brings its answer. */
export type Send = <I, O>(route: Route<I, O>) => (input: I) => TaskEither<ApiError, O>

/** The `Api` behind `send`, one line per operation. */
export const httpApi = (send: Send): Api => ({
  exportReviews: send(routes.exportReviews),
  exportDeletedReviews: send(routes.exportDeletedReviews),
})
