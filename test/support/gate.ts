import type { ServerResponse } from 'node:http'
import { type ReceivedRequest, sendJson, startServer } from './listen'

/** A proxy before the server at `url`; `intercept` returns true for the requests that it answers itself. */
export const startProxy = (
  url: string,
  intercept: (seen: ReceivedRequest, response: ServerResponse) => boolean,
  onEnd?: (close: () => void) => void,
) =>
  startServer((seen, response) => {
    if (intercept(seen, response)) return
    const { host: _, connection: __, 'content-length': ___, ...headers } = seen.headers
    fetch(url + seen.url, {
      method: seen.method,
      headers: headers as Record<string, string>,
      ...(seen.method === 'GET' ? {} : { body: seen.body }),
    }).then(
      async (reply) =>
        sendJson(response, reply.status, Buffer.from(await reply.arrayBuffer()), {
          Date: reply.headers.get('date') ?? '',
        }),
      () => response.destroy(),
    )
  }, onEnd)
