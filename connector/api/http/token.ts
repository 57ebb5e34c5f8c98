import * as E from 'fp-ts/Either'
import { identity, pipe } from 'fp-ts/function'
import type { Option } from 'fp-ts/Option'
import * as O from 'fp-ts/Option'
import type { TaskEither } from 'fp-ts/TaskEither'
import * as TE from 'fp-ts/TaskEither'
import type { ApiError } from '../error'
import type { Clock } from './clock'
import type { Throttle } from './rate-limit'
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
  /** A token that is valid for a while; where there is none, a new one, whose exchange waits for its turn as every request does. */
  readonly getToken: TaskEither<ApiError, string>
  /** The token that a request sent now can carry; none if it has expired. */
  readonly currentToken: () => Option<string>
  /** A new token, exchanged at once: for a request whose turn has come. */
  readonly renewNow: TaskEither<ApiError, string>
  /**
   * The service refused `token`: forgets it if it is at least `minAge` milliseconds old; true where `getToken` now gives
   * another one.
   */
  readonly invalidate: (token: string, minAge: number) => boolean
}

/** The configured token, which the user renews. */
export const createStaticTokenSource = (token: string): TokenSource => {
  const getToken: TokenSource['getToken'] = isHeaderValue(token.trim())
    ? TE.right(token.trim())
    : TE.left(
        tokenConfigError(
          'credentials.access_token is empty or holds characters that no header can carry. Copy it again.',
        ),
      )
  return {
    isReady: () => true,
    getToken,
    currentToken: () => O.some(token.trim()),
    renewNow: getToken,
    invalidate: () => false,
  }
}

/** A token is renewed when a quarter of its lifetime, and at most a minute, is left. */
const renewalReserve = (lifetime: number): number => Math.min(60_000, lifetime / 4)
const noReserve = (): number => 0

/**
 * Tokens in exchange for the application's id and secret. A token is used while it is valid by a clock that only runs forward and
 * is renewed a little before it expires, with one exchange at a time for all requests that wait for it. `waitForTurn` runs an
 * exchange when the rate limit allows it.
 */
export const createExchangeTokenSource = (
  exchange: TokenExchange,
  send: (request: HttpRequest) => TaskEither<ApiError, HttpResponse>,
  clock: Pick<Clock, 'now' | 'ticks'>,
  waitForTurn: Throttle['run'] = identity,
): TokenSource => {
  let current: Option<AccessToken> = O.none
  let renewal: Promise<E.Either<ApiError, string>> | undefined

  /** The current token while more than `reserve` of its lifetime is left; milliseconds. */
  const validToken = (reserve: (lifetime: number) => number): Option<string> =>
    pipe(
      current,
      O.filter(({ issuedAt, lifetime }) => clock.ticks() - issuedAt < lifetime - reserve(lifetime)),
      O.map(({ token }) => token),
    )

  const renewNow: TaskEither<ApiError, string> = pipe(
    TE.Do,
    TE.flatMap(() => send(encodeTokenRequest(exchange))),
    TE.mapLeft((error) => (error._tag === 'Network' ? toTokenError(exchange, error) : error)),
    TE.flatMapEither(decodeToken(exchange, clock)),
    TE.map((issued) => {
      current = O.some(issued)
      return issued.token
    }),
  )
  const renew: TaskEither<ApiError, string> = pipe(
    waitForTurn(renewNow),
    TE.orElse((error) =>
      pipe(
        validToken(noReserve),
        O.match(() => TE.left(error), TE.right),
      ),
    ),
  )

  return {
    isReady: () => O.isSome(validToken(renewalReserve)),
    currentToken: () => validToken(noReserve),
    renewNow,
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
