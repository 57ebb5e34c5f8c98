import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import { setTimeout } from 'node:timers/promises'
import type { Api, LookupRoutes } from '../../api'
import { CommandError, configFailure, printExactJson } from '../../cdk'
import { type FaultRule, scheduleFaults } from '../faults/plan'
import type { OperationName, TokenRegistry } from '../operations/operation'
import { createHandlers, type Handler, performOperation, type RequestContext } from './handlers'
import type { RequestLog, SandboxPage } from './pages'
import { type BodyDelivery, type Reply, refusalReply, writeReply } from './reply'

/** Between two numbers of milliseconds. */
export type Latency = { readonly minMs: number; readonly maxMs: number }

/** The wait before the nth answer, in milliseconds; it only depends on its arguments. */
export const createLatency =
  ({ minMs, maxMs }: Latency, seed: number) =>
  (n: number): number =>
    minMs + ((Math.imul(n + seed, 0x9e3779b1) >>> 0) % (maxMs - minMs + 1))

/** So many requests in any window of so many seconds. */
export type RequestRate = { readonly requests: number; readonly seconds: number }

/** Counts requests; answers how many milliseconds to wait if one is too many. */
export const createRequestLimiter = ({ requests, seconds }: RequestRate): ((now: number) => number | undefined) => {
  let taken: ReadonlyArray<number> = []
  return (now) => {
    taken = taken.filter((time) => time > now - seconds * 1000)
    const [first] = taken
    if (first !== undefined && taken.length >= requests) return first + seconds * 1000 - now
    taken = [...taken, now]
    return undefined
  }
}

export type ServerOptions = {
  readonly host: string
  /** 0: any that is free. */
  readonly port: number
  readonly tokenRegistry: TokenRegistry
  readonly rules: ReadonlyArray<FaultRule>
  /** Of the faults' chances and of the latency. */
  readonly seed: number
  readonly requestRate: RequestRate
  /** Milliseconds to wait before answering the nth request of an operation. */
  readonly latency: (n: number) => number
  readonly lookups: LookupRoutes
  readonly pages: ReadonlyArray<SandboxPage>
  readonly log: RequestLog
  /** The clock that rates and tokens go by, milliseconds. */
  readonly now: () => number
  /** The clock that the `Date` header shows, milliseconds. */
  readonly headerClock: () => number
}

export type SandboxServer = { readonly url: string; readonly close: () => Promise<void> }

const parseTarget = (request: IncomingMessage): URL | undefined => {
  const target = `http://sandbox${request.url?.startsWith('/') === true ? '' : '/'}${request.url}`
  return URL.canParse(target) ? new URL(target) : undefined
}

/** What the log can hold of a request. */
const loggedInput = (asked: unknown): unknown => (printExactJson(asked).length > 10_000 ? null : (asked ?? null))

/** An `Api` over HTTP: the inverse of `httpApi`. */
export const startServer = async (api: Api, serving: ServerOptions): Promise<SandboxServer> => {
  const { tokenRegistry, now, headerClock, log, pages } = serving
  const operations = createHandlers(api, serving.lookups)
  const strike = scheduleFaults(serving.rules, serving.seed)
  const gate: RequestContext = {
    tokenRegistry,
    checkRate: createRequestLimiter(serving.requestRate),
    now,
    lastAnswers: new Map<OperationName, string>(),
  }
  let count = 0

  const operate = async (handler: Handler, url: URL, request: IncomingMessage, response: ServerResponse) => {
    const began = headerClock()
    log.countRequest(handler.operation)
    const fault = strike(handler.operation)
    const wait = serving.latency(++count)
    if (wait > 0) await setTimeout(wait, undefined, { ref: false })
    const { reply, input } = await performOperation(gate, handler, fault, url.searchParams, request)
    log.addEntry({
      at: new Date(began).toISOString(),
      operation: handler.operation,
      method: handler.method,
      path: url.pathname,
      request: handler.tokenHeader === undefined ? null : loggedInput(input),
      status: reply?.status ?? null,
      bytes: reply?.body.length ?? 0,
      fault: fault?.kind ?? null,
    })
    if (reply !== undefined) {
      const delivery: BodyDelivery =
        fault?.kind === 'drip' ? { everyMillis: fault.delayMs } : fault?.kind === 'truncated' ? 'truncated' : 'whole'
      await writeReply(request, response, reply, began, delivery)
    } else if (fault?.kind !== 'hang') request.socket.resetAndDestroy()
  }

  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const url = parseTarget(request)
    const answer = (reply: Reply) => writeReply(request, response, reply, headerClock(), 'whole')
    if (url === undefined) return answer(refusalReply(400, 'the address is not one'))
    const there = [...operations, ...pages].filter(({ path }) => path === url.pathname)
    if (there.length === 0) return answer(refusalReply(404, 'no such operation'))
    const found = there.find(({ method }) => method === request.method)
    if (found === undefined) {
      const allowed = there.map(({ method }) => method).join(', ')
      return answer(refusalReply(405, `expected ${allowed}`, { Allow: allowed }))
    }
    return 'operation' in found ? operate(found, url, request, response) : answer(await found.answer(request))
  }

  const server = createServer((request, response) => {
    handle(request, response).catch((error: unknown) => {
      if (response.headersSent || request.socket.destroyed) return void request.socket.destroy()
      const message = error instanceof Error ? error.message : String(error)
      writeReply(
        request,
        response,
        refusalReply(500, `a fault of the sandbox: ${message}`),
        headerClock(),
        'whole',
      ).catch(() => request.socket.destroy())
    })
  })
  server.keepAliveTimeout = 60_000
  server.requestTimeout = 30_000
  server.on('clientError', refuseMalformed)
  await listenOn(server, serving)
  const { address, family, port } = server.address() as AddressInfo
  return {
    url: `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

const listenOn = (server: ReturnType<typeof createServer>, { host, port }: ServerOptions): Promise<void> =>
  new Promise<void>((resolve, reject) => server.once('error', reject).listen(port, host, resolve)).catch(
    (error: NodeJS.ErrnoException) => {
      throw new CommandError(
        configFailure(`The sandbox cannot listen on ${host}, port ${port} (${error.code}). Choose another.`),
      )
    },
  )

/** What is not even HTTP gets the error body too. */
const refuseMalformed = (_error: Error, socket: Duplex): void => {
  if (!socket.writable) return void socket.destroy()
  const { body } = refusalReply(400, 'the request is not HTTP')
  socket.end(
    `HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n${Buffer.from(body)}`,
  )
}
