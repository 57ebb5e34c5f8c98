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
export type SendRequest = <I, O>(route: Route<I, O>) => (input: I) => TaskEither<ApiError, O>

/** Where the lookups are, if not where routes.ts has them (Endpoints 8: not shown). */
export type LookupRoutes = Partial<Record<'sources' | 'categories', Pick<Route<unknown, unknown>, 'method' | 'path'>>>

/** A lookup at another place; a POST carries its empty request as JSON. */
export const moveLookup = <I, O>(route: Route<I, O>, at: LookupRoutes[keyof LookupRoutes]): Route<I, O> =>
  at === undefined ? route : { ...route, ...at, encoding: at.method === 'GET' ? 'query' : 'json' }

/** The `Api` behind `send`, one line per operation. */
export const createApi = (send: SendRequest, lookups: LookupRoutes = {}): Api => ({
  retrieveReviews: send(routes.retrieveReviews),
  retrieveComments: send(routes.retrieveComments),
  retrieveCommentsByForm: send(routes.retrieveCommentsByForm),
  createVisitRecords: send(routes.createVisitRecords),
  syncLocations: send(routes.syncLocations),
  exportReviews: send(routes.exportReviews),
  exportDeletedReviews: send(routes.exportDeletedReviews),
  lookupSources: send(moveLookup(routes.lookupSources, lookups.sources)),
  lookupCategories: send(moveLookup(routes.lookupCategories, lookups.categories)),
  issueToken: send(routes.issueToken),
})
