import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'

/** A request as the server received it; `rawHeaders` has names and values as they came. */
export type ReceivedRequest = {
  readonly method: string
  readonly url: string
  readonly headers: http.IncomingHttpHeaders
  readonly rawHeaders: ReadonlyArray<string>
  readonly body: string
}

export type Reply = (seen: ReceivedRequest, response: http.ServerResponse, count: number) => void

/**
 * A server on a free port of this machine that `reply` answers for. It is closed when the test ends; a test that runs
 * concurrently passes its own `onEnd`.
 */
export const startServer = async (reply: Reply, onEnd: (close: () => void) => void = onTestFinished) => {
  const seen: ReceivedRequest[] = []
  const server = http.createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const received = {
        method: request.method ?? '',
        url: request.url ?? '',
        headers: request.headers,
        rawHeaders: request.rawHeaders,
        body: Buffer.concat(chunks).toString('utf8'),
      }
      seen.push(received)
      reply(received, response, seen.length)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onEnd(() => {
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
