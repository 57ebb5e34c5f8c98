import http from 'node:http'
import https from 'node:https'
import type { Readable } from 'node:stream'
import * as E from 'fp-ts/Either'
import type { TaskEither } from 'fp-ts/TaskEither'
import { defined } from '../../cdk'
import type { ApiError } from '../error'
import { receiveBody } from './body'
import { createBufferPool } from './buffers'
import type { Clock } from './clock'
import type { HttpRequest, ResponseHeaders } from './request'
import { isLoopback } from './url'

/** An answer of any status; `millis`: from sending to the last byte. */
export type HttpResponse = {
  readonly status: number
  readonly headers: ResponseHeaders
  readonly body: Buffer
  /** Nobody looks at the body any more: another answer may take its place. */
  readonly release?: () => void
  readonly millis: number
}

/** Carries one request over the wire, once. */
export type Transport = {
  readonly exchange: (request: HttpRequest) => TaskEither<ApiError, HttpResponse>
  /** Closes every connection. */
  readonly close: () => void
}

export type TransportOptions = {
  readonly connectSeconds: number
  /** From sending to the last byte of the answer, so that a slow drip does not hold us. */
  readonly responseSeconds: number
  readonly maxResponseBytes: number
}

const networkError = (code: string, message: string): ApiError => ({ _tag: 'Network', code, message })

/** The agent, giving up a connection that is not made, TLS included, in time. */
const withConnectTimeout =
  (seconds: number, made: 'connect' | 'secureConnect') =>
  <A extends http.Agent>(agent: A): A => {
    const connect = agent.createConnection.bind(agent)
    agent.createConnection = (options, callback) => {
      const socket = connect(options, callback)
      const timer = setTimeout(
        () => socket?.destroy(Object.assign(new Error('no connection in time'), { code: 'ECONNTIMEDOUT' })),
        seconds * 1000,
      )
      for (const event of [made, 'close']) socket?.once(event, () => clearTimeout(timer))
      return socket
    }
    return agent
  }

/** Headers that came more than once are joined, as HTTP has it. */
const joinHeaders = (headers: object): ResponseHeaders =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), String(value)]))

/** As the client library has it: where the two differ, each sets the socket anew for every request. */
const agentOptions = { keepAlive: true, keepAliveMsecs: 60_000 }

/**
 * HTTP with connections kept alive. No redirect is followed, since a token must not leave for another host; every status
 * is an answer. `stop` gives up what is under way. An error of the client library holds the headers, so none leaves this file.
 */
export const createTransport = (
  options: TransportOptions,
  clock: Pick<Clock, 'ticks'>,
  clean: (text: string) => string,
  stop: AbortSignal,
): Transport => {
  const { connectSeconds, responseSeconds, maxResponseBytes } = options
  const agents = {
    httpAgent: withConnectTimeout(connectSeconds, 'connect')(new http.Agent(agentOptions)),
    httpsAgent: withConnectTimeout(connectSeconds, 'secureConnect')(new https.Agent(agentOptions)),
  }
  // Loaded with the first client: a command that sends no request starts without it.
  const axios: typeof import('axios') = require('axios')
  // The adapter alone: axios's core merges configurations and transforms bodies, which we do not use, at half the cost of a request.
  const sendRequest = axios.getAdapter('http')
  const headers = axios.AxiosHeaders.from({
    Accept: 'application/json',
    'Accept-Encoding': 'gzip, deflate, br',
    'User-Agent': 'feedback-connector',
  })
  const buffers = createBufferPool()
  const common = { ...agents, responseType: 'stream', maxRedirects: 0, validateStatus: null, decompress: true } as const

  const toError = (error: unknown, late: boolean): ApiError => {
    if (stop.aborted) return networkError('ABORTED', 'the client was closed')
    if (late)
      return networkError('ETIMEDOUT', `no complete answer within ${responseSeconds} s (timeouts.response_seconds)`)
    const { code = 'UNKNOWN', message } = error as NodeJS.ErrnoException
    if (message === 'aborted' || code === 'ERR_STREAM_PREMATURE_CLOSE')
      return networkError('ECONNRESET', 'the answer was cut short')
    if (code === 'ECONNTIMEDOUT')
      return networkError(code, `no connection within ${connectSeconds} s (timeouts.connect_seconds)`)
    return networkError(code, clean(message))
  }

  return {
    exchange:
      ({ method, url, headers: added, body }) =>
      async () => {
        const started = clock.ticks()
        const late = new AbortController()
        const timer = setTimeout(() => late.abort(), responseSeconds * 1000)
        const abort = () => late.abort()
        stop.addEventListener('abort', abort)
        if (stop.aborted) abort()
        try {
          const answer = await sendRequest({
            ...common,
            method,
            url: url.href,
            headers: axios.AxiosHeaders.concat(headers, added),
            ...defined({ data: body }),
            ...(isLoopback(url.hostname) ? { proxy: false } : {}),
            signal: late.signal,
          })
          const received = joinHeaders(answer.headers)
          const announced = Number(received['content-length'] ?? 0)
          const read = await receiveBody(answer.data as Readable, announced, maxResponseBytes, buffers)
          return read === undefined
            ? E.left({ _tag: 'TooLarge', bytes: maxResponseBytes + 1, limit: maxResponseBytes })
            : E.right({
                status: answer.status,
                headers: received,
                body: read.bytes,
                release: read.release,
                millis: clock.ticks() - started,
              })
        } catch (error) {
          return E.left(toError(error, late.signal.aborted))
        } finally {
          clearTimeout(timer)
          stop.removeEventListener('abort', abort)
        }
      },
    close: () => {
      for (const agent of Object.values(agents)) agent.destroy()
    },
  }
}
