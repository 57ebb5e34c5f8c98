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
 * The encodings that we request. Any other encoding is rejected before a decoder is created: in a Node without the fix
 * for CVE-2026-111497, a Brotli answer can make the decoder write outside its memory.
 */
const acceptedEncodings = 'gzip, deflate'

/** The encodings named by the header `Content-Encoding`; none for a body that is not encoded. */
const parseEncodings = (header: string): ReadonlyArray<string> =>
  header
    .toLowerCase()
    .split(',')
    .map((encoding) => encoding.trim())
    .filter((encoding) => encoding !== '' && encoding !== 'identity')

/** Compressed data without its end is accepted, as in browsers. An incomplete body is not valid JSON anyway. */
const zlibOptions = { finishFlush: constants.Z_SYNC_FLUSH }

/**
 * Decodes deflate with the zlib header that the standard requires, whose first byte ends in 8, or without it, as some
 * servers send it.
 */
const createDeflateDecoder = async (body: Readable, signal: AbortSignal): Promise<Transform> => {
  await once(body, 'readable', { signal })
  const start: Buffer | null = body.read()
  if (start !== null) body.unshift(start)
  return start === null || ((start[0] ?? 0) & 15) === 8 ? createInflate(zlibOptions) : createInflateRaw(zlibOptions)
}

/** The decoded body; undefined for an encoding that was not requested, and for several encodings. */
const decodeBody = async (
  body: Readable,
  [encoding, ...more]: ReadonlyArray<string>,
  signal: AbortSignal,
): Promise<Readable | undefined> => {
  if (encoding === undefined) return body
  if (more.length > 0 || !['gzip', 'x-gzip', 'deflate'].includes(encoding)) return undefined
  const decoder = encoding === 'deflate' ? await createDeflateDecoder(body, signal) : createUnzip(zlibOptions)
  // Errors reach the reader of the decoder.
  return pipeline(body, decoder, () => undefined)
}

/** A response with any status. `millis`: from sending to the last byte. */
export type HttpResponse = {
  readonly status: number
  readonly headers: ResponseHeaders
  readonly body: Buffer
  /** Call it when `body` is no longer read, so that its memory can be reused. */
  readonly release?: () => void
  readonly millis: number
  /** The proxy that forwarded the request and may have answered itself, for messages. */
  readonly forwarder?: string
}

/** Sends a request once. */
export type Transport = {
  readonly exchange: (request: HttpRequest) => TaskEither<ApiError, HttpResponse>
  readonly close: () => void
}

type TransportOptions = {
  readonly connectSeconds: number
  /**
   * Covers the time from sending to the last byte, so that a service that sends byte by byte does not block a request
   * forever.
   */
  readonly responseSeconds: number
  readonly maxResponseBytes: number
  readonly proxyVariables: ProxyVariables
}

const networkError = (code: string, message: string): ApiError => ({ _tag: 'Network', code, message })

/** Headers by lower-case name. The values of a repeated header are joined by commas. */
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
 * Sends a request through the adapter that axios exports, with raw bodies and any status. The rest of axios merges
 * configurations and transforms bodies, which would take a twentieth of the time for reading 60,000 reviews.
 */
const createSender = () => {
  // Loaded with the first client, so that a command without requests starts without it.
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
      // Otherwise axios would decode Brotli, requested or not.
      decompress: false,
      ...request,
      headers: axios.AxiosHeaders.concat(commonHeaders, headers),
    })
}

type Headers = Readonly<Record<string, string>>

/** An axios error holds the headers with the token, so none leaves this file. */
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

/** Receives the response. If it has an error status and an encoding that was not requested, only the status counts. */
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

/** Sends a request. Aborts it if its answer is late or the client is closed. */
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
 * HTTP over keep-alive connections. Redirects are not followed, because the token must not go to another host. `stop`
 * aborts the requests in progress; `redact` masks error messages.
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
