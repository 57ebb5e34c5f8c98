import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import type { Option } from 'fp-ts/Option'
import * as O from 'fp-ts/Option'
import type { TaskEither } from 'fp-ts/TaskEither'
import * as TE from 'fp-ts/TaskEither'
import type { ApiError } from '../error'
import type { Clock } from './clock'
import type { HttpRequest } from './request'
import {
  type AccessToken,
  decodeToken,
  encodeTokenRequest,
  isHeaderValue,
  type TokenExchange,
  tokenConfigError,
  toTokenError,
} from './token-exchange'
import type { HttpResponse } from './transport'

/** Where access tokens come from. */
export type TokenSource = {
  /** Whether `get` would answer without asking anybody. */
  readonly isReady: () => boolean
  /** The token to sign a request with, now. */
  readonly getToken: TaskEither<ApiError, string>
  /** The service refused `token`: forgets it, and says whether another try would be signed with a fresh one. */
  readonly invalidate: (token: string, minAge: number) => boolean
}

/** A token that somebody else issued and renews. */
export const createStaticTokenSource = (token: string): TokenSource => ({
  isReady: () => true,
  getToken: isHeaderValue(token.trim())
    ? TE.right(token.trim())
    : TE.left(
        tokenConfigError(
          'credentials.access_token is empty or holds characters that no header can carry. Copy it again.',
        ),
      ),
  invalidate: () => false,
})

/**
 * Tokens in exchange for the application's id and secret: kept while they live by a clock that only runs forward, renewed
 * a little before they expire, by one exchange at a time however many ask.
 */
export const createExchangeTokenSource = (
  exchange: TokenExchange,
  send: (request: HttpRequest) => TaskEither<ApiError, HttpResponse>,
  clock: Pick<Clock, 'now' | 'ticks'>,
): TokenSource => {
  let held: Option<AccessToken> = O.none
  let underWay: Promise<E.Either<ApiError, string>> | undefined

  const living = (share: number): Option<string> =>
    pipe(
      held,
      O.filter(({ issuedAt, lifetime }) => clock.ticks() - issuedAt < lifetime - Math.min(60_000, lifetime * share)),
      O.map(({ token }) => token),
    )

  const renew: TaskEither<ApiError, string> = pipe(
    TE.Do,
    TE.chain(() => send(encodeTokenRequest(exchange))),
    TE.mapLeft((error) => (error._tag === 'Network' ? toTokenError(exchange, error) : error)),
    TE.chainEitherK(decodeToken(exchange, clock)),
    TE.map((fresh) => {
      held = O.some(fresh)
      return fresh.token
    }),
    TE.orElse((error) =>
      pipe(
        living(0),
        O.match(() => TE.left(error), TE.right),
      ),
    ),
  )

  return {
    isReady: () => O.isSome(living(0.25)),
    getToken: () =>
      pipe(
        living(0.25),
        O.match(
          () => {
            underWay ??= renew().finally(() => {
              underWay = undefined
            })
            return underWay
          },
          (token) => Promise.resolve(E.right(token)),
        ),
      ),
    invalidate: (token, minAge) => {
      if (O.isNone(held) || held.value.token !== token) return true
      if (clock.ticks() - held.value.issuedAt < minAge) return false
      held = O.none
      return true
    },
  }
}
