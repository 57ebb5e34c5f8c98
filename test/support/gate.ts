import type { ServerResponse } from 'node:http'
import { type ReceivedRequest, sendJson, startServer } from './listen'

/** A server before another that passes every request on, but for those that `stop` answers itself. */
export const startProxy = (
  url: string,
  stop: (seen: ReceivedRequest, response: ServerResponse) => boolean,
  ended?: (close: () => void) => void,
) =>
  startServer((seen, response) => {
    if (stop(seen, response)) return
    const { host: _, connection: __, 'content-length': ___, ...headers } = seen.headers
    fetch(url + seen.url, {
      method: seen.method,
      headers: headers as Record<string, string>,
      ...(seen.method === 'GET' ? {} : { body: seen.body }),
    }).then(
      async (passed) =>
        sendJson(response, passed.status, Buffer.from(await passed.arrayBuffer()), {
          Date: passed.headers.get('date') ?? '',
        }),
      () => response.destroy(),
    )
  }, ended)
