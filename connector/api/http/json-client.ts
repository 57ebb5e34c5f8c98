import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import type { TaskEither } from 'fp-ts/TaskEither'
import * as TE from 'fp-ts/TaskEither'
import * as t from 'io-ts'
import { configFailure, defined, type Failure } from '../../cdk'
import { type ApiError, toFailure } from '../error'
import { jsonResponse, type ResponseCodec, type Route, toDecodeError } from '../route'
import { createHttpClient } from './client'
import { isHeaderValue } from './token-exchange'
import { checkUrl } from './url'

/**
 * The HTTP client of the kit, for any JSON API. package.json exports this file as `feedback-connector/http`. Error
 * messages use these option names, so give the keys of your configuration the same names.
 */
export type JsonClientOptions = {
  /** Paths of requests are appended to its path. */
  readonly base_url: string
  /** Accepts an address without TLS on another machine; false by default. */
  readonly allow_http?: boolean | undefined
  /** Sent with every request, such as `Authorization`. Their values appear in no message. */
  readonly headers?: Readonly<Record<string, string>>
  readonly rate_limit?: {
    /** Never exceeded. By default, the rate adapts to answers with status 429. */
    readonly requests_per_minute?: number | undefined
    /** 4 by default. */
    readonly max_concurrency?: number | undefined
  }
  readonly timeouts?: {
    /** Time to connect; 10 by default. */
    readonly connect_seconds?: number | undefined
    /** Time for a complete answer; 120 by default. */
    readonly response_seconds?: number | undefined
    /** The maximum total time that a request waits between attempts; 600 by default. */
    readonly max_wait_seconds?: number | undefined
  }
  /** The largest answer; 64 by default. */
  readonly max_response_mb?: number | undefined
  /** How often a failing request is sent; 6 by default. */
  readonly attempts?: number
  /** Closes the client once it is aborted. */
  readonly stop?: AbortSignal
  /** The environment variables, including HTTPS_PROXY and the like. Without them, no proxy is used. */
  readonly proxyVariables?: Readonly<Record<string, string | undefined>>
}

/** Null and undefined are left out; a list becomes a repeated key. */
type JsonQuery = Readonly<Record<string, unknown>>

/**
 * Sends requests to one API under a shared rate limit. A request is repeated after an outage, a lost connection or an
 * answer that its codec rejects, and waits as long as a 429 or a Retry-After requires. Redirects are not followed.
 */
export type JsonClient = {
  /** Decodes the answer of a GET; integers beyond 2^53 are bigints. */
  readonly get: <A>(path: string, query: JsonQuery, answer: t.Decoder<unknown, A>) => TaskEither<Failure, A>
  /**
   * Decodes the answer of a POST with a JSON body. If the request may have arrived, it is repeated only if it is
   * `idempotent`.
   */
  readonly post: <A>(
    path: string,
    body: unknown,
    answer: t.Decoder<unknown, A>,
    options?: { readonly idempotent?: boolean },
  ) => TaskEither<Failure, A>
  /** Aborts all requests in progress. Afterwards, the client no longer keeps the process alive. */
  readonly close: () => Promise<void>
}

/** Replaces the texts of `toFailure` that mention the Feedback Data Service. */
const refusals: Readonly<Record<number, string>> = {
  400: 'the API refuses the request (400). Check the config.',
  401: 'the API refuses the credentials (401). Check them in the config.',
  403: 'the API refuses access (403). Ask its operator for the permission.',
  404: 'the API has no such address (404). Check base_url.',
}

const explain =
  (operation: string) =>
  (error: ApiError): Failure => {
    const failure = toFailure(operation, error)
    const refusal = error._tag === 'Http' ? refusals[error.status] : undefined
    if (refusal !== undefined) return { ...failure, message: `${operation}: ${refusal}` }
    if (error._tag !== 'TooLarge') return failure
    const size = Math.round(error.limit / 1e6)
    return {
      ...failure,
      message:
        `${operation}: an answer is longer than ${size} MB. Ask ` +
        'for fewer items at a time, or raise max_response_mb.',
    }
  }

/** Decodes the answer with its codec. An answer with status 204 is undefined. */
const answerOf = <A>(answer: t.Decoder<unknown, A>): ResponseCodec<A> => {
  const json = jsonResponse(t.unknown)
  return {
    ...json,
    decode: (response) =>
      pipe(
        response.hasNoContent ? E.right(undefined) : json.decode(response),
        E.flatMap((value) => E.mapLeft(toDecodeError)(answer.decode(value))),
      ),
  }
}

const checkHeaders = (headers: Readonly<Record<string, string>>): E.Either<Failure, unknown> => {
  const [wrong] = Object.keys(headers).filter((name) => !isHeaderValue(headers[name] ?? ''))
  return wrong === undefined
    ? E.right(undefined)
    : E.left(
        configFailure(`The header ${wrong} is empty or holds characters that no header can carry. Check the config.`),
      )
}

/** A client for one API. If `base_url` or a header is invalid, each request fails with that reason. */
export const createJsonClient = (options: JsonClientOptions): JsonClient => {
  const { base_url, allow_http = false, rate_limit = {}, timeouts = {}, stop } = options
  const headers = Object.fromEntries(Object.entries(options.headers ?? {}).map(([name, value]) => [name, value.trim()]))
  const connected = pipe(
    checkUrl('base_url', base_url, allow_http),
    E.chainFirst(() => checkHeaders(headers)),
    E.map((url) =>
      createHttpClient(
        {
          base_url: url,
          credentials: { auth_type: 'headers', headers },
          rate_limit: {
            ...defined({ requests_per_minute: rate_limit.requests_per_minute }),
            max_concurrency: rate_limit.max_concurrency ?? 4,
          },
          timeouts: {
            connect_seconds: timeouts.connect_seconds ?? 10,
            response_seconds: timeouts.response_seconds ?? 120,
            max_wait_seconds: timeouts.max_wait_seconds ?? 600,
          },
          max_response_mb: options.max_response_mb ?? 64,
        },
        { attempts: options.attempts ?? 6, ...defined({ proxyVariables: options.proxyVariables }) },
      ),
    ),
  )
  const close: JsonClient['close'] = async () => {
    if (E.isRight(connected)) await connected.right.close()
  }
  if (stop?.aborted) void close()
  else stop?.addEventListener('abort', () => void close(), { once: true })
  const send = <A>(
    path: string,
    input: unknown,
    route: Pick<Route<unknown, A>, 'method' | 'encoding' | 'response' | 'idempotent'>,
  ): TaskEither<Failure, A> =>
    pipe(
      TE.fromEither(connected),
      TE.flatMap((client) => {
        const request = { name: path, path: `/${path.replace(/^\/+/, '')}`, tokenHeader: undefined, request: t.unknown }
        return pipe(client.send({ ...route, ...request })(input), TE.mapLeft(explain(path)))
      }),
    )
  return {
    get: (path, query, answer) =>
      send(path, query, { method: 'GET', encoding: 'query', response: answerOf(answer), idempotent: true }),
    post: (path, body, answer, { idempotent = false } = {}) =>
      send(path, body, { method: 'POST', encoding: 'json', response: answerOf(answer), idempotent }),
    close,
  }
}
