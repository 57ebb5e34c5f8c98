import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import * as E from 'fp-ts/Either'
import type { Api } from '../api/api'
import * as routes from '../api/routes'
import { Stopped } from '../cdk/cli'
import { configFailure } from '../cdk/failure'
import type { Fault, FaultPlan } from './faults'
import { type Handler, handlers } from './handlers'
import { errorReply, jsonReply, type Reply, refusal, respond } from './respond'
import type { Tokens } from './tokens'

export type Serving = {
  readonly host: string
  /** 0: any that is free. */
  readonly port: number
  readonly tokens: Tokens
  readonly fail: FaultPlan
  /** The clock that the `Date` header shows, milliseconds. */
  readonly now: () => number
}

export type Stats = {
  /** Requests per operation, by its name in api/routes.ts. */
  readonly requests: Readonly<Record<string, number>>
  /** Requests of the two exports, which `fail` counts. */
  readonly exports: number
}

export type Server = {
  readonly url: string
  readonly stats: () => Stats
  readonly close: () => Promise<void>
}

export const tokenPath = '/oauth/token'
const maxBody = 64 * 1024 * 1024

const isExport = (name: string): boolean =>
  name === routes.exportReviews.name || name === routes.exportDeletedReviews.name

const readBody = async (request: IncomingMessage): Promise<Buffer | undefined> => {
  const chunks: Array<Buffer> = []
  let size = 0
  for await (const chunk of request) {
    size += chunk.length
    if (size > maxBody) return undefined
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

const parsed = (body: Buffer): E.Either<unknown, unknown> =>
  E.tryCatch(
    () => JSON.parse(body.toString('utf8')),
    (error) => error,
  )

const headerOf = (request: IncomingMessage, name: string): string | undefined => {
  const value = request.headers[name.toLowerCase()]
  return Array.isArray(value) ? value[0] : value
}

/** What an operation answers; undefined: nothing, the connection breaks. */
const answer = async (handler: Handler, request: IncomingMessage, tokens: Tokens): Promise<Reply | undefined> => {
  const body = await readBody(request)
  if (body === undefined) return refusal(413, `The body is longer than ${maxBody} bytes`)
  if (handler.token !== undefined && !tokens.isValid(headerOf(request, handler.token)))
    return refusal(401, `The header ${handler.token} holds no valid access token`)
  const json = parsed(body)
  if (E.isLeft(json)) return refusal(400, 'The body is not JSON')
  const done = await handler.answer(json.right)
  return E.isLeft(done) ? errorReply(done.left) : { status: 200, body: done.right.body }
}

const exchange = async (request: IncomingMessage, tokens: Tokens): Promise<Reply> => {
  const json = parsed((await readBody(request)) ?? Buffer.alloc(0))
  if (E.isLeft(json)) return refusal(400, 'The body is not JSON')
  const issued = tokens.exchange(json.right)
  return issued === undefined ? refusal(401, 'Unknown application, or a wrong secret') : jsonReply(200, issued)
}

/** An `Api` over HTTP: the inverse of `httpApi`. */
export const serve = async (api: Api, { host, port, tokens, fail, now }: Serving): Promise<Server> => {
  const operations = handlers(api)
  const requests: Record<string, number> = {}
  let exports = 0

  const faultOf = ({ name }: Handler): Fault | undefined => (isExport(name) ? fail.get(++exports) : undefined)

  const route = async (request: IncomingMessage): Promise<Reply | Fault | undefined> => {
    const { pathname } = new URL(request.url ?? '/', 'http://sandbox')
    if (pathname === tokenPath && request.method === 'POST') return exchange(request, tokens)
    const there = operations.filter(({ path }) => path === pathname)
    if (there.length === 0) return refusal(404, 'No such operation')
    const handler = there.find(({ method }) => method === request.method)
    if (handler === undefined) return refusal(405, `${pathname} takes ${there.map(({ method }) => method).join(', ')}`)
    requests[handler.name] = (requests[handler.name] ?? 0) + 1
    const fault = faultOf(handler)
    return fault === undefined || fault === 'cutjson' ? cut(fault, await answer(handler, request, tokens)) : fault
  }

  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const began = now()
    const reply = await route(request)
    if (reply === 'hang') return
    if (reply === undefined || reply === 'reset' || reply === 'cutjson') request.socket.resetAndDestroy()
    else if (reply === '429')
      await respond(request, response, refusal(429, 'Too many requests', { 'Retry-After': '1' }), began)
    else if (reply === '500') await respond(request, response, refusal(500, 'Internal error'), began)
    else await respond(request, response, reply, began)
  }

  const server = createServer((request, response) => {
    handle(request, response).catch(() => request.socket.destroy())
  })
  server.keepAliveTimeout = 60_000
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(port, host, resolve)).catch(
    (error) => {
      throw new Stopped(
        configFailure(`The sandbox cannot listen on ${host}:${port} (${error.code}). Choose another port.`),
      )
    },
  )
  const { address, family, port: bound } = server.address() as AddressInfo
  return {
    url: `http://${family === 'IPv6' ? `[${address}]` : address}:${bound}`,
    stats: () => ({ requests: { ...requests }, exports }),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

const cut = (fault: Fault | undefined, reply: Reply | undefined): Reply | undefined =>
  fault === undefined || reply === undefined
    ? reply
    : { ...reply, body: reply.body.subarray(0, Math.floor(reply.body.length / 2)) }
