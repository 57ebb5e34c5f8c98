import * as E from 'fp-ts/Either'
import { configFailure, defined, transientFailure } from '../../cdk'
import {
  type ApiError,
  applicationError,
  describeEncoding,
  isSuccessStatus,
  maskCode,
  networkFailure,
  outageKind,
} from '../error'
import { issueToken } from '../routes'
import type { Clock } from './rate-limit'
import { encodeForm, encodeJson, type HttpRequest } from './request'
import { isStrayRedirect, isTemporaryRedirect } from './retry'
import { parseHeaderDate, parseOutageWait, parseRetryAfter } from './retry-after'
import { parseLifetime } from './token-expiry'
import type { HttpResponse } from './transport'

/** There will be no token until the config is corrected. `status` is that of the response. */
export const tokenConfigError = (message: string, status?: number): ApiError => ({
  _tag: 'Token',
  cause: configFailure(message),
  ...defined({ status }),
})

/** True if a header can carry the token: printable ASCII and not empty. */
export const isHeaderValue = (token: string): boolean => /^[\x20-\x7e]+$/.test(token)

/** How a token is issued. All of it is configured, because the service's specification does not describe it. */
export type TokenExchange = {
  readonly application_id: string
  readonly application_secret: string
  /** A complete URL. */
  readonly token_url: string
  readonly token_request?: {
    readonly encoding?: 'json' | 'form' | 'basic'
    readonly id_field?: string
    readonly secret_field?: string
    /** The name of the field, or several names joined by dots. */
    readonly token_field?: string
    /** The field with the expiry time, or with the lifetime in seconds. */
    readonly expires_in_field?: string
  }
}

/** The URL for a configured `token_url`. A path, like the default, is appended to that of base_url. */
export const resolveTokenUrl = (base: URL, tokenUrl = issueToken.path): string => {
  if (!tokenUrl.startsWith('/')) return tokenUrl
  const [path = '', query = ''] = tokenUrl.split(/(?=\?)/)
  const url = new URL(base)
  url.pathname = `${base.pathname.replace(/\/+$/, '')}${path}`
  url.search = query
  return url.href
}

/** How an application's id and secret are sent. */
export type TokenForm = {
  readonly encoding: 'json' | 'form' | 'basic'
  readonly id_field: string
  readonly secret_field: string
}

/** The configured form, with the defaults of published deployments. */
export const tokenForm = ({ token_request = {} }: TokenExchange): TokenForm => ({
  encoding: token_request.encoding ?? 'form',
  id_field: token_request.id_field ?? 'appId',
  secret_field: token_request.secret_field ?? 'appSecret',
})

/** Times are in milliseconds; `issuedAt` is in ticks of the clock. */
export type AccessToken = {
  readonly token: string
  readonly issuedAt: number
  /** The expiry from the answer; undefined if there is none. */
  readonly expiry: unknown
  /** Undefined if the expiry makes no sense. */
  readonly lifetime: number | undefined
}

const memberAt = (path: string, value: unknown): unknown =>
  typeof value !== 'object' || value === null
    ? undefined
    : path in value
      ? (value as Record<string, unknown>)[path]
      : path.includes('.')
        ? memberAt(path.slice(path.indexOf('.') + 1), memberAt(path.slice(0, path.indexOf('.')), value))
        : undefined

const parseTokenBody = (body: Buffer): unknown => {
  try {
    return JSON.parse(body.toString('utf8'))
  } catch {
    return undefined
  }
}

/** The request for a token. */
export const encodeTokenRequest = (exchange: TokenExchange): HttpRequest => {
  const { application_id, application_secret, token_url } = exchange
  const { encoding, id_field, secret_field } = tokenForm(exchange)
  const target = { method: 'POST' as const, url: new URL(token_url) }
  const credentials = { [id_field]: application_id, [secret_field]: application_secret }
  switch (encoding) {
    case 'json':
      return { ...target, ...encodeJson(credentials) }
    case 'form':
      return { ...target, ...encodeForm(credentials) }
    case 'basic': {
      const basic = Buffer.from(`${application_id}:${application_secret}`).toString('base64')
      const { headers, body } = encodeForm({})
      return { ...target, headers: { ...headers, Authorization: `Basic ${basic}` }, body }
    }
  }
}

/** The error of an exchange without a readable response. An untrusted certificate is a config error. */
export const toTokenError = (
  { token_url }: TokenExchange,
  error: ApiError & { readonly _tag: 'Network' | 'Encoding' },
): ApiError => {
  const where = `credentials.token_url (${new URL(token_url).origin})`
  if (error._tag === 'Encoding') return tokenConfigError(`The answer of ${where} is ${describeEncoding(error)}`)
  const cause = networkFailure({ name: where, keys: 'base_url and credentials.token_url' }, error)
  return { _tag: 'Token', cause, ...(cause._tag === 'Config' ? {} : { code: error.code }) }
}

/** The token issuer's name for messages, with the proxy that may have answered instead. */
const describeIssuer = ({ token_url }: TokenExchange, forwarder: string | undefined): string => {
  const { origin } = new URL(token_url)
  return forwarder === undefined ? origin : `${origin}, or ${forwarder} before it`
}

const refusal = (issuer: string, status: number, outcome = String(status)): ApiError =>
  tokenConfigError(
    `credentials.token_url (${issuer}) refused the application (${outcome}). Check credentials.application_id, ` +
      'credentials.application_secret, credentials.token_url and credentials.token_request.',
    status,
  )

const redirection = (issuer: string, { status, forwarder }: HttpResponse): ApiError => ({
  ...tokenConfigError(
    forwarder === undefined
      ? `credentials.token_url redirects (${status}). Configure the address it redirects to.`
      : `credentials.token_url (${issuer}) redirects (${status}). Find out which; a proxy may want a log-in first.`,
    status,
  ),
  ...defined({ isUnreadable: isTemporaryRedirect(status) || undefined }),
})

/** The error for the status of a response; undefined for a success. */
const statusError = (issuer: string, response: HttpResponse, now: number): ApiError | undefined => {
  const { status, headers } = response
  if (status === 408 || status === 429 || status >= 500 || isStrayRedirect(status, headers)) {
    return {
      _tag: 'Token',
      status,
      cause: transientFailure(`credentials.token_url (${issuer}) answered ${status}. Run again later.`),
      ...defined({ retryAfter: parseRetryAfter(status, headers, now) }),
    }
  }
  if (status >= 300 && status < 400) return redirection(issuer, response)
  if (status === 404)
    return tokenConfigError(
      `No tokens are issued at credentials.token_url (${issuer} answered 404). Check base_url ` +
        `and credentials.token_url; without one, it is ${issueToken.path} below base_url.`,
      status,
    )
  return status >= 400 ? refusal(issuer, status) : undefined
}

/** The error in the member `status` of a body; undefined for a success or if there is no status. */
const outcomeError = (
  issuer: string,
  { status, headers }: HttpResponse,
  outcome: unknown,
  now: number,
): ApiError | undefined => {
  if (outcome === undefined || isSuccessStatus(outcome)) return undefined
  const answered = `${status}, status.code ${maskCode(String(memberAt('code', outcome) ?? 'missing'))}`
  const kind = outageKind(applicationError(outcome))
  if (kind === undefined) return refusal(issuer, status, answered)
  return {
    _tag: 'Token',
    cause: transientFailure(`credentials.token_url (${issuer}) answered ${answered}. Run again later.`),
    ...defined({ retryAfter: parseOutageWait(kind, headers, now) }),
  }
}

/** Reads the token from a response of `token_url`. The error says who must act. */
export const decodeToken =
  (exchange: TokenExchange, clock: Pick<Clock, 'now' | 'ticks'>) =>
  (response: HttpResponse): E.Either<ApiError, AccessToken> => {
    const { token_field = 'accessToken', expires_in_field = 'expiresIn' } = exchange.token_request ?? {}
    const { status, headers, body, forwarder } = response
    const issuer = describeIssuer(exchange, forwarder)
    const refused = statusError(issuer, response, clock.now())
    if (refused !== undefined) return E.left(refused)
    const value = parseTokenBody(body)
    const failed = outcomeError(issuer, response, memberAt('status', value), clock.now())
    if (failed !== undefined) return E.left(failed)
    const token = memberAt(token_field, value)
    if (typeof token !== 'string' || !isHeaderValue(token.trim()))
      return E.left({
        ...tokenConfigError(
          `credentials.token_url (${issuer}) answered ${status} without a token at ` +
            `"${token_field}". Check credentials.token_url and credentials.token_request.token_field.`,
          status,
        ),
        ...defined({ isUnreadable: value === undefined || undefined }),
      })
    const date = parseHeaderDate(headers.date)
    const expiry = memberAt(expires_in_field, value) ?? undefined
    return E.right({
      token: token.trim(),
      issuedAt: clock.ticks(),
      expiry,
      lifetime: parseLifetime(expiry, Number.isNaN(date) ? clock.now() : date),
    })
  }
