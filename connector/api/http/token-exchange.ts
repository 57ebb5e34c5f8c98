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
import type { Clock } from './rate-limit'
import { encodeForm, encodeJson, type HttpRequest } from './request'
import { isStrayRedirect, isTemporaryRedirect } from './retry'
import { parseHeaderDate, parseOutageWait, parseRetryAfter } from './retry-after'
import type { HttpResponse } from './transport'

/** No token before the config is corrected; `status` is that of the response. */
export const tokenConfigError = (message: string, status?: number): ApiError => ({
  _tag: 'Token',
  cause: configFailure(message),
  ...defined({ status }),
})

/** Whether a header can carry the token: printable ASCII, and not empty. */
export const isHeaderValue = (token: string): boolean => /^[\x20-\x7e]+$/.test(token)

/** How a token is issued; all of it is configured, since the service's specification does not give it. */
export type TokenExchange = {
  readonly application_id: string
  readonly application_secret: string
  /** A full address. */
  readonly token_url: string
  readonly token_request?: {
    readonly encoding?: 'json' | 'form' | 'basic'
    readonly id_field?: string
    readonly secret_field?: string
    /** A name, or names joined by dots. */
    readonly token_field?: string
    /** The field with the time of expiry, or the lifetime in seconds. */
    readonly expires_in_field?: string
  }
}

/** Where published deployments issue tokens, below base_url. */
const defaultTokenPath = '/api/service/v1/token/create'

/** The address that a configured `token_url` means: a path, as the default is one, is appended to that of base_url. */
export const resolveTokenUrl = (base: URL, tokenUrl = defaultTokenPath): string => {
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

/**
 * The forms to try, in order: what is configured, completed by what published deployments accept; then, where something
 * was left out, completed by the defaults of versions before 0.2.
 */
export const tokenForms = ({ encoding, id_field, secret_field }: Partial<TokenForm>): ReadonlyArray<TokenForm> => {
  const complete = (form: TokenForm): TokenForm => ({
    encoding: encoding ?? form.encoding,
    id_field: id_field ?? form.id_field,
    secret_field: secret_field ?? form.secret_field,
  })
  const published = complete({ encoding: 'form', id_field: 'appId', secret_field: 'appSecret' })
  const former = complete({ encoding: 'json', id_field: 'applicationId', secret_field: 'applicationSecret' })
  const same =
    encoding === 'basic' ||
    (Object.keys(published) as ReadonlyArray<keyof TokenForm>).every((key) => published[key] === former[key])
  return same ? [published] : [published, former]
}

/** Times in milliseconds: `issuedAt` in ticks of the clock, `servedAt` by the service's clock where known. */
export type AccessToken = {
  readonly token: string
  readonly issuedAt: number
  readonly servedAt: number | undefined
  /** The expiry as the answer gives it; undefined where it gives none. */
  readonly expiry: unknown
  /** Undefined where the expiry makes no sense. */
  readonly lifetime: number | undefined
}

const dayMs = 86_400_000
const zonelessTime = /^\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d(\.\d+)?)?$/
const zonedTime = /^\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)$/i

/** The time of an expiry, in milliseconds since 1970; a text without a zone is in UTC. NaN for any other text. */
const parseExpiryTime = (text: string): number =>
  zonelessTime.test(text)
    ? Date.parse(`${text.replace(' ', 'T')}Z`)
    : zonedTime.test(text)
      ? Date.parse(text.replace(' ', 'T').replace(/([+-]\d\d)(\d\d)$/, '$1:$2'))
      : Number.NaN

/** How an expiry is written; each is read in its own way. */
export type ExpiryFormat = 'seconds' | 'epoch seconds' | 'epoch milliseconds' | 'a time without a zone' | 'a time'

/**
 * The format of an expiry, and its number or time in milliseconds; undefined where it is none. A number may be a text.
 */
const readExpiry = (expiry: unknown): readonly [format: ExpiryFormat, value: number] | undefined => {
  const text = typeof expiry === 'string' ? expiry.trim() : typeof expiry === 'number' ? String(expiry) : ''
  const number = text === '' ? Number.NaN : Number(text)
  if (number > 0 && number < 1e9) return ['seconds', number * 1000]
  if (number >= 1e11) return ['epoch milliseconds', number]
  if (number >= 1e9) return ['epoch seconds', number * 1000]
  const time = parseExpiryTime(text)
  return Number.isNaN(time) ? undefined : [zonelessTime.test(text) ? 'a time without a zone' : 'a time', time]
}

export const expiryFormat = (expiry: unknown): ExpiryFormat | undefined => readExpiry(expiry)?.[0]

/**
 * The lifetime in milliseconds that a token's expiry means: seconds, epoch seconds, epoch milliseconds, or an ISO 8601
 * time; a number may be a text. `now` is the service's clock. Undefined for a time that has passed or is more than a
 * day away, and for anything else; a lifetime in seconds counts as a day at most.
 */
export const parseLifetime = (expiry: unknown, now: number): number | undefined => {
  const [format, value] = readExpiry(expiry) ?? ['seconds', Number.NaN]
  if (format === 'seconds') return Number.isNaN(value) ? undefined : Math.min(value, dayMs)
  const lifetime = value - now
  return lifetime > 0 && lifetime <= dayMs ? lifetime : undefined
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
export const encodeTokenRequest = (
  { application_id, application_secret, token_url }: TokenExchange,
  { encoding, id_field, secret_field }: TokenForm,
): HttpRequest => {
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

/**
 * The error of an exchange without a response that can be read; a certificate that is not trusted is an error of the
 * config.
 */
export const toTokenError = (
  { token_url }: TokenExchange,
  error: ApiError & { readonly _tag: 'Network' | 'Encoding' },
): ApiError => {
  const where = `credentials.token_url (${new URL(token_url).origin})`
  if (error._tag === 'Encoding') return tokenConfigError(`The answer of ${where} is ${describeEncoding(error)}`)
  const cause = networkFailure({ name: where, keys: 'base_url and credentials.token_url' }, error)
  return { _tag: 'Token', cause, ...(cause._tag === 'Config' ? {} : { code: error.code }) }
}

/** Whether an answer without a token may be about the form of the request: neither an overload nor a wrong address. */
export const mayRefuseForm = (status: number): boolean =>
  status < 300 || status === 500 || (status >= 400 && status < 500 && ![404, 408, 429].includes(status))

const refusal = (origin: string, status: number, outcome = String(status)): ApiError =>
  tokenConfigError(
    `credentials.token_url (${origin}) refused the application (${outcome}). Check credentials.application_id, ` +
      'credentials.application_secret, credentials.token_url and credentials.token_request.',
    status,
  )

/** The token in a response of `token_url`, or an error that says who must act. */
export const decodeToken =
  ({ token_url, token_request = {} }: TokenExchange, clock: Pick<Clock, 'now' | 'ticks'>) =>
  ({ status, headers, body, forwarder }: HttpResponse): E.Either<ApiError, AccessToken> => {
    const { token_field = 'accessToken', expires_in_field = 'expiresIn' } = token_request
    const host = new URL(token_url).origin
    const origin = forwarder === undefined ? host : `${host}, or ${forwarder} before it`
    if (status === 408 || status === 429 || status >= 500 || isStrayRedirect(status, headers)) {
      return E.left({
        _tag: 'Token',
        status,
        cause: transientFailure(`credentials.token_url (${origin}) answered ${status}. Run again later.`),
        ...defined({ retryAfter: parseRetryAfter(status, headers, clock.now()) }),
      })
    }
    if (status >= 300 && status < 400)
      return E.left({
        ...tokenConfigError(
          forwarder === undefined
            ? `credentials.token_url redirects (${status}). Configure the address it redirects to.`
            : `credentials.token_url (${origin}) redirects (${status}). ` +
                'Find out which; a proxy may want a log-in first.',
          status,
        ),
        ...defined({ isUnreadable: isTemporaryRedirect(status) || undefined }),
      })
    if (status === 404)
      return E.left(
        tokenConfigError(
          `No tokens are issued at credentials.token_url (${origin} answered 404). Check base_url ` +
            `and credentials.token_url; without one, it is ${defaultTokenPath} below base_url.`,
          status,
        ),
      )
    if (status >= 400) return E.left(refusal(origin, status))
    const value = parseTokenBody(body)
    const outcome = memberAt('status', value)
    if (outcome !== undefined && !isSuccessStatus(outcome)) {
      const told = `${status}, status.code ${maskCode(String(memberAt('code', outcome) ?? 'missing'))}`
      const kind = outageKind(applicationError(outcome))
      if (kind === undefined) return E.left(refusal(origin, status, told))
      return E.left({
        _tag: 'Token',
        cause: transientFailure(`credentials.token_url (${origin}) answered ${told}. Run again later.`),
        ...defined({ retryAfter: parseOutageWait(kind, headers, clock.now()) }),
      })
    }
    const token = memberAt(token_field, value)
    if (typeof token !== 'string' || !isHeaderValue(token.trim()))
      return E.left({
        ...tokenConfigError(
          `credentials.token_url (${origin}) answered ${status} without a token at ` +
            `"${token_field}". Check credentials.token_url and credentials.token_request.token_field.`,
          status,
        ),
        ...defined({ isUnreadable: value === undefined || undefined }),
      })
    const date = parseHeaderDate(headers.date)
    const servedAt = Number.isNaN(date) ? undefined : date
    const expiry = memberAt(expires_in_field, value) ?? undefined
    return E.right({
      token: token.trim(),
      issuedAt: clock.ticks(),
      servedAt,
      expiry,
      lifetime: parseLifetime(expiry, servedAt ?? clock.now()),
    })
  }
