import { once } from 'node:events'
import { Agent } from 'node:http'
import axios from 'axios'

const client = axios.create({
  responseType: 'arraybuffer',
  maxContentLength: Number.POSITIVE_INFINITY,
  httpAgent: new Agent({ keepAlive: true, maxSockets: 1 }),
  proxy: false,
})

/** The answers of `count` pages of 1,000, one after another over one connection. */
export async function* pages(base, count) {
  for (let page = 0; page < count; page += 1) {
    const asked = { modifiedTimeFrom: '2024-01-01T00:00:00.000Z', offset: page * 1000, limit: 1000 }
    const { data } = await client.post(`${base}/api/reputation/v1/reviews`, asked)
    yield data
  }
}

export const print = async (chunk) => {
  if (!process.stdout.write(chunk)) await once(process.stdout, 'drain')
}

export const [, , base, count] = process.argv
