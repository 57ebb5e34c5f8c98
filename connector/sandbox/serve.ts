import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import { setTimeout } from 'node:timers/promises'
import type { Api, Lookups } from '../api/api'
import { printJson } from '../api/json-text'
import { Stopped } from '../cdk/cli'
import { configFailure } from '../cdk/failure'
import type { Rule } from './faults'
import { type Handler, handlers } from './handlers'
import type { Log } from './log'
import type { Operation } from './operations'
import { type Gate, perform } from './perform'
import { limiter, type Rate } from './rate'
import { type Delivery, type Reply, refusal, respond } from './respond'
import { striking } from './strike'
import type { Tokens } from './tokens'

/** Something beside the operations that is served without a token. */
export type Page = {
  readonly method: 'GET' | 'POST'
  readonly path: string
  readonly answer: (request: IncomingMessage) => Promise<Reply>
}

export type Serving = {
  readonly host: string
  /** 0: any that is free. */
  readonly port: number
  readonly tokens: Tokens
  readonly rules: ReadonlyArray<Rule>
  /** Of the faults' chances and of the latency. */
  readonly seed: number
  readonly rate: Rate
  /** Milliseconds to wait before answering the nth request of an operation. */
  readonly latency: (n: number) => number
  readonly lookups: Lookups
  readonly pages: ReadonlyArray<Page>
  readonly log: Log
  /** The clock that rates and tokens go by, milliseconds. */
  readonly now: () => number
  /** The clock that the `Date` header shows, milliseconds. */
  readonly shown: () => number
}

export type Server = { readonly url: string; readonly close: () => Promise<void> }

const targetOf = (request: IncomingMessage): URL | undefined => {
  const target = `http://sandbox${request.url?.startsWith('/') === true ? '' : '/'}${request.url}`
  return URL.canParse(target) ? new URL(target) : undefined
}

/** What the log can hold of a request. */
const brief = (asked: unknown): unknown => (printJson(asked).length > 10_000 ? null : (asked ?? null))

/** An `Api` over HTTP: the inverse of `httpApi`. */
export const serve = async (api: Api, serving: Serving): Promise<Server> => {
  const { tokens, now, shown, log, pages } = serving
  const operations = handlers(api, serving.lookups)
  const strike = striking(serving.rules, serving.seed)
  const gate: Gate = { tokens, limited: limiter(serving.rate), now, last: new Map<Operation, string>() }
  let count = 0

  const operate = async (handler: Handler, url: URL, request: IncomingMessage, response: ServerResponse) => {
    const began = shown()
    log.begun(handler.operation)
    const fault = strike(handler.operation)
    const wait = serving.latency(++count)
    if (wait > 0) await setTimeout(wait, undefined, { ref: false })
    const { reply, asked } = await perform(gate, handler, fault, url.searchParams, request)
    log.ended({
      at: new Date(began).toISOString(),
      operation: handler.operation,
      method: handler.method,
      path: url.pathname,
      request: handler.token === undefined ? null : brief(asked),
      status: reply?.status ?? null,
      bytes: reply?.body.length ?? 0,
      fault: fault?.kind ?? null,
    })
    if (reply !== undefined) {
      const delivery: Delivery =
        fault?.kind === 'drip' ? { everyMillis: fault.delay } : fault?.kind === 'truncated' ? 'truncated' : 'whole'
      await respond(request, response, reply, began, delivery)
    } else if (fault?.kind !== 'hang') request.socket.resetAndDestroy()
  }

  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const url = targetOf(request)
    const answer = (reply: Reply) => respond(request, response, reply, shown(), 'whole')
    if (url === undefined) return answer(refusal(400, 'the address is not one'))
    const there = [...operations, ...pages].filter(({ path }) => path === url.pathname)
    if (there.length === 0) return answer(refusal(404, 'no such operation'))
    const found = there.find(({ method }) => method === request.method)
    if (found === undefined) {
      const allowed = there.map(({ method }) => method).join(', ')
      return answer(refusal(405, `expected ${allowed}`, { Allow: allowed }))
    }
    return 'operation' in found ? operate(found, url, request, response) : answer(await found.answer(request))
  }

  const server = createServer((request, response) => {
    handle(request, response).catch((error: unknown) => {
      if (response.headersSent || request.socket.destroyed) return void request.socket.destroy()
      const message = error instanceof Error ? error.message : String(error)
      respond(request, response, refusal(500, `a fault of the sandbox: ${message}`), shown(), 'whole').catch(() =>
        request.socket.destroy(),
      )
    })
  })
  server.keepAliveTimeout = 60_000
  server.requestTimeout = 30_000
  server.on('clientError', malformed)
  await listening(server, serving)
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

const listening = (server: ReturnType<typeof createServer>, { host, port }: Serving): Promise<void> =>
  new Promise<void>((resolve, reject) => server.once('error', reject).listen(port, host, resolve)).catch(
    (error: NodeJS.ErrnoException) => {
      throw new Stopped(
        configFailure(`The sandbox cannot listen on ${host}, port ${port} (${error.code}). Choose another.`),
      )
    },
  )

/** What is not even HTTP gets the error body too. */
const malformed = (_error: Error, socket: Duplex): void => {
  if (!socket.writable) return void socket.destroy()
  const { body } = refusal(400, 'the request is not HTTP')
  socket.end(
    `HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n${Buffer.from(body)}`,
  )
}
