import * as E from 'fp-ts/Either'
import { identity, pipe } from 'fp-ts/function'
import type { TaskEither } from 'fp-ts/TaskEither'
import * as TE from 'fp-ts/TaskEither'
import type { ApiError } from '../error'
import type { Clock, Throttle } from './rate-limit'
import type { HttpRequest } from './request'
import {
  type AccessToken,
  decodeToken,
  encodeTokenRequest,
  isHeaderValue,
  type TokenExchange,
  type TokenForm,
  tokenConfigError,
  tokenForm,
  toTokenError,
} from './token-exchange'
import type { HttpResponse } from './transport'

/** Where access tokens come from. */
export type TokenSource = {
  /** A valid token. If there is none, gets a new one; the exchange waits for its turn like any request. */
  readonly getToken: TaskEither<ApiError, string>
  /** The token for a request that is sent now; undefined if it has expired. */
  readonly validToken: () => string | undefined
  /**
   * The service refused `token`. Drops it if it is at least `minAge` milliseconds old. Returns true if `getToken` will
   * now give a different token.
   */
  readonly refuse: (token: string, minAge: number) => boolean
}

/** A configured token, which the user renews. */
export const createStaticTokenSource = (token: string): TokenSource => ({
  getToken: isHeaderValue(token.trim())
    ? TE.right(token.trim())
    : TE.left(
        tokenConfigError(
          'credentials.access_token is empty or holds characters that no header can carry. Copy it again.',
        ),
      ),
  validToken: () => token.trim(),
  refuse: () => false,
})

/** How long before its expiry a token is renewed, in milliseconds: 5 minutes, but at most a quarter of its lifetime. */
const renewalReserve = (lifetime: number): number => Math.min(300_000, lifetime / 4)

/**
 * The assumed lifetime of a token without a known expiry, as in published deployments. It is renewed after 25 minutes.
 */
const unknownLifetime = 1_800_000

/** How a token was issued, and how long it is used, in milliseconds. */
export type TokenReport = {
  readonly form: TokenForm
  /** The expiry from the answer; undefined if there is none. */
  readonly expiry: unknown
  /** Undefined if unknown. */
  readonly lifetime: number | undefined
  /** The time after which the token is renewed. */
  readonly renewal: number
}

type ExchangeOptions = {
  /** Receives a report about each issued token, without the token itself. */
  readonly onToken?: ((report: TokenReport) => void) | undefined
  /** Runs an exchange when the rate limit allows it. */
  readonly waitForTurn?: Throttle['run']
  /** Receives what the user should know about the exchange. Each message is sent once. */
  readonly notify?: ((message: string) => void) | undefined
}

type Send = (request: HttpRequest) => TaskEither<ApiError, HttpResponse>

const requestToken = (
  exchange: TokenExchange,
  send: Send,
  clock: Pick<Clock, 'now' | 'ticks'>,
): TaskEither<ApiError, AccessToken> =>
  pipe(
    TE.fromIO(() => encodeTokenRequest(exchange)),
    TE.flatMap(send),
    TE.mapLeft((error) =>
      error._tag === 'Network' || error._tag === 'Encoding' ? toTokenError(exchange, error) : error,
    ),
    TE.flatMapEither(decodeToken(exchange, clock)),
  )

const reportToken = (exchange: TokenExchange, { expiry, lifetime }: AccessToken): TokenReport => {
  const used = lifetime ?? unknownLifetime
  return { form: tokenForm(exchange), expiry, lifetime, renewal: used - renewalReserve(used) }
}

const isStrangeExpiry = ({ expiry, lifetime }: AccessToken): boolean => lifetime === undefined && expiry !== undefined

const describeStrangeExpiry = ({ token_request = {} }: TokenExchange): string =>
  'The expiry of the token at credentials.token_request.expires_in_field ' +
  `("${token_request.expires_in_field ?? 'expiresIn'}") is not within a ` +
  'day from now, so the token is renewed after 25 minutes.'

/**
 * Exchanges the application's id and secret for tokens. A token's validity is measured by a monotonic clock. It is
 * renewed ahead of its expiry, with one exchange at a time for all waiting requests. If the issuer is down, the token
 * is used until it expires.
 */
export const createExchangeTokenSource = (
  exchange: TokenExchange,
  send: Send,
  clock: Pick<Clock, 'now' | 'ticks'>,
  { waitForTurn = identity, notify = () => undefined, onToken }: ExchangeOptions = {},
): TokenSource => {
  let current: AccessToken | undefined
  let renewal: Promise<E.Either<ApiError, string>> | undefined
  let hasNotified = false

  /** The current token, if more than `reserve` of its lifetime is left, in milliseconds. */
  const validFor = (reserve: (lifetime: number) => number): string | undefined => {
    if (current === undefined) return undefined
    const { token, issuedAt, lifetime = unknownLifetime } = current
    return clock.ticks() - issuedAt < lifetime - reserve(lifetime) ? token : undefined
  }
  const validToken = () => validFor(() => 0)

  const keepToken = (issued: AccessToken): string => {
    if (isStrangeExpiry(issued) && !hasNotified) {
      hasNotified = true
      notify(describeStrangeExpiry(exchange))
    }
    current = issued
    onToken?.(reportToken(exchange, issued))
    return issued.token
  }

  const renew: TaskEither<ApiError, string> = pipe(
    waitForTurn(requestToken(exchange, send, clock)),
    TE.map(keepToken),
    TE.orElse((error) => TE.fromEither(E.fromNullable(error)(validToken()))),
  )

  return {
    validToken,
    getToken: () => {
      const token = validFor(renewalReserve)
      if (token !== undefined) return Promise.resolve(E.right(token))
      renewal ??= renew().finally(() => {
        renewal = undefined
      })
      return renewal
    },
    refuse: (token, minAge) => {
      if (current?.token !== token) return true
      const age = clock.ticks() - current.issuedAt
      if (age < minAge) return false
      current = undefined
      return true
    },
  }
}
