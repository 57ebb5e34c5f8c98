import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'

/** A request as a bare server saw it; header names and values as they came. */
export type ReceivedRequest = {
  readonly method: string
  readonly url: string
  readonly headers: http.IncomingHttpHeaders
  readonly rawHeaders: ReadonlyArray<string>
  readonly body: string
}

export type Reply = (seen: ReceivedRequest, response: http.ServerResponse, count: number) => void

/** A real server on a free port of this machine, closed when the test ends; one that runs beside others hands in its own `ended`. */
export const startServer = async (reply: Reply, ended: (close: () => void) => void = onTestFinished) => {
  const seen: ReceivedRequest[] = []
  const server = http.createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const one = {
        method: request.method ?? '',
        url: request.url ?? '',
        headers: request.headers,
        rawHeaders: request.rawHeaders,
        body: Buffer.concat(chunks).toString('utf8'),
      }
      seen.push(one)
      reply(one, response, seen.length)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  ended(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}`, port, seen, server }
}

export const sendJson = (response: http.ServerResponse, status: number, body: unknown = {}, headers = {}): void => {
  response.writeHead(status, { 'Content-Type': 'application/json', ...headers })
  response.end(typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body))
}
