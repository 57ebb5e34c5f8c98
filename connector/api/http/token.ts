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
  /** Whether `getToken` gives a token without a request. */
  readonly isReady: () => boolean
  /** The token that a request carries now. */
  readonly getToken: TaskEither<ApiError, string>
  /**
   * The service refused `token`: forgets it if it is at least `minAge` milliseconds old; true where `getToken` now gives
   * another one.
   */
  readonly invalidate: (token: string, minAge: number) => boolean
}

/** The configured token, which the user renews. */
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

/** A token is renewed when this share of its lifetime, and at most a minute, is left. */
const renewalReserve = 0.25

/**
 * Tokens in exchange for the application's id and secret. A token is used while it is valid by a clock that only runs forward and
 * is renewed a little before it expires, with one exchange at a time for all requests that wait for it.
 */
export const createExchangeTokenSource = (
  exchange: TokenExchange,
  send: (request: HttpRequest) => TaskEither<ApiError, HttpResponse>,
  clock: Pick<Clock, 'now' | 'ticks'>,
): TokenSource => {
  let current: Option<AccessToken> = O.none
  let renewal: Promise<E.Either<ApiError, string>> | undefined

  /** The current token while more than the share `reserve` of its lifetime, or more than a minute, is left. */
  const validToken = (reserve: number): Option<string> =>
    pipe(
      current,
      O.filter(({ issuedAt, lifetime }) => clock.ticks() - issuedAt < lifetime - Math.min(60_000, lifetime * reserve)),
      O.map(({ token }) => token),
    )

  const renew: TaskEither<ApiError, string> = pipe(
    TE.Do,
    TE.flatMap(() => send(encodeTokenRequest(exchange))),
    TE.mapLeft((error) => (error._tag === 'Network' ? toTokenError(exchange, error) : error)),
    TE.flatMapEither(decodeToken(exchange, clock)),
    TE.map((issued) => {
      current = O.some(issued)
      return issued.token
    }),
    TE.orElse((error) =>
      pipe(
        validToken(0),
        O.match(() => TE.left(error), TE.right),
      ),
    ),
  )

  return {
    isReady: () => O.isSome(validToken(renewalReserve)),
    getToken: () =>
      pipe(
        validToken(renewalReserve),
        O.match(
          () => {
            renewal ??= renew().finally(() => {
              renewal = undefined
            })
            return renewal
          },
          (token) => Promise.resolve(E.right(token)),
        ),
      ),
    invalidate: (token, minAge) => {
      if (O.isNone(current) || current.value.token !== token) return true
      if (clock.ticks() - current.value.issuedAt < minAge) return false
      current = O.none
      return true
    },
  }
}
