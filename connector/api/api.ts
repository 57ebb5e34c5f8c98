import type { TaskEither } from 'fp-ts/TaskEither'
import type { ApiError } from './error'
import type { Route, SendRequest } from './route'
import * as routes from './routes'

type Input<R> = R extends Route<infer I, infer _> ? I : never
type Output<R> = R extends Route<infer _, infer O> ? O : never

/** The service: one function per operation. The HTTP client is one, the sandbox another. */
export type Api = {
  readonly [K in keyof typeof routes]: (
    input: Input<(typeof routes)[K]>,
  ) => TaskEither<ApiError, Output<(typeof routes)[K]>>
}

/** Method and path of the lookups where they differ from those in routes.ts; the service's specification gives neither. */
export type LookupRoutes = Partial<
  Record<'sources' | 'categories' | 'locations', Pick<Route<unknown, unknown>, 'method' | 'path'>>
>

/** A lookup with another method and path; a POST sends its empty input as JSON. */
export const moveLookup = <I, O>(
  route: Route<I, O>,
  target: Pick<Route<unknown, unknown>, 'method' | 'path'> | undefined,
): Route<I, O> =>
  target === undefined ? route : { ...route, ...target, encoding: target.method === 'GET' ? 'query' : 'json' }

/** The `Api` whose requests go through `send`. */
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
  lookupLocations: send(moveLookup(routes.lookupLocations, lookups.locations)),
  issueToken: send(routes.issueToken),
})
