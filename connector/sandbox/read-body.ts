import type { IncomingMessage } from 'node:http'

/** No request of the service comes near it. */
export const maxBodyBytes = 64 * 1024 * 1024

/** The whole body; undefined if it is longer than `maxBody`. */
export const readBody = async (request: IncomingMessage): Promise<Buffer | undefined> => {
  const chunks: Array<Buffer> = []
  let size = 0
  for await (const chunk of request) {
    size += chunk.length
    if (size <= maxBodyBytes) chunks.push(chunk)
  }
  return size > maxBodyBytes ? undefined : Buffer.concat(chunks)
}
