import type * as t from 'io-ts'
import {
  configFailure,
  createRedactor,
  defined,
  type Failure,
  type JsonSchema,
  toJsonSchema,
  transientFailure,
} from '../cdk'
import { CommentsForm, ReviewsRequest } from './model/entity'
import { ExportRequest } from './model/review'
import { Location, VisitRecord } from './model/written'

const maxMessageLength = 200

const attributeNames = (codec: t.Any): ReadonlyArray<string> =>
  Object.keys((toJsonSchema(codec).properties ?? {}) as Readonly<Record<string, JsonSchema>>)

/** Words about requests, none of which can be about a person. */
const knownWordList = `
a access accesstoken account active after again allowed already an and another any api application are array at
attempts authorization available bad batch be been before between body boolean but by call calls cannot characters
client code comment comments configuration configured connection contain contains content could create created
credentials data database date day days denied deprecated did disabled does downstream duplicate each element elements
email empty enabled endpoint entities entity entry error errors exceed exceeded exceeds exist exists expected
expiration expired export external failed failure feature field fields file filter first for forbidden format found
from future gateway given greater has have header headers hour hours http id identifier identifiers ids in inactive
inside integer internal invalid is it item items json key keys large last later least length less limit limits list
location locations long longer lookup maintenance malformed match maximum may measure message method milliseconds min
max minimum minute minutes missing more most must name names no none not null number object of offset on once one only
operation operations or out page pages parameter parameters parse past path pattern perpage permission permissions
person please position present preview processing property provided quota range rate rating read reason record records
refused reject rejected request requests required resource response retry review reviews role roll scope scroll second
seconds secret see server service services short should size slow small some something sort source sources start
started state status stopped string sync task temporarily temporary than that the their then there this time timeout
times to token tokens too try type unable unauthorized unavailable unexpected unique unknown unsupported unprocessable
until up update url use used user utc valid validation value values version visit visits was were went when which
while window with within without wrong year years you your yyyy mm dd hh ss sss
`

const knownWords = new Set([
  ...knownWordList.trim().split(/\s+/),
  ...[ExportRequest, Location, VisitRecord, CommentsForm, ReviewsRequest]
    .flatMap(attributeNames)
    .map((name) => name.toLowerCase()),
])

const isKnownWord = (word: string): boolean => knownWords.has(word.toLowerCase()) || /^\d{1,4}$/.test(word)

/**
 * A message of the service as one line of at most 200 characters in which all words but those about requests are
 * masked, and so are the texts in `hidden`. A message may quote a record, and no rule recognises every name.
 */
export const maskMessage = (text: string, hidden: ReadonlyArray<string> = []): string =>
  createRedactor(hidden)(text.slice(0, 10_000).replace(/[\p{C}\s]+/gu, ' '))
    // Seven digits may be a telephone number or a date of birth.
    .replace(/\d(?:[\s().+/-]*\d){6,}/g, '***')
    .replace(/[\p{L}\p{M}\p{N}_]+/gu, (word) => (isKnownWord(word) ? word : '***'))
    .replace(/\*\*\*(?:[^\p{L}\p{N}]*\*\*\*)+/gu, '***')
    .trim()
    .slice(0, maxMessageLength)

/**
 * What the specification's own names look like. Any other name may be data: an e-mail address, a name or a number of a
 * person.
 */
const plainName = /^(?!.*\d{5})[A-Za-z_$][\w$-]{0,39}$/

/** The name of an undeclared attribute of an answer for messages. */
export const maskAttributeName = (name: string): string => (plainName.test(name) ? name : '***')

/** What can go wrong with one request. `message` never quotes a secret or a record. */
export type ApiError =
  /** No complete response: no connection, TLS, time-out, cut short. */
  | { readonly _tag: 'Network'; readonly code: string; readonly message: string }
  /**
   * No connection through a proxy, so that nothing was sent; `cause` says who must act, `code` why, or the status of
   * its answer.
   */
  | { readonly _tag: 'Proxy'; readonly code: string; readonly cause: Failure }
  /**
   * A response with an error status or a redirect; `retryAfter` in milliseconds, where the service gave it. `isStray`:
   * a status of redirects that names no address, such as a 304, as a gateway may answer for a while. `forwarder`: a
   * proxy that may have answered. `basePath`: the path of base_url, for a 404.
   */
  | {
      readonly _tag: 'Http'
      readonly status: number
      readonly message: string
      readonly retryAfter?: number
      readonly isStray?: true
      readonly forwarder?: string
      readonly basePath?: string
    }
  /**
   * A response with status 200 that cannot be used: not JSON, a broken envelope, key or cursor, the echo of another
   * request. With a `remedy` a change of the config helps. `isPage`: it is a page for a browser, so another server may
   * have answered.
   */
  | {
      readonly _tag: 'Decode'
      readonly path: string
      readonly message: string
      readonly remedy?: string
      readonly isPage?: true
    }
  /**
   * A response with status 200 that reports an application error; `retryAfter` as for `Http`, where it is an outage or
   * a rate limit. `missing`: the path of what the answer lacks, since its code may be one of success.
   */
  | {
      readonly _tag: 'Application'
      readonly code: string
      readonly message: string
      readonly retryAfter?: number
      readonly missing?: string
    }
  /** A response whose body has an encoding that was not asked for, such as `br`; nothing decodes it. */
  | { readonly _tag: 'Encoding'; readonly encoding: string }
  /** A response longer than `max_response_mb`. */
  | { readonly _tag: 'TooLarge'; readonly bytes: number; readonly limit: number }
  /**
   * No token; `cause` says who must act, `code` why no response came, `status` that of the issuer's response,
   * `retryAfter` (milliseconds) how long the issuer asks to wait. `isUnreadable`: its answer is not JSON or a redirect,
   * which a fault that passes may cause, too.
   */
  | {
      readonly _tag: 'Token'
      readonly cause: Failure
      readonly code?: string
      readonly status?: number
      readonly retryAfter?: number
      readonly isUnreadable?: boolean
    }
  /** The service asks to wait longer than `max_wait_seconds`; milliseconds. */
  | { readonly _tag: 'Wait'; readonly wait: number; readonly limit: number }
  /** The rate limit that several processes share cannot be reached; `cause` says why. */
  | { readonly _tag: 'RateLimiter'; readonly cause: Failure }

/** The failure that an error of `operation` means for the person who must act. */
export const toFailure = (operation: string, error: ApiError): Failure => {
  switch (error._tag) {
    case 'Network':
      return prefixFailure(operation, networkFailure({ name: 'the service', keys: 'base_url' }, error))
    case 'Proxy': {
      const failure = prefixFailure(operation, error.cause)
      return failure._tag === 'Config' ? { ...failure, scope: 'run' } : failure
    }
    case 'Http': {
      const failure = httpFailure(operation, error)
      const { message } = failure
      const hint = error.forwarder === undefined ? '' : ` The answer may be that of ${error.forwarder}.`
      return { ...failure, message: message + hint, ...(error.status === 401 ? { scope: 'run' } : {}) }
    }
    case 'Decode':
      if (error.remedy !== undefined)
        return configFailure(`${operation}: ${error.path}: ${error.message}. To go on, ${error.remedy}.`)
      return transientFailure(`${operation}: the answer is not what was asked for, at ${error.path}: ${error.message}.`)
    case 'Application':
      return isTokenError(error)
        ? configFailure(`${operation}: ${remedies[401]} (code ${error.code} in an answer with status 200).`)
        : transientFailure(
            `${operation}: ${describeApplicationError(error)}. Run again later.`,
            maskMessage(error.message),
          )
    case 'Encoding':
      return configFailure(`${operation}: the answer is ${describeEncoding(error)}`)
    case 'TooLarge':
      return transientFailure(
        `${operation}: an answer is longer than ${Math.round(error.limit / 1e6)} ` +
          'MB. Raise max_response_mb or lower page_size.',
      )
    case 'Token':
      return { ...error.cause, scope: 'run' }
    case 'RateLimiter':
      return error.cause
    case 'Wait':
      return transientFailure(
        `${operation}: the service asks to wait ${Math.ceil(error.wait / 1000)} s, more than ` +
          `max_wait_seconds (${Math.round(error.limit / 1000)}). Run again later or raise it.`,
      )
  }
}

const prefixFailure = (operation: string, failure: Failure): Failure => ({
  ...failure,
  message: `${operation}: ${failure.message}`,
})

/**
 * Whether the status in a body means success, by its message and its code: the message is missing, null or "success",
 * in any case, and the code is not that of an HTTP error. Where there is no message, a code in words must be one of
 * success.
 */
export const isSuccessStatus = (status: unknown): boolean => {
  const message = statusMember(status, 'message') ?? undefined
  const code = statusMember(status, 'code') ?? undefined
  if (message !== undefined && String(message).toLowerCase() !== 'success') return false
  return !hasErrorCode(status) && (message !== undefined || code === undefined || isSuccessCode(code))
}

/** Whether the code of a status in a body is the status of an HTTP error. */
const hasErrorCode = (status: unknown): boolean => {
  const code = Number(statusMember(status, 'code') ?? 0)
  return code >= 300 && code < 600
}

/** The codes are not documented, so any other number may be that of a success. */
const isSuccessCode = (code: unknown): boolean => Number(code) >= 0 || /^(success|succeeded|ok)?$/i.test(String(code))

/**
 * The error that the status in a body reports; `fallback` is its message where it has none, `missing` the path of what
 * the body lacks.
 */
export const applicationError = (status: unknown, fallback = '', missing?: string): ApiError => ({
  _tag: 'Application',
  code: String(statusMember(status, 'code') ?? 'none'),
  message: String(statusMember(status, 'message') ?? fallback),
  ...defined({ missing }),
})

/** What an application error says. A code of success says nothing, so what is missing is named. */
export const describeApplicationError = ({ code, missing }: ApiError & { readonly _tag: 'Application' }): string =>
  /^(2\d\d|success|succeeded|ok)$/i.test(code)
    ? `the answer reports success (code ${code}) and is none: ` +
      (missing === undefined ? 'its status.message is not "success"' : `it has no ${missing}`)
    : `the service reports an application error (code ${maskCode(code)})`

const tokenErrorCode =
  /^(401|unauthori[sz]ed|unauthenticated|(access_?)?token_?(expired|invalid)|(expired|invalid)_?(access_?)?token)$/i

/** Whether a body with status 200 reports that the token is missing, wrong or expired. */
export const isTokenError = (error: ApiError): boolean =>
  error._tag === 'Application' && tokenErrorCode.test(error.code)

/**
 * Whether the status beside the list of an export, of `rows` rows, reports an error. Beside rows only a code of an HTTP
 * error does: their list may be cut short. Without a list (undefined) any status does.
 */
export const isExportError = (status: unknown, rows: number | undefined): boolean =>
  rows === undefined || (rows === 0 ? !isSuccessStatus(status) : hasErrorCode(status))

const outageStatuses: ReadonlyArray<number> = [408, 502, 503, 504]
const limitWords = /too_?(many|\*+)_?requests|(?<![a-z])rate_?limit/i
const outageWords = /request_?time_?out|bad_?gateway|service_?(is_?)?(temporarily_?)?unavailable|gateway_?time_?out/i

/**
 * Whether an error is a rate limit or an outage, which pass and concern every request: by its status or, inside a 200,
 * by a code that holds such a status, or a code or message with the words for one.
 */
export const outageKind = (error: ApiError): 'limit' | 'outage' | undefined => {
  if (error._tag !== 'Http' && error._tag !== 'Application') return undefined
  const statuses = error._tag === 'Http' ? [error.status] : (error.code.match(/\d+/g) ?? []).map(Number)
  const texts = error._tag === 'Http' ? [] : [error.code, error.message].map((text) => text.replace(/[\s_.:-]+/g, '_'))
  if (statuses.includes(429) || texts.some((text) => limitWords.test(text))) return 'limit'
  const isOutage =
    statuses.some((status) => outageStatuses.includes(status)) || texts.some((text) => outageWords.test(text))
  return isOutage ? 'outage' : undefined
}

/** Whether an error inside a 200 may be about what was requested: tokens, outages and rate limits are not. */
export const isRefusalInBody = (error: ApiError): boolean =>
  error._tag === 'Application' && !isTokenError(error) && outageKind(error) === undefined

const statusMember = (value: unknown, name: string): unknown =>
  typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined

/**
 * The code where it is a word or a number; anything else could be a sentence about a person, since the codes are not
 * documented.
 */
export const maskCode = (code: string): string => (/^[\w.:-]{1,40}$/.test(code) ? code : 'not readable')

/** What is wrong with the encoding of an answer, and who must act. */
export const describeEncoding = ({ encoding }: ApiError & { readonly _tag: 'Encoding' }): string =>
  `encoded with ${/^[\w.+, -]{1,40}$/.test(encoding) ? encoding : 'something unknown'}, which was not asked for. ` +
  'Set the service, or the proxy before it, to answer with gzip, deflate or no Content-Encoding.'

/** Whether a network code means that TLS failed. */
export const isTlsCode = (code: string): boolean =>
  /^(CERT_|ERR_TLS_|ERR_SSL_|EPROTO$|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_)/.test(code)

/** Whether TLS failed because one side speaks something else, or another version; no certificate was looked at. */
export const isTlsProtocolCode = (code: string): boolean => /^(EPROTO$|ERR_SSL_)/.test(code)

/** Whether a network code means that no host answers at the address; a network that is down gives the same codes. */
export const isUnreachableCode = (code: string): boolean =>
  ['ENOTFOUND', 'EAI_AGAIN', 'ECONNREFUSED', 'ECONNTIMEDOUT', 'EHOSTUNREACH', 'ENETUNREACH'].includes(code)

/** The code of an answer that began and did not end. */
export const cutShortCode = 'ECUTSHORT'

/** Whose answer is missing: in messages, its name and the keys of its address. */
type Respondent = { readonly name: string; readonly keys: string }

/** What a network error means. An answer that came and cannot be read is not called a missing one. */
export const networkFailure = (
  { name, keys }: Respondent,
  { code, message }: ApiError & { _tag: 'Network' },
): Failure => {
  const detail = message
  if (isTlsProtocolCode(code))
    return configFailure(
      `${name} does not speak TLS with us (${code}). Check ${keys}: the port ` +
        'may be one for http, or the server may know no TLS later than 1.1.',
      detail,
    )
  if (isTlsCode(code))
    return configFailure(
      `${name} offers no secure connection that can be trusted (${code}). Check ${keys}; if ` +
        'its certificate comes from an authority of your own, name that in NODE_EXTRA_CA_CERTS.',
      detail,
    )
  if (code === 'HPE_HEADER_OVERFLOW')
    return configFailure(
      `${name} answered with more headers than are accepted (${code}). Ask its operator, or that ` +
        'of a proxy before it, to shorten them, or set NODE_OPTIONS=--max-http-header-size=65536.',
      detail,
    )
  if (code.startsWith('HPE_'))
    return configFailure(
      `${name} answered with something other than HTTP (${code}). Check ` +
        `${keys}: the port may be one for https, or of another service.`,
      detail,
    )
  if (code.startsWith('Z_'))
    return transientFailure(
      `${name} answered with something that cannot be decompressed ` +
        `(${code}). Ask its operator, or that of a proxy before it.`,
      detail,
    )
  if (code === 'ETIMEDOUT')
    return transientFailure(`${name} did not answer completely in time (${code}). Run again later.`, detail)
  if (code === cutShortCode) return transientFailure(`${name} cut its answer short (${code}). Run again later.`, detail)
  const remedy = isUnreachableCode(code) ? `Check ${keys}, or run again later.` : 'Run again later.'
  return transientFailure(`${name} did not answer (${code}). ${remedy}`, detail)
}

const remedies: Readonly<Record<number, string>> = {
  400: 'The service refuses the request. Check the filters of the config, and credentials',
  401: 'The access token is missing, wrong or expired. Check credentials',
  403: 'The token lacks permission for this data. Ask the operator of the service to grant it',
}

/** What is most likely wrong where an operation does not exist. */
const describeBasePath = (path: string): string =>
  'No such operation there. Check base_url, ' +
  (path.replace(/\/+$/, '') === '' ? 'which has no path' : `whose path is ${path}`)

const httpFailure = (operation: string, error: ApiError & { _tag: 'Http' }): Failure => {
  if (error.status >= 300 && error.status < 400 && !error.isStray)
    return configFailure(`${operation}: ${error.message} (${error.status}).`)
  const remedy = error.status === 404 ? describeBasePath(error.basePath ?? '') : remedies[error.status]
  const isTransient = error.isStray || [408, 413, 429].includes(error.status) || error.status >= 500
  return isTransient
    ? transientFailure(`${operation}: the service answered ${error.status}. Run again later.`, error.message)
    : configFailure(
        `${operation}: ${remedy ?? `The service answered ${error.status}. Check base_url`} (${error.status}).`,
        error.message,
      )
}
