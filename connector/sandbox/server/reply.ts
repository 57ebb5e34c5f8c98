import type { IncomingMessage, ServerResponse } from 'node:http'
import { setTimeout } from 'node:timers/promises'
import { gzip } from 'node:zlib'
import type { ApiError } from '../../api'
import { printExactJson } from '../../cdk'

/** An HTTP response before it is written. */
export type Reply = {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body: Uint8Array
}

/** A reply with a value as JSON. */
export const jsonReply = (status: number, value: unknown, headers: Reply['headers'] = {}): Reply => ({
  status,
  headers,
  body: Buffer.from(printExactJson(value)),
})

/** A reply with the error body of the specification, an object with the member `status`. */
export const refusalReply = (status: number, message: string, headers: Reply['headers'] = {}): Reply =>
  jsonReply(status, { status: { code: status, message, type: 'ERROR' } }, headers)

/** The reply for an error of the `Api`; undefined if the server must break the connection. */
export const apiErrorReply = (error: ApiError): Reply | undefined => {
  switch (error._tag) {
    case 'Http':
      return refusalReply(
        error.status,
        error.message,
        error.retryAfter === undefined ? {} : { 'Retry-After': String(Math.ceil(error.retryAfter / 1000)) },
      )
    case 'Application':
      return jsonReply(200, {
        status: {
          code: /^\d{3}$/.test(error.code) ? Number(error.code) : error.code,
          message: error.message,
          type: 'ERROR',
        },
      })
    default:
      return undefined
  }
}

const compressBody = (body: Uint8Array): Promise<Uint8Array> =>
  new Promise((resolve, reject) =>
    gzip(body, { level: 1 }, (error, bytes) => (error === null ? resolve(bytes) : reject(error))),
  )

const acceptsGzip = (request: IncomingMessage): boolean => /\bgzip\b/.test(String(request.headers['accept-encoding']))

/** How to write a body: at once, only its first half, or one byte every `delayMs` milliseconds. */
export type BodyDelivery = 'whole' | 'truncated' | { readonly delayMs: number }

/** Writes one byte at a time until the client closes the connection. */
const dripBody = async (response: ServerResponse, body: Uint8Array, delayMs: number): Promise<void> => {
  for (const byte of body) {
    if (response.destroyed) return
    response.write(Uint8Array.of(byte))
    await setTimeout(delayMs, undefined, { ref: false })
  }
  response.end()
}

/** Writes a reply; `date` is the time of the `Date` header in milliseconds. */
export const writeReply = async (
  request: IncomingMessage,
  response: ServerResponse,
  reply: Reply,
  date: number,
  delivery: BodyDelivery,
): Promise<void> => {
  const compressed = acceptsGzip(request) && reply.body.length > 1024
  const body = compressed ? await compressBody(reply.body) : reply.body
  response.writeHead(reply.status, {
    Date: new Date(date).toUTCString(),
    'Content-Type': 'application/json;charset=UTF-8',
    'Content-Length': body.length,
    ...(compressed ? { 'Content-Encoding': 'gzip' } : {}),
    ...reply.headers,
  })
  if (delivery === 'whole') response.end(body)
  else if (delivery === 'truncated')
    response.write(body.subarray(0, Math.floor(body.length / 2)), () => request.socket.destroy())
  else await dripBody(response, body, delivery.delayMs)
}
