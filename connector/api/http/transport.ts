import { once } from 'node:events'
import { pipeline, type Readable, type Transform } from 'node:stream'
import { constants, createInflate, createInflateRaw, createUnzip } from 'node:zlib'
import type { AxiosRequestConfig } from 'axios'
import * as E from 'fp-ts/Either'
import type { TaskEither } from 'fp-ts/TaskEither'
import { defined } from '../../cdk'
import { type ApiError, cutShortCode, isTlsCode, isUnreachableCode } from '../error'
import { type BufferPool, createBufferPool, receiveBody } from './buffers'
import { ConnectException, createConnections, networkCode } from './connections'
import { type ProxyServer, type ProxyVariables, proxyConnectError, proxyLoginError } from './proxy'
import type { Clock } from './rate-limit'
import type { HttpRequest, ResponseHeaders } from './request'

/**
 * What we ask for. Every other encoding is refused before a decoder exists: an answer in Brotli can write outside the
 * memory of the decoder in a Node that lacks the fix of CVE-2026-111497.
 */
const acceptedEncodings = 'gzip, deflate'

/** The encodings that a header `Content-Encoding` names; none for a body that comes as it is. */
const parseEncodings = (header: string): ReadonlyArray<string> =>
  header
    .toLowerCase()
    .split(',')
    .map((encoding) => encoding.trim())
    .filter((encoding) => encoding !== '' && encoding !== 'identity')

/** A missing end of the compressed data passes, as it does in browsers: a body that lacks something is no JSON. */
const zlibOptions = { finishFlush: constants.Z_SYNC_FLUSH }

/**
 * Deflate with the zlib header that the standard asks for, whose first byte ends in 8, or without, as some servers send
 * it.
 */
const createDeflateDecoder = async (body: Readable, signal: AbortSignal): Promise<Transform> => {
  await once(body, 'readable', { signal })
  const start: Buffer | null = body.read()
  if (start !== null) body.unshift(start)
  return start === null || ((start[0] ?? 0) & 15) === 8 ? createInflate(zlibOptions) : createInflateRaw(zlibOptions)
}

/** The body as it was before it was encoded; undefined for an encoding that was not asked for, and for several. */
const decodeBody = async (
  body: Readable,
  [encoding, ...more]: ReadonlyArray<string>,
  signal: AbortSignal,
): Promise<Readable | undefined> => {
  if (encoding === undefined) return body
  if (more.length > 0 || !['gzip', 'x-gzip', 'deflate'].includes(encoding)) return undefined
  const decoder = encoding === 'deflate' ? await createDeflateDecoder(body, signal) : createUnzip(zlibOptions)
  // Whoever reads the decoder learns of an error.
  return pipeline(body, decoder, () => undefined)
}

/** A response of any status; `millis` from sending to its last byte. */
export type HttpResponse = {
  readonly status: number
  readonly headers: ResponseHeaders
  readonly body: Buffer
  /** Call it when `body` is no longer read: its memory is used again. */
  readonly release?: () => void
  readonly millis: number
  /** The proxy that forwarded the request, and may have answered itself; for messages. */
  readonly forwarder?: string
}

/** Sends a request once. */
export type Transport = {
  readonly exchange: (request: HttpRequest) => TaskEither<ApiError, HttpResponse>
  /** Closes every connection. */
  readonly close: () => void
}

type TransportOptions = {
  readonly connectSeconds: number
  /**
   * From sending to the last byte of the response, so that a service that sends byte by byte does not hold a request
   * forever.
   */
  readonly responseSeconds: number
  readonly maxResponseBytes: number
  readonly proxyVariables: ProxyVariables
}

const networkError = (code: string, message: string): ApiError => ({ _tag: 'Network', code, message })

/** Headers by lower-case name; the values of a header that came more than once are joined by commas. */
const joinHeaders = (headers: object): ResponseHeaders =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), String(value)]))

/** What the requests of a client share. */
type Shared = {
  readonly options: TransportOptions
  readonly send: ReturnType<typeof createSender>
  readonly connections: ReturnType<typeof createConnections>
  readonly buffers: BufferPool
  readonly clock: Pick<Clock, 'ticks'>
  readonly redact: (text: string) => string
  readonly stop: AbortSignal
}

/**
 * A request by the adapter that axios exports, for a body that goes out and comes in as it is, and with any status. The
 * rest of axios merges configurations and transforms bodies: a twentieth of the time of a read of 60,000 reviews.
 */
const createSender = () => {
  // Loaded with the first client: a command that sends no request starts without it.
  const axios: typeof import('axios') = require('axios')
  const send = axios.getAdapter('http')
  const commonHeaders = axios.AxiosHeaders.from({
    Accept: 'application/json',
    'Accept-Encoding': acceptedEncodings,
    'User-Agent': 'feedback-connector',
  })
  return ({ headers, ...request }: Omit<AxiosRequestConfig, 'headers'> & { readonly headers: Headers }) =>
    send({
      responseType: 'stream',
      maxRedirects: 0,
      validateStatus: null,
      // axios would decode Brotli, asked for or not.
      decompress: false,
      ...request,
      headers: axios.AxiosHeaders.concat(commonHeaders, headers),
    })
}

type Headers = Readonly<Record<string, string>>

/** An error of axios holds the headers with the token, so none leaves this file. */
const toError = (
  { options, stop, redact }: Shared,
  error: unknown,
  isLate: boolean,
  forwarder: ProxyServer | undefined,
): ApiError => {
  if (stop.aborted) return networkError('ABORTED', 'the client was closed')
  if (isLate)
    return networkError(
      'ETIMEDOUT',
      `no complete answer within ${options.responseSeconds} s (timeouts.response_seconds)`,
    )
  const { cause = error, message } = error as Error
  if (cause instanceof ConnectException) return cause.error
  const code = networkCode(cause as NodeJS.ErrnoException)
  if (message === 'aborted' || ['ERR_STREAM_PREMATURE_CLOSE', 'HPE_INVALID_EOF_STATE'].includes(code))
    return networkError(cutShortCode, 'the answer was cut short')
  if (forwarder !== undefined && (isUnreachableCode(code) || isTlsCode(code)))
    return proxyConnectError(forwarder, code, redact(message))
  return networkError(code, code.startsWith('Z_') ? `the answer cannot be decompressed: ${message}` : redact(message))
}

type Received = { readonly status: number; readonly headers: object; readonly data: Readable }

/** The response; one with an error status counts by that alone if its body has an encoding that was not asked for. */
const receive = async (
  { options, buffers, clock, redact }: Shared,
  { status, headers: received, data }: Received,
  sentAt: number,
  signal: AbortSignal,
  forwarder: ProxyServer | undefined,
): Promise<E.Either<ApiError, HttpResponse>> => {
  const { maxResponseBytes } = options
  const headers = joinHeaders(received)
  const from = defined({ forwarder: forwarder?.label })
  if (forwarder !== undefined && status === 407) {
    data.destroy()
    return E.left(proxyLoginError(forwarder, headers['proxy-authenticate']))
  }
  const encodings = status === 204 ? [] : parseEncodings(redact(headers['content-encoding'] ?? ''))
  const decoded = await decodeBody(data, encodings, signal)
  if (decoded === undefined) {
    data.destroy()
    return status >= 200 && status < 300
      ? E.left({ _tag: 'Encoding', encoding: encodings.join(', ') })
      : E.right({ status, headers, body: Buffer.alloc(0), millis: clock.ticks() - sentAt, ...from })
  }
  const announced = Number(headers['content-length'] ?? 0)
  const content = await receiveBody(decoded, announced, maxResponseBytes, buffers)
  if (content === undefined) return E.left({ _tag: 'TooLarge', bytes: maxResponseBytes + 1, limit: maxResponseBytes })
  const { bytes: body, release } = content
  return E.right({ status, headers, body, release, millis: clock.ticks() - sentAt, ...from })
}

/** Sends a request, and aborts it where its answer is late or the client is closed. */
const exchange = async (
  shared: Shared,
  { method, url, headers, body }: HttpRequest,
): Promise<E.Either<ApiError, HttpResponse>> => {
  const { send, connections, options, clock, stop } = shared
  const route = connections.route(url)
  if (E.isLeft(route)) return route
  const { options: connection, headers: routeHeaders, forwarder } = route.right
  const sentAt = clock.ticks()
  const controller = new AbortController()
  const abort = () => controller.abort()
  const timer = setTimeout(abort, options.responseSeconds * 1000)
  stop.addEventListener('abort', abort)
  if (stop.aborted) abort()
  try {
    const response = await send({
      ...connection,
      method,
      url: url.href,
      headers: { ...headers, ...routeHeaders },
      ...defined({ data: body }),
      signal: controller.signal,
    })
    return await receive(shared, response, sentAt, controller.signal, forwarder)
  } catch (error) {
    return E.left(toError(shared, error, controller.signal.aborted, forwarder))
  } finally {
    clearTimeout(timer)
    stop.removeEventListener('abort', abort)
  }
}

/**
 * HTTP with connections kept alive. Redirects are not followed, since the token must not go to another host. `stop`
 * aborts the requests under way; `redact` masks the messages of errors.
 */
export const createTransport = (
  options: TransportOptions,
  clock: Pick<Clock, 'ticks'>,
  redact: (text: string) => string,
  stop: AbortSignal,
): Transport => {
  const connections = createConnections(options.connectSeconds, options.proxyVariables, stop)
  const shared = { options, send: createSender(), connections, buffers: createBufferPool(), clock, redact, stop }
  return { exchange: (request) => () => exchange(shared, request), close: connections.close }
}
