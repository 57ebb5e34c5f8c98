import * as E from 'fp-ts/Either'
import { configFailure, defined, transientFailure } from '../../cdk'
import { type ApiError, isTlsCode, isUnreachableCode } from '../error'
import type { Clock } from './clock'
import { encodeForm, encodeJson, type HttpRequest } from './request'
import { parseRetryAfter } from './retry'
import type { HttpResponse } from './transport'

/** No token before the config is corrected. */
export const tokenConfigError = (message: string): ApiError => ({ _tag: 'Token', cause: configFailure(message) })

/** Whether a header can carry the token: printable ASCII, and not empty. */
export const isHeaderValue = (token: string): boolean => /^[\x20-\x7e]+$/.test(token)

/** How a token is issued; all of it is configured, since the service's specification does not give it. */
export type TokenExchange = {
  readonly application_id: string
  readonly application_secret: string
  readonly token_url: string
  readonly token_request?: {
    readonly encoding?: 'json' | 'form' | 'basic'
    readonly id_field?: string
    readonly secret_field?: string
    /** A name, or names joined by dots. */
    readonly token_field?: string
    /** The field with the lifetime in seconds. A token without it is used until the service refuses it. */
    readonly expires_in_field?: string
  }
}

/** `issuedAt` in ticks of the clock, `lifetime` in milliseconds. */
export type AccessToken = { readonly token: string; readonly issuedAt: number; readonly lifetime: number }

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
export const encodeTokenRequest = ({
  application_id,
  application_secret,
  token_url,
  token_request = {},
}: TokenExchange): HttpRequest => {
  const { encoding = 'json', id_field = 'applicationId', secret_field = 'applicationSecret' } = token_request
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

/** The error of an exchange without a response; a certificate that is not trusted is an error of the config. */
export const toTokenError = (
  { token_url }: TokenExchange,
  { code, message }: ApiError & { readonly _tag: 'Network' },
): ApiError => {
  const where = `credentials.token_url (${new URL(token_url).origin})`
  return isTlsCode(code)
    ? tokenConfigError(
        `${where} offers no secure connection that can be trusted (${code}). Check credentials.token_url; if its certificate comes from an authority of your own, name that in NODE_EXTRA_CA_CERTS.`,
      )
    : {
        _tag: 'Token',
        code,
        cause: transientFailure(
          `${where} did not answer (${code}). ${isUnreachableCode(code) ? 'Check credentials.token_url, or run again later.' : 'Run again later.'}`,
          message,
        ),
      }
}

/** The token in a response of `token_url`, or an error that says who must act. */
export const decodeToken =
  ({ token_url, token_request = {} }: TokenExchange, clock: Pick<Clock, 'now' | 'ticks'>) =>
  ({ status, headers, body }: HttpResponse): E.Either<ApiError, AccessToken> => {
    const { token_field = 'accessToken', expires_in_field = 'expiresIn' } = token_request
    const { origin } = new URL(token_url)
    if (status === 408 || status === 429 || status >= 500) {
      return E.left({
        _tag: 'Token',
        cause: transientFailure(`credentials.token_url (${origin}) answered ${status}. Run again later.`),
        ...defined({ retryAfter: parseRetryAfter(status, headers, clock.now()) }),
      })
    }
    if (status >= 300 && status < 400)
      return E.left(
        tokenConfigError(`credentials.token_url redirects (${status}). Configure the address it redirects to.`),
      )
    if (status >= 400)
      return E.left(
        tokenConfigError(
          `credentials.token_url (${origin}) refused the application (${status}). Check credentials.application_id, credentials.application_secret, credentials.token_url and credentials.token_request.`,
        ),
      )
    const value = parseTokenBody(body)
    const token = memberAt(token_field, value)
    if (typeof token !== 'string' || !isHeaderValue(token.trim()))
      return E.left(
        tokenConfigError(
          `credentials.token_url (${origin}) answered ${status} without a token at "${token_field}". Check credentials.token_url and credentials.token_request.token_field.`,
        ),
      )
    const seconds = Number(memberAt(expires_in_field, value))
    const lifetime = seconds > 0 ? seconds * 1000 : Number.POSITIVE_INFINITY
    return E.right({ token: token.trim(), issuedAt: clock.ticks(), lifetime })
  }
