import * as E from 'fp-ts/Either'
import { identity, pipe } from 'fp-ts/function'
import type { Option } from 'fp-ts/Option'
import * as O from 'fp-ts/Option'
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
  mayRefuseForm,
  type TokenExchange,
  type TokenForm,
  tokenConfigError,
  tokenForms,
  toTokenError,
} from './token-exchange'
import type { HttpResponse } from './transport'

/** Where access tokens come from. */
export type TokenSource = {
  /**
   * A token that is valid for a while; where there is none, a new one, whose exchange waits for its turn as every
   * request does.
   */
  readonly getToken: TaskEither<ApiError, string>
  /** The token that a request sent now can carry; none if it has expired. */
  readonly currentToken: () => Option<string>
  /** A new token, exchanged at once: for a request whose turn has come. */
  readonly renewNow: TaskEither<ApiError, string>
  /**
   * The service refused `token`: forgets it if it is at least `minAge` milliseconds old; true where `getToken` now
   * gives another one.
   */
  readonly invalidate: (token: string, minAge: number) => boolean
  /** Whether the last token was issued so shortly ago that the service may not know it everywhere yet. */
  readonly isNew: () => boolean
  /** The service's clock as a response shows it, milliseconds since 1970: the age of a token counts by it, too. */
  readonly noteServiceTime: (time: number) => void
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
    getToken,
    currentToken: () => O.some(token.trim()),
    renewNow: getToken,
    invalidate: () => false,
    isNew: () => false,
    noteServiceTime: () => undefined,
  }
}

/** How long before its expiry a token is renewed: 5 minutes, but at most a quarter of its lifetime; milliseconds. */
const renewalReserve = (lifetime: number): number => Math.min(300_000, lifetime / 4)
const noReserve = (): number => 0

/**
 * The lifetime of a token whose expiry is unknown, as published deployments have it: it is renewed after 25 minutes.
 */
const unknownLifetime = 1_800_000

/**
 * A service of several hosts may know a token some hundred milliseconds after its issue only; this allows for slow
 * answers too.
 */
const newTokenAge = 10_000

/** A token that replaced a new one is not replaced earlier: the next one would be as new. */
const minReplacedAge = 1_500

/** How a token was issued, and how long it is used; milliseconds. */
export type TokenReport = {
  readonly form: TokenForm
  /** The expiry as the answer gives it; undefined where it gives none. */
  readonly expiry: unknown
  /** Undefined where it is not known. */
  readonly lifetime: number | undefined
  /** After how long the token is renewed. */
  readonly renewal: number
}

type ExchangeOptions = {
  /** Receives each token that is issued, without the token itself. */
  readonly onToken?: ((report: TokenReport) => void) | undefined
  /** Runs an exchange when the rate limit allows it. */
  readonly waitForTurn?: Throttle['run']
  /** Receives what the user should know about the exchange; each message once. */
  readonly notify?: ((message: string) => void) | undefined
}

/**
 * Tokens in exchange for the application's id and secret. A token is used while it is valid by a clock that only runs
 * forward and is renewed ahead of its expiry, with one exchange at a time for all requests that wait for it.
 */
export const createExchangeTokenSource = (
  exchange: TokenExchange,
  send: (request: HttpRequest) => TaskEither<ApiError, HttpResponse>,
  clock: Pick<Clock, 'now' | 'ticks'>,
  { waitForTurn = identity, notify = () => undefined, onToken }: ExchangeOptions = {},
): TokenSource => {
  const { token_request = {} } = exchange
  let forms = tokenForms(token_request)
  let current: Option<AccessToken & { readonly lifetime: number }> = O.none
  let renewal: Promise<E.Either<ApiError, string>> | undefined
  let serviceTime: number | undefined
  let lastIssuedAt = Number.NEGATIVE_INFINITY
  let hasReplacedNew = false
  let maxLifetime = Number.POSITIVE_INFINITY
  const told = new Set<string>()
  const tellOnce = (message: string): void => {
    if (!told.has(message)) notify(message)
    told.add(message)
  }

  /** The current token while more than `reserve` of its lifetime is left; milliseconds. */
  const validToken = (reserve: (lifetime: number) => number): Option<string> =>
    pipe(
      current,
      O.filter(({ issuedAt, lifetime }) => clock.ticks() - issuedAt < lifetime - reserve(lifetime)),
      O.map(({ token }) => token),
    )

  /** The age of a token by the forward clock or the service's, whichever shows more. */
  const tokenAge = ({ issuedAt, servedAt }: AccessToken): number =>
    Math.max(clock.ticks() - issuedAt, servedAt === undefined || serviceTime === undefined ? 0 : serviceTime - servedAt)

  const keepToken = (issued: AccessToken, form: TokenForm): string => {
    if (issued.lifetime === undefined && issued.expiry !== undefined)
      tellOnce(
        'The expiry of the token at credentials.token_request.expires_in_field ' +
          `("${token_request.expires_in_field ?? 'expiresIn'}") is not within a ` +
          'day from now, so the token is renewed after 25 minutes.',
      )
    const lifetime = Math.min(issued.lifetime ?? unknownLifetime, maxLifetime)
    current = O.some({ ...issued, lifetime })
    lastIssuedAt = issued.issuedAt
    onToken?.({
      form,
      expiry: issued.expiry,
      lifetime: issued.lifetime,
      renewal: lifetime - renewalReserve(lifetime),
    })
    return issued.token
  }

  const requestToken = (form: TokenForm): TaskEither<ApiError, string> =>
    pipe(
      send(encodeTokenRequest(exchange, form)),
      TE.mapLeft((error) =>
        error._tag === 'Network' || error._tag === 'Encoding' ? toTokenError(exchange, error) : error,
      ),
      TE.flatMapEither(decodeToken(exchange, clock)),
      TE.map((issued) => {
        forms = [form]
        return keepToken(issued, form)
      }),
    )

  /** After a refusal of the first form: a token for the form of former versions, or the refusal. */
  const tryFormerForm =
    (turn: Throttle['run']) =>
    (refusal: ApiError): TaskEither<ApiError, string> => {
      const former = forms[1]
      const isOfForm = refusal._tag === 'Token' && refusal.status !== undefined && mayRefuseForm(refusal.status)
      if (former === undefined || !isOfForm) return TE.left(refusal)
      return pipe(
        turn(requestToken(former)),
        TE.mapLeft(() => refusal),
        TE.tapIO(() => () => {
          tellOnce(
            'The service issues tokens for the form that was the default before ' +
              `0.2. Set credentials.token_request to ${JSON.stringify(former)}: ` +
              'until then, each run tries the present default first.',
          )
        }),
      )
    }

  /** A token for the first form that the service accepts. Each request runs in `turn`. */
  const exchangeToken = (turn: Throttle['run']): TaskEither<ApiError, string> =>
    pipe(
      turn(() => requestToken(forms[0] as TokenForm)()),
      TE.orElse(tryFormerForm(turn)),
    )

  const renew: TaskEither<ApiError, string> = pipe(
    exchangeToken(waitForTurn),
    TE.orElse((error) =>
      pipe(
        validToken(noReserve),
        O.match(() => TE.left(error), TE.right),
      ),
    ),
  )

  return {
    currentToken: () => validToken(noReserve),
    renewNow: exchangeToken(identity),
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
      const age = tokenAge(current.value)
      if (age < minAge) return false
      if (hasReplacedNew && age < minReplacedAge) return false
      hasReplacedNew = age < newTokenAge
      // Its lifetime was shorter than the service said, or than its time without a zone seemed to say.
      if (age >= 60_000 && age < current.value.lifetime) maxLifetime = unknownLifetime
      current = O.none
      return true
    },
    isNew: () => clock.ticks() - lastIssuedAt < newTokenAge,
    noteServiceTime: (time) => {
      serviceTime = Math.max(serviceTime ?? time, time)
    },
  }
}
