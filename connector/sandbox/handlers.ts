import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import type { TaskEither } from 'fp-ts/TaskEither'
import { type Api, type Lookups, lookupAt } from '../api/api'
import type { ApiError } from '../api/error'
import { parseJson } from '../api/json-text'
import { type Answer, type Route, toDecodeError } from '../api/route'
import * as routes from '../api/routes'
import { badRequest } from './refusals'
import { isWellFormed } from './well-formed'

/** A request as it came in. */
export type Incoming = {
  readonly query: URLSearchParams
  readonly contentType: string
  readonly body: Buffer
}

/** An operation as the server sees it. */
export type Handler = Pick<Route<never, never>, 'name' | 'method' | 'path' | 'token'> & {
  readonly operation: keyof Api
  /** The value that stands in a request, before it is decoded. */
  readonly read: (incoming: Incoming) => E.Either<ApiError, unknown>
  readonly answer: (value: unknown) => Promise<E.Either<ApiError, Answer>>
}

/** A key that comes once is a text, one that comes again is a list. */
const fields = (pairs: URLSearchParams): unknown =>
  Object.fromEntries(
    [...new Set(pairs.keys())].map((key) => {
      const values = pairs.getAll(key)
      return [key, values.length === 1 ? values[0] : values]
    }),
  )

const json = ({ contentType, body }: Incoming): E.Either<ApiError, unknown> =>
  /^application\/json\b/i.test(contentType)
    ? pipe(
        // A value nested too deep to be walked is refused as one that cannot be parsed.
        E.tryCatch(
          () => {
            const value = parseJson(body.toString('utf8'))
            return { value, wellFormed: isWellFormed(value) }
          },
          () => badRequest('the body is not JSON'),
        ),
        E.filterOrElse(
          ({ wellFormed }) => wellFormed,
          () => badRequest('the body holds a text that is not Unicode'),
        ),
        E.map(({ value }) => value),
      )
    : E.left(badRequest('expected the header Content-Type: application/json'))

const readers: Readonly<Record<Route<never, never>['send'], Handler['read']>> = {
  json,
  query: ({ query }) => E.right(fields(query)),
  // The gateway turns a query into the form, which replaces the body (Endpoints 3).
  form: ({ query, body }) => E.right(fields(query.size > 0 ? query : new URLSearchParams(body.toString('utf8')))),
}

const handler =
  (operation: keyof Api) =>
  <I, O>(route: Route<I, O>, run: (input: I) => TaskEither<ApiError, O>): Handler => ({
    operation,
    name: route.name,
    method: route.method,
    path: route.path,
    token: route.token,
    read: readers[route.send],
    answer: async (value) => {
      const input = route.request.decode(value)
      if (E.isLeft(input)) {
        const { path, message } = toDecodeError(input.left)
        return E.left(badRequest(`${path}: ${message}`))
      }
      return E.map(route.response.encode)(await run(input.right)())
    },
  })

/** The inverse of `httpApi`, off the same routes. */
export const handlers = (api: Api, lookups: Lookups = {}): ReadonlyArray<Handler> => [
  handler('retrieveReviews')(routes.retrieveReviews, api.retrieveReviews),
  handler('retrieveComments')(routes.retrieveComments, api.retrieveComments),
  handler('retrieveCommentsByForm')(routes.retrieveCommentsByForm, api.retrieveCommentsByForm),
  handler('createVisitRecords')(routes.createVisitRecords, api.createVisitRecords),
  handler('syncLocations')(routes.syncLocations, api.syncLocations),
  handler('exportReviews')(routes.exportReviews, api.exportReviews),
  handler('exportDeletedReviews')(routes.exportDeletedReviews, api.exportDeletedReviews),
  handler('lookupSources')(lookupAt(routes.lookupSources, lookups.sources), api.lookupSources),
  handler('lookupCategories')(lookupAt(routes.lookupCategories, lookups.categories), api.lookupCategories),
  handler('issueToken')(routes.issueToken, api.issueToken),
]
