import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import { setTimeout } from 'node:timers/promises'
import type { Api, LookupRoutes } from '../../api'
import { CommandError, configFailure, printExactJson } from '../../cdk'
import { type FaultRule, scheduleFaults } from '../faults/plan'
import type { OperationName, TokenRegistry } from '../operations/operation'
import { createHandlers, type Handler, type PublishedService, performOperation, type RequestContext } from './handlers'
import { type RequestLog, refuseOperatorRequest, type SandboxPage } from './pages'
import { type BodyDelivery, type Reply, refusalReply, writeReply } from './reply'

/** The range of the delay before an answer, in milliseconds. */
export type Latency = { readonly minMs: number; readonly maxMs: number }

/** The delay before the nth answer in milliseconds; the same seed gives the same delays. */
export const createLatency =
  ({ minMs, maxMs }: Latency, seed: number) =>
  (n: number): number =>
    minMs + ((Math.imul(n + seed, 0x9e3779b1) >>> 0) % (maxMs - minMs + 1))

/** The most requests in any period of `seconds`. */
export type RequestRate = { readonly requests: number; readonly seconds: number }

/** Counts requests. Returns the milliseconds to wait if a request exceeds the rate. */
const createRequestLimiter = ({ requests, seconds }: RequestRate): ((now: number) => number | undefined) => {
  let times: ReadonlyArray<number> = []
  return (now) => {
    times = times.filter((time) => time > now - seconds * 1000)
    const [first] = times
    if (first !== undefined && times.length >= requests) return first + seconds * 1000 - now
    times = [...times, now]
    return undefined
  }
}

/** How the server listens, limits, fails and logs. */
type ServerOptions = {
  readonly host: string
  /** 0 means any free port. */
  readonly port: number
  readonly tokenRegistry: TokenRegistry
  readonly rules: ReadonlyArray<FaultRule>
  /** The seed for requests that fail at random. */
  readonly seed: number
  readonly requestRate: RequestRate
  /** The delay before the nth answer in milliseconds. */
  readonly latency: (n: number) => number
  readonly lookups: LookupRoutes
  /**
   * What a published deployment serves in addition to the `Api`; undefined for a service that follows the
   * specification.
   */
  readonly published?: PublishedService | undefined
  /** Called at the beginning of every request of an operation. */
  readonly onRequest?: () => void
  readonly pages: ReadonlyArray<SandboxPage>
  readonly log: RequestLog
  /** The clock for rates and tokens, in milliseconds. */
  readonly now: () => number
  /** The clock for the `Date` header, in milliseconds. */
  readonly headerClock: () => number
}

export type SandboxServer = { readonly url: string; readonly close: () => Promise<void> }

const parseTarget = (request: IncomingMessage): URL | undefined => {
  const target = `http://sandbox${request.url?.startsWith('/') === true ? '' : '/'}${request.url}`
  return URL.canParse(target) ? new URL(target) : undefined
}

/** The input of a request for the log; null if it is too long. */
const toLoggedInput = (input: unknown): unknown => (printExactJson(input).length > 10_000 ? null : (input ?? null))

/** A server while it runs. */
type Serving = {
  readonly options: ServerOptions
  readonly handlers: ReadonlyArray<Handler>
  readonly nextFault: ReturnType<typeof scheduleFaults>
  readonly context: RequestContext
  /** The number of requests of operations so far. */
  count: number
  isClosed: boolean
  /** Answers that use the database now. It must not be closed before they end, even if nobody waits for them. */
  readonly pendingAnswers: Set<Promise<unknown>>
}

/**
 * Serves an `Api` over HTTP, the way `createApi` calls it. Resolves when the server listens, rejects with a
 * `CommandError`.
 */
export const startServer = async (api: Api, options: ServerOptions): Promise<SandboxServer> => {
  const serving: Serving = {
    options,
    handlers: createHandlers(api, options.lookups, options.published),
    nextFault: scheduleFaults(options.rules, options.seed),
    context: {
      tokenRegistry: options.tokenRegistry,
      checkRate: createRequestLimiter(options.requestRate),
      now: options.now,
      refusesInsideAnswer: options.published !== undefined,
      lastAnswers: new Map<OperationName, string>(),
    },
    count: 0,
    isClosed: false,
    pendingAnswers: new Set(),
  }
  const server = createServer((request, response) => {
    handleRequest(serving, request, response).catch((error: unknown) => {
      if (response.headersSent || request.socket.destroyed) return void request.socket.destroy()
      const message = error instanceof Error ? error.message : String(error)
      const reply = refusalReply(500, `internal error of the sandbox: ${message}`)
      writeReply(request, response, reply, options.headerClock(), 'whole').catch(() => request.socket.destroy())
    })
  })
  server.keepAliveTimeout = 60_000
  server.requestTimeout = 30_000
  server.on('clientError', refuseMalformed)
  await listenOn(server, options)
  const { address, family, port } = server.address() as AddressInfo
  return {
    url: `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`,
    close: async () => {
      serving.isClosed = true
      await new Promise<void>((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      })
      await Promise.race([Promise.all(serving.pendingAnswers), setTimeout(5_000, undefined, { ref: false })])
    },
  }
}

/** Answers a request with the operation or the page at its address. */
const handleRequest = async (serving: Serving, request: IncomingMessage, response: ServerResponse): Promise<void> => {
  const { headerClock, host, pages, tokenRegistry } = serving.options
  const send = (reply: Reply) => writeReply(request, response, reply, headerClock(), 'whole')
  const url = parseTarget(request)
  if (url === undefined) return send(refusalReply(400, 'the address is not a URL'))
  const matches = [...serving.handlers, ...pages].filter(({ path }) => path === url.pathname)
  if (matches.length === 0) return send(refusalReply(404, 'no such operation'))
  const found = matches.find(({ method }) => method === request.method)
  if (found === undefined) {
    const allowed = matches.map(({ method }) => method).join(', ')
    return send(refusalReply(405, `expected ${allowed}`, { Allow: allowed }))
  }
  if ('operation' in found) return handleOperation(serving, found, url, request, response)
  const { accessToken } = tokenRegistry
  const refusal = found.isOperator ? refuseOperatorRequest(request, { accessToken, host }) : undefined
  return send(refusal ?? (await trackAnswer(serving, found.answer(request))))
}

const trackAnswer = <A>({ pendingAnswers }: Serving, answer: Promise<A>): Promise<A> => {
  const settled = answer.catch(() => undefined).finally(() => pendingAnswers.delete(settled))
  pendingAnswers.add(settled)
  return answer
}

const handleOperation = async (
  serving: Serving,
  handler: Handler,
  url: URL,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> => {
  const { headerClock, latency, log, onRequest } = serving.options
  const startedAt = headerClock()
  log.countRequest(handler.operation)
  onRequest?.()
  const fault = serving.nextFault(handler.operation)
  serving.count += 1
  const delayMs = latency(serving.count)
  if (delayMs > 0) await setTimeout(delayMs, undefined, { ref: false })
  if (serving.isClosed) return
  const { reply, input } = await trackAnswer(
    serving,
    performOperation(serving.context, handler, fault, url.searchParams, request),
  )
  log.addEntry({
    at: new Date(startedAt).toISOString(),
    operation: handler.operation,
    method: handler.method,
    path: url.pathname,
    request: handler.tokenHeader === undefined ? null : toLoggedInput(input),
    status: reply?.status ?? null,
    bytes: reply?.body.length ?? 0,
    fault: fault?.kind ?? null,
  })
  if (reply !== undefined) {
    const delivery: BodyDelivery =
      fault?.kind === 'drip' ? { delayMs: fault.delayMs } : fault?.kind === 'truncated' ? 'truncated' : 'whole'
    await writeReply(request, response, reply, startedAt, delivery)
  } else if (fault?.kind !== 'hang') request.socket.resetAndDestroy()
}

const listenOn = (server: ReturnType<typeof createServer>, { host, port }: ServerOptions): Promise<void> =>
  new Promise<void>((resolve, reject) => server.once('error', reject).listen(port, host, resolve)).catch(
    (error: NodeJS.ErrnoException) => {
      throw new CommandError(
        configFailure(`The sandbox cannot listen on ${host}, port ${port} (${error.code}). Choose another.`),
      )
    },
  )

/** Answers a request that is not HTTP with the error body. */
const refuseMalformed = (_error: Error, socket: Duplex): void => {
  if (!socket.writable) return void socket.destroy()
  const { body } = refusalReply(400, 'the request is not HTTP')
  socket.end(
    `HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nContent-Length: ` +
      `${body.length}\r\nConnection: close\r\n\r\n${Buffer.from(body)}`,
  )
}
