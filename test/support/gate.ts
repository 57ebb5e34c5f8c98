import type { ServerResponse } from 'node:http'
import { answer, listen, type Seen } from '../api/listen'

/** A server before another that passes every request on, but for those that `stop` answers itself. */
export const gate = (
  url: string,
  stop: (seen: Seen, response: ServerResponse) => boolean,
  ended?: (close: () => void) => void,
) =>
  listen((seen, response) => {
    if (stop(seen, response)) return
    const { host: _, connection: __, 'content-length': ___, ...headers } = seen.headers
    fetch(url + seen.url, {
      method: seen.method,
      headers: headers as Record<string, string>,
      ...(seen.method === 'GET' ? {} : { body: seen.body }),
    }).then(
      async (passed) =>
        answer(response, passed.status, Buffer.from(await passed.arrayBuffer()), {
          Date: passed.headers.get('date') ?? '',
        }),
      () => response.destroy(),
    )
  }, ended)
