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

/** An ApiError on its way through node:http and axios, which know only exceptions. */
export class ConnectException extends Error {
  constructor(readonly error: ApiError) {
    super('no connection')
  }
}

const connectTimeout = (seconds: number): NodeJS.ErrnoException =>
  Object.assign(new Error(`no connection within ${seconds} s (timeouts.connect_seconds)`), { code: 'ECONNTIMEDOUT' })

/**
 * The code of a network error. An attempt to connect that takes too long, to one address or each of several, has our
 * own.
 */
export const networkCode = (error: NodeJS.ErrnoException): string => {
  const isConnecting = error.syscall === 'connect' || error instanceof AggregateError
  const isLate = error.code === 'ETIMEDOUT' || error.code === 'ERR_SOCKET_CONNECTION_TIMEOUT'
  return isConnecting && isLate ? 'ECONNTIMEDOUT' : (error.code ?? 'UNKNOWN')
}

/**
 * How long one address of a host is tried before the next, milliseconds: half of the time. Node's 250 ms leave a far
 * one out.
 */
export const addressTimeout = (connectSeconds: number): number => Math.ceil(connectSeconds * 500)

/** Makes the agent give up a connection that is not ready, TLS included, after `seconds`. */
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

/**
 * The first event of this name, or the error that comes instead; what errors come later belongs to whoever uses the
 * emitter.
 */
const awaitEvent = (emitter: EventEmitter, name: string, signal: AbortSignal): Promise<ReadonlyArray<unknown>> => {
  emitter.on('error', () => undefined)
  return once(emitter, name, { signal })
}

type StartTls = (options: https.RequestOptions) => Duplex | null | undefined

/** A connection to the service through a tunnel of the proxy; TLS begins behind the proxy and is the service's own. */
const connectThroughProxy = async (
  proxy: ProxyServer,
  options: https.RequestOptions & Pick<TcpNetConnectOpts, 'autoSelectFamilyAttemptTimeout'>,
  startTls: StartTls,
  signal: AbortSignal,
): Promise<Duplex> => {
  const target = `${options.host?.includes(':') ? `[${options.host}]` : options.host}:${options.port}`
  const request = (proxy.protocol === 'https:' ? https : http).request({
    ...defined({ method: 'CONNECT', hostname: proxy.hostname, port: proxy.port, path: target, agent: false, signal }),
    // Otherwise the certificate of the proxy would be checked for the name in the header Host.
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

/** Makes an agent for https reach services through a proxy. `seconds` bounds TCP, CONNECT and TLS together. */
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

/** How axios reaches an address, and the proxy on the way. */
type Route = {
  readonly options: Pick<AxiosRequestConfig, 'httpAgent' | 'httpsAgent' | 'proxy'>
  readonly headers: Readonly<Record<string, string>>
  /** For http, which a proxy forwards: it may have answered itself. */
  readonly forwarder?: ProxyServer
}

type Connections = {
  readonly route: (url: URL) => E.Either<ApiError, Route>
  /** Closes every connection. */
  readonly close: () => void
}

/** Connections that are kept, one set for each way. */
export const createConnections = (
  connectSeconds: number,
  proxyVariables: ProxyVariables,
  stop: AbortSignal,
): Connections => {
  // keepAliveMsecs as axios has it: where the agent has another, both set the socket's options for every request.
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
