import { type EventEmitter, once } from 'node:events'
import http from 'node:http'
import https from 'node:https'
import type { TcpNetConnectOpts } from 'node:net'
import type { Duplex } from 'node:stream'
import type { AxiosRequestConfig } from 'axios'
import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import { defined } from '../../cdk'
import { type ApiError, isTlsCode } from '../error'
import {
  findProxy,
  type ProxyServer,
  type ProxyVariables,
  proxyAnswerError,
  proxyConnectError,
  proxyServername,
  tunnelTlsError,
} from './proxy'

/** Carries an ApiError through node:http and axios, which only know exceptions. */
export class ConnectException extends Error {
  constructor(readonly error: ApiError) {
    super('no connection')
  }
}

const connectTimeout = (seconds: number): NodeJS.ErrnoException =>
  Object.assign(new Error(`no connection within ${seconds} s (timeouts.connect_seconds)`), { code: 'ECONNTIMEDOUT' })

/** The code of a network error. If connecting takes too long, to one address or to all of them, the code is our own. */
export const networkCode = (error: NodeJS.ErrnoException): string => {
  const isConnecting = error.syscall === 'connect' || error instanceof AggregateError
  const isLate = error.code === 'ETIMEDOUT' || error.code === 'ERR_SOCKET_CONNECTION_TIMEOUT'
  return isConnecting && isLate ? 'ECONNTIMEDOUT' : (error.code ?? 'UNKNOWN')
}

/**
 * How long one address of a host is tried before the next: half of the time, in milliseconds. Node's default of 250 ms
 * is too short for a distant address.
 */
export const addressTimeout = (connectSeconds: number): number => Math.ceil(connectSeconds * 500)

/** Makes the agent give up a connection that is not ready, including TLS, after `seconds`. */
const withConnectTimeout =
  (seconds: number, readyEvent: 'connect' | 'secureConnect') =>
  <A extends http.Agent>(agent: A): A => {
    const connect = agent.createConnection.bind(agent)
    agent.createConnection = (options, callback) => {
      const socket = connect(options, callback)
      const timer = setTimeout(() => socket?.destroy(connectTimeout(seconds)), seconds * 1000)
      for (const event of [readyEvent, 'close']) socket?.once(event, () => clearTimeout(timer))
      return socket
    }
    return agent
  }

/** The first event of this name, or the error that comes instead. Later errors are left to the user of the emitter. */
const awaitEvent = (emitter: EventEmitter, name: string, signal: AbortSignal): Promise<ReadonlyArray<unknown>> => {
  emitter.on('error', () => undefined)
  return once(emitter, name, { signal })
}

type StartTls = (options: https.RequestOptions) => Duplex | null | undefined

/** Connects to the service through the proxy's tunnel. TLS runs inside the tunnel, between us and the service. */
const connectThroughProxy = async (
  proxy: ProxyServer,
  options: https.RequestOptions & Pick<TcpNetConnectOpts, 'autoSelectFamilyAttemptTimeout'>,
  startTls: StartTls,
  signal: AbortSignal,
): Promise<Duplex> => {
  const target = `${options.host?.includes(':') ? `[${options.host}]` : options.host}:${options.port}`
  const request = (proxy.protocol === 'https:' ? https : http).request({
    ...defined({ method: 'CONNECT', hostname: proxy.hostname, port: proxy.port, path: target, agent: false, signal }),
    // Otherwise the proxy's certificate would be checked against the name in the Host header.
    servername: proxyServername(proxy),
    autoSelectFamilyAttemptTimeout: options.autoSelectFamilyAttemptTimeout,
    headers: { Host: target, ...defined({ 'Proxy-Authorization': proxy.authorization }) },
  } as https.RequestOptions)
  request.end()
  const answer = await awaitEvent(request, 'connect', signal)
  const [{ statusCode = 0, headers }, tunnel, head] = answer as [http.IncomingMessage, Duplex, Buffer]
  if (statusCode !== 200 || head.length > 0) {
    tunnel.destroy()
    throw new ConnectException(proxyAnswerError(proxy, target, statusCode, headers['proxy-authenticate']))
  }
  const socket = startTls({ ...options, socket: tunnel } as https.RequestOptions) as Duplex
  try {
    await awaitEvent(socket, 'secureConnect', signal)
    return socket
  } catch (error) {
    socket.destroy()
    const { code = '', message } = error as NodeJS.ErrnoException
    throw isTlsCode(code) ? new ConnectException(tunnelTlsError(proxy, target, code, message)) : error
  }
}

/** Makes an https agent connect to services through a proxy. `seconds` limits TCP, CONNECT and TLS together. */
const throughProxy =
  (proxy: ProxyServer, seconds: number, stop: AbortSignal) =>
  (agent: https.Agent): https.Agent => {
    const startTls: StartTls = agent.createConnection.bind(agent)
    const connect = async (options: https.RequestOptions): Promise<Duplex> => {
      const controller = new AbortController()
      const abort = () => controller.abort()
      const timer = setTimeout(abort, seconds * 1000)
      stop.addEventListener('abort', abort)
      try {
        return await connectThroughProxy(proxy, options, startTls, controller.signal)
      } catch (error) {
        if (error instanceof ConnectException) throw error
        const cause = controller.signal.aborted ? connectTimeout(seconds) : (error as NodeJS.ErrnoException)
        throw new ConnectException(proxyConnectError(proxy, networkCode(cause), cause.message))
      } finally {
        clearTimeout(timer)
        stop.removeEventListener('abort', abort)
      }
    }
    agent.createConnection = (options, callback) => {
      connect(options).then(
        (socket) => callback?.(null, socket),
        (error) => callback?.(error, undefined as never),
      )
      return undefined
    }
    return agent
  }

/** How axios reaches an address: the agent, and a proxy if there is one. */
type Route = {
  readonly options: Pick<AxiosRequestConfig, 'httpAgent' | 'httpsAgent' | 'proxy'>
  readonly headers: Readonly<Record<string, string>>
  /** For http, the proxy that forwards the request. It may have answered itself. */
  readonly forwarder?: ProxyServer
}

type Connections = {
  readonly route: (url: URL) => E.Either<ApiError, Route>
  readonly close: () => void
}

/** Keep-alive connections, with one set per route. */
export const createConnections = (
  connectSeconds: number,
  proxyVariables: ProxyVariables,
  stop: AbortSignal,
): Connections => {
  // Same keepAliveMsecs as in axios. If the agent's differed, both would set the socket's options on every request.
  const agentOptions = {
    keepAlive: true,
    keepAliveMsecs: 60_000,
    autoSelectFamilyAttemptTimeout: addressTimeout(connectSeconds),
  }
  const createHttpsAgent = (options: https.AgentOptions = {}) => new https.Agent({ ...agentOptions, ...options })
  const withTimeout = withConnectTimeout(connectSeconds, 'secureConnect')
  const httpAgent = withConnectTimeout(connectSeconds, 'connect')(new http.Agent(agentOptions))
  const direct: Route = {
    options: { httpAgent, httpsAgent: withTimeout(createHttpsAgent()), proxy: false },
    headers: {},
  }

  const routeThrough = (proxy: ProxyServer, { protocol, host }: URL): Route => {
    if (protocol === 'https:') {
      const httpsAgent = throughProxy(proxy, connectSeconds, stop)(createHttpsAgent())
      return { options: { httpAgent, httpsAgent, proxy: false }, headers: {} }
    }
    return {
      options: {
        httpAgent,
        httpsAgent: withTimeout(createHttpsAgent({ servername: proxyServername(proxy) })),
        proxy: { protocol: proxy.protocol, host: proxy.hostname, port: proxy.port },
      },
      headers: { Host: host, ...defined({ 'Proxy-Authorization': proxy.authorization }) },
      forwarder: proxy,
    }
  }

  const routes = new Map<string, E.Either<ApiError, Route>>()
  return {
    route: (url) => {
      const known = routes.get(url.origin)
      if (known !== undefined) return known
      const route = pipe(
        findProxy(proxyVariables, url),
        E.map((proxy) => (proxy === undefined ? direct : routeThrough(proxy, url))),
      )
      routes.set(url.origin, route)
      return route
    },
    close: () => {
      const opened = [direct, ...[...routes.values()].flatMap((route) => (E.isRight(route) ? [route.right] : []))]
      for (const { options } of opened) for (const agent of [options.httpAgent, options.httpsAgent]) agent.destroy()
    },
  }
}
