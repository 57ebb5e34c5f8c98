import * as E from 'fp-ts/Either'
import type { TaskEither } from 'fp-ts/TaskEither'
import type { Api } from '../api/api'
import type { ApiError } from '../api/error'
import { type Answer, type Route, toDecodeError } from '../api/route'
import * as routes from '../api/routes'
import { badRequest } from './refusals'

/** An operation as the server sees it: where it is asked for, and what it does with a decoded body. */
export type Handler = Pick<Route<never, never>, 'name' | 'method' | 'path' | 'token'> & {
  readonly answer: (body: unknown) => Promise<E.Either<ApiError, Answer>>
}

const handler = <I, O>(route: Route<I, O>, operation: (input: I) => TaskEither<ApiError, O>): Handler => ({
  name: route.name,
  method: route.method,
  path: route.path,
  token: route.token,
  answer: async (body) => {
    const input = route.request.decode(body)
    if (E.isLeft(input)) {
      const { path, message } = toDecodeError(input.left)
      return E.left(badRequest(`${path}: ${message}`))
    }
    return E.map(route.response.encode)(await operation(input.right)())
  },
})

/** The inverse of `httpApi`, off the same routes. */
export const handlers = (api: Api): ReadonlyArray<Handler> => [
  handler(routes.exportReviews, api.exportReviews),
  handler(routes.exportDeletedReviews, api.exportDeletedReviews),
]
