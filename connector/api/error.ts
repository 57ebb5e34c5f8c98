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

/** Words about requests. None of them can be about a person. */
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
 * A message of the service as one line of at most 200 characters. Only words about requests stay; all other words, and
 * the strings in `hidden`, are masked. A message may quote a record, and no rule recognizes every name.
 */
export const maskMessage = (text: string, hidden: ReadonlyArray<string> = []): string =>
  createRedactor(hidden)(text.slice(0, 10_000).replace(/[\p{C}\s]+/gu, ' '))
    // Seven digits may be a phone number or a date of birth.
    .replace(/\d(?:[\s().+/-]*\d){6,}/g, '***')
    .replace(/[\p{L}\p{M}\p{N}_]+/gu, (word) => (isKnownWord(word) ? word : '***'))
    .replace(/\*\*\*(?:[^\p{L}\p{N}]*\*\*\*)+/gu, '***')
    .trim()
    .slice(0, maxMessageLength)

/**
 * Matches names like those in the specification. Any other name may be data: an e-mail address, a name or a number of a
 * person.
 */
const plainName = /^(?!.*\d{5})[A-Za-z_$][\w$-]{0,39}$/

/** The name of an undeclared attribute, masked for messages if it may be data. */
export const maskAttributeName = (name: string): string => (plainName.test(name) ? name : '***')

/** The ways in which one request can fail. `message` never quotes a secret or a record. */
export type ApiError =
  /** No complete response: connection, TLS, timeout, or cut short. */
  | { readonly _tag: 'Network'; readonly code: string; readonly message: string }
  /**
   * No connection through a proxy, so nothing was sent. `cause` says who must act; `code` is the reason or the status
   * of the proxy's answer.
   */
  | { readonly _tag: 'Proxy'; readonly code: string; readonly cause: Failure }
  /**
   * A response with an error status or a redirect. `retryAfter`: milliseconds, if the service gave them. `isStray`: a
   * redirect status without an address, such as a 304, which a gateway may send for a while. `forwarder`: a proxy that
   * may have answered. `basePath`: the path of base_url, for a 404.
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
   * A response with status 200 that cannot be used: not JSON, a broken envelope, key or cursor, or the echo of another
   * request. If `remedy` is set, a change of the config helps. `isPage`: it is a web page, so another server may have
   * answered.
   */
  | {
      readonly _tag: 'Decode'
      readonly path: string
      readonly message: string
      readonly remedy?: string
      readonly isPage?: true
    }
  /**
   * A response with status 200 that reports an application error. `retryAfter`: as for `Http`, for an outage or a rate
   * limit. `missing`: the path of what the answer lacks, since its code may claim success.
   */
  | {
      readonly _tag: 'Application'
      readonly code: string
      readonly message: string
      readonly retryAfter?: number
      readonly missing?: string
    }
  /** A response whose body has an encoding that was not requested, such as `br`. It is not decoded. */
  | { readonly _tag: 'Encoding'; readonly encoding: string }
  /** A response longer than `max_response_mb`. */
  | { readonly _tag: 'TooLarge'; readonly bytes: number; readonly limit: number }
  /**
   * No token. `cause` says who must act; `code` why no response came; `status` is that of the issuer's response;
   * `retryAfter` (milliseconds) how long the issuer asks to wait. `isUnreadable`: the answer is a redirect or not JSON,
   * which may also be a temporary fault.
   */
  | {
      readonly _tag: 'Token'
      readonly cause: Failure
      readonly code?: string
      readonly status?: number
      readonly retryAfter?: number
      readonly isUnreadable?: boolean
    }
  /** The service asks to wait longer than `max_wait_seconds`. In milliseconds. */
  | { readonly _tag: 'Wait'; readonly wait: number; readonly limit: number }
  /** The rate limit shared by several processes cannot be reached; `cause` says why. */
  | { readonly _tag: 'RateLimiter'; readonly cause: Failure }

/** Converts an error of `operation` into a failure for the person who must act. */
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
 * True if the status in a body means success: its message is missing, null or "success" in any letter case, and its
 * code is not that of an HTTP error. Without a message, a code in words must mean success too.
 */
export const isSuccessStatus = (status: unknown): boolean => {
  const message = statusMember(status, 'message') ?? undefined
  const code = statusMember(status, 'code') ?? undefined
  if (message !== undefined && String(message).toLowerCase() !== 'success') return false
  return !hasErrorCode(status) && (message !== undefined || code === undefined || isSuccessCode(code))
}

/** True if the code of a status in a body is an HTTP error status. */
const hasErrorCode = (status: unknown): boolean => {
  const code = Number(statusMember(status, 'code') ?? 0)
  return code >= 300 && code < 600
}

/** The codes are not documented, so any other number may mean success. */
const isSuccessCode = (code: unknown): boolean => Number(code) >= 0 || /^(success|succeeded|ok)?$/i.test(String(code))

/**
 * The error reported by the status in a body. `fallback`: the message if it has none; `missing`: the path of what the
 * body lacks.
 */
export const applicationError = (status: unknown, fallback = '', missing?: string): ApiError => ({
  _tag: 'Application',
  code: String(statusMember(status, 'code') ?? 'none'),
  message: String(statusMember(status, 'message') ?? fallback),
  ...defined({ missing }),
})

/** Describes an application error. If its code claims success, names what is missing instead. */
export const describeApplicationError = ({ code, missing }: ApiError & { readonly _tag: 'Application' }): string =>
  /^(2\d\d|success|succeeded|ok)$/i.test(code)
    ? `the answer reports success (code ${code}), but ` +
      (missing === undefined ? 'its status.message is not "success"' : `it has no ${missing}`)
    : `the service reports an application error (code ${maskCode(code)})`

const tokenErrorCode =
  /^(401|unauthori[sz]ed|unauthenticated|(access_?)?token_?(expired|invalid)|(expired|invalid)_?(access_?)?token)$/i

/** True if a body with status 200 reports that the token is missing, wrong or expired. */
export const isTokenError = (error: ApiError): boolean =>
  error._tag === 'Application' && tokenErrorCode.test(error.code)

/**
 * True if the status beside an export's list with `rows` rows reports an error. With rows, only the code of an HTTP
 * error counts, since the list may then be cut short. Without a list (undefined), any status counts.
 */
export const isExportError = (status: unknown, rows: number | undefined): boolean =>
  rows === undefined || (rows === 0 ? !isSuccessStatus(status) : hasErrorCode(status))

const outageStatuses: ReadonlyArray<number> = [408, 502, 503, 504]
const limitWords = /too_?(many|\*+)_?requests|(?<![a-z])rate_?limit/i
const outageWords = /request_?time_?out|bad_?gateway|service_?(is_?)?(temporarily_?)?unavailable|gateway_?time_?out/i

/**
 * Classifies an error as a rate limit or an outage. Both pass and affect every request. They show as the HTTP status
 * or, inside a 200, as a code with such a status, or as a code or message with the usual words.
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

/** True if an error inside a 200 may be about what was requested, not about tokens, outages or rate limits. */
export const isRefusalInBody = (error: ApiError): boolean =>
  error._tag === 'Application' && !isTokenError(error) && outageKind(error) === undefined

const statusMember = (value: unknown, name: string): unknown =>
  typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined

/**
 * The code if it is a word or a number. The codes are not documented, so anything else could be a sentence about a
 * person.
 */
export const maskCode = (code: string): string => (/^[\w.:-]{1,40}$/.test(code) ? code : 'not readable')

/** What is wrong with the encoding of an answer, and who must act. */
export const describeEncoding = ({ encoding }: ApiError & { readonly _tag: 'Encoding' }): string =>
  `encoded with ${/^[\w.+, -]{1,40}$/.test(encoding) ? encoding : 'something unknown'}, which was not asked for. ` +
  'Set the service, or the proxy before it, to answer with gzip, deflate or no Content-Encoding.'

/** True if a network code means that TLS failed. */
export const isTlsCode = (code: string): boolean =>
  /^(CERT_|ERR_TLS_|ERR_SSL_|EPROTO$|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_)/.test(code)

/** True if TLS failed because one side speaks another protocol or version. No certificate was checked. */
export const isTlsProtocolCode = (code: string): boolean => /^(EPROTO$|ERR_SSL_)/.test(code)

/** True if a network code means that no host answers at the address. The same codes occur if the network is down. */
export const isUnreachableCode = (code: string): boolean =>
  ['ENOTFOUND', 'EAI_AGAIN', 'ECONNREFUSED', 'ECONNTIMEDOUT', 'EHOSTUNREACH', 'ENETUNREACH'].includes(code)

/** The code for an answer that began but did not end. */
export const cutShortCode = 'ECUTSHORT'

/** Who failed to answer: its name for messages, and the config keys of its address. */
type Respondent = { readonly name: string; readonly keys: string }

/** The failure for a network error. Distinguishes a missing answer from one that cannot be read. */
export const networkFailure = (
  { name, keys }: Respondent,
  { code, message }: ApiError & { _tag: 'Network' },
): Failure => {
  const detail = message
  if (isTlsProtocolCode(code))
    return configFailure(
      `${name} does not speak TLS with us (${code}). Check ${keys}: the port ` +
        'may be one for http, or the server may only support TLS 1.1 or older.',
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

/** The most likely cause if an operation does not exist. */
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
