import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import type { Option } from 'fp-ts/Option'
import * as O from 'fp-ts/Option'
import type { TaskEither } from 'fp-ts/TaskEither'
import * as TE from 'fp-ts/TaskEither'
import { configFailure, transientFailure } from '../cdk/failure'
import type { Clock } from './clock'
import { formBody, jsonBody, type Request } from './encode'
import type { ApiError } from './error'
import { retryAfter } from './retry-after'
import type { Response } from './transport'

/** Where access tokens come from. */
export type TokenSource = {
  /** Whether `get` would answer without asking anybody. */
  readonly ready: () => boolean
  /** The token to sign a request with, now. */
  readonly get: TaskEither<ApiError, string>
  /** The service refused `token`: forgets it, and says whether another try would be signed with a fresh one. */
  readonly refused: (token: string, minAge: number) => boolean
}

const refusal = (message: string): ApiError => ({ _tag: 'Token', cause: configFailure(message) })

const fitsHeader = (token: string): boolean => /^[\x20-\x7e]+$/.test(token)

/** A token that somebody else issued and renews. */
export const staticToken = (token: string): TokenSource => ({
  ready: () => true,
  get: fitsHeader(token.trim())
    ? TE.right(token.trim())
    : TE.left(
        refusal('credentials.access_token is empty or holds characters that no header can carry. Copy it again.'),
      ),
  refused: () => false,
})

/** How a token is issued is not shown (Authentication 6), so all of it is configured. */
export type Exchange = {
  readonly application_id: string
  readonly application_secret: string
  readonly token_url: string
  readonly token_request?: {
    readonly encoding?: 'json' | 'form' | 'basic'
    readonly id_field?: string
    readonly secret_field?: string
    /** A name, or a path of names joined by dots. */
    readonly token_field?: string
    /** Holds seconds. A token without it is kept until it is refused. */
    readonly expires_in_field?: string
  }
}

type Held = { readonly token: string; readonly since: number; readonly lifetime: number }

const field = (path: string, value: unknown): unknown =>
  typeof value !== 'object' || value === null
    ? undefined
    : path in value
      ? (value as Record<string, unknown>)[path]
      : path.includes('.')
        ? field(path.slice(path.indexOf('.') + 1), field(path.slice(0, path.indexOf('.')), value))
        : undefined

const parse = (body: Buffer): unknown => {
  try {
    return JSON.parse(body.toString('utf8'))
  } catch {
    return undefined
  }
}

const request = ({ application_id, application_secret, token_url, token_request = {} }: Exchange): Request => {
  const { encoding = 'json', id_field = 'applicationId', secret_field = 'applicationSecret' } = token_request
  const target = { method: 'POST' as const, url: new URL(token_url), idempotent: true }
  const pair = { [id_field]: application_id, [secret_field]: application_secret }
  switch (encoding) {
    case 'json':
      return { ...target, ...jsonBody(pair) }
    case 'form':
      return { ...target, ...formBody(pair) }
    case 'basic': {
      const basic = Buffer.from(`${application_id}:${application_secret}`).toString('base64')
      const { headers, body } = formBody({})
      return { ...target, headers: { ...headers, Authorization: `Basic ${basic}` }, body }
    }
  }
}

/** The token in an answer of `token_url`, or who has to act. */
const read =
  ({ token_url, token_request = {} }: Exchange, clock: Pick<Clock, 'now' | 'ticks'>) =>
  ({ status, headers, body }: Response): E.Either<ApiError, Held> => {
    const { token_field = 'accessToken', expires_in_field = 'expiresIn' } = token_request
    const { origin } = new URL(token_url)
    if (status === 408 || status === 429 || status >= 500) {
      const wait = retryAfter(status, headers, clock.now())
      return E.left({
        _tag: 'Token',
        cause: transientFailure(`credentials.token_url (${origin}) answered ${status}. Run again later.`),
        ...(wait === undefined ? {} : { retryAfter: wait }),
      })
    }
    if (status >= 300 && status < 400)
      return E.left(refusal(`credentials.token_url redirects (${status}). Configure the address it redirects to.`))
    if (status >= 400)
      return E.left(
        refusal(
          `credentials.token_url (${origin}) refused the application (${status}). Check credentials.application_id, credentials.application_secret, credentials.token_url and credentials.token_request.`,
        ),
      )
    const answer = parse(body)
    const token = field(token_field, answer)
    if (typeof token !== 'string' || !fitsHeader(token.trim()))
      return E.left(
        refusal(
          `credentials.token_url (${origin}) answered ${status} without a token at "${token_field}". Check credentials.token_url and credentials.token_request.token_field.`,
        ),
      )
    const seconds = Number(field(expires_in_field, answer))
    const lifetime = seconds > 0 ? seconds * 1000 : Number.POSITIVE_INFINITY
    return E.right({ token: token.trim(), since: clock.ticks(), lifetime })
  }

/**
 * Tokens in exchange for the application's id and secret: kept while they live by a clock that only runs forward, renewed
 * a little before they expire, by one exchange at a time however many ask.
 */
export const exchangedToken = (
  exchange: Exchange,
  send: (request: Request) => TaskEither<ApiError, Response>,
  clock: Pick<Clock, 'now' | 'ticks'>,
): TokenSource => {
  let held: Option<Held> = O.none
  let underWay: Promise<E.Either<ApiError, string>> | undefined

  const living = (share: number): Option<string> =>
    pipe(
      held,
      O.filter(({ since, lifetime }) => clock.ticks() - since < lifetime - Math.min(60_000, lifetime * share)),
      O.map(({ token }) => token),
    )

  const renew: TaskEither<ApiError, string> = pipe(
    TE.Do,
    TE.chain(() => send(request(exchange))),
    TE.mapLeft(
      (error): ApiError =>
        error._tag === 'Network'
          ? {
              _tag: 'Token',
              cause: transientFailure(
                `credentials.token_url (${new URL(exchange.token_url).origin}) did not answer (${error.code}). Run again later.`,
                error.message,
              ),
            }
          : error,
    ),
    TE.chainEitherK(read(exchange, clock)),
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
    ready: () => O.isSome(living(0.25)),
    get: () =>
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
    refused: (token, minAge) => {
      if (O.isNone(held) || held.value.token !== token) return true
      if (clock.ticks() - held.value.since < minAge) return false
      held = O.none
      return true
    },
  }
}
