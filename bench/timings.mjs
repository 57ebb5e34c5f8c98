import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { bin } from './bin.mjs'

const timed = async (effect) => {
  const started = process.hrtime.bigint()
  await effect()
  return Number(process.hrtime.bigint() - started) / 1e6
}

const repeat = async (times, effect) => {
  const results = []
  for (let n = 0; n < times; n += 1) results.push(await timed(() => effect(n)))
  return results
}

const program = (name, args) => ({
  name,
  run: ({ short }) => repeat(short ? 3 : 15, () => execFileSync(process.execPath, args, { stdio: 'ignore' })),
})

const post = async (url, token, offset) => {
  const response = await fetch(`${url}/api/reputation/v1/reviews`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accessToken: token },
    body: JSON.stringify({ modifiedTimeFrom: '2000-01-01T00:00:00.000Z', offset, limit: 1000 }),
  })
  const { byteLength } = await response.arrayBuffer()
  if (!response.ok || byteLength < 100_000) throw new Error(`sandbox: status ${response.status}, ${byteLength} bytes`)
}

/** Pages of 1,000 at offsets spread over all the sandbox's reviews, so that successive pages are far apart. */
const sandboxPages = {
  name: 'sandbox, a page of 1,000 at any offset',
  run: async ({ short }) => {
    const reviews = short ? 20_000 : 1_000_000
    const child = spawn(process.execPath, [bin('feedback'), 'sandbox', '--port', '0', '--reviews', String(reviews)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    try {
      const [line] = await once(child.stdout, 'data')
      const { url, access_token } = JSON.parse(line.toString())
      const offset = (n) => Math.floor(((n * 0.618) % 1) * (reviews - 1000))
      return await repeat(short ? 5 : 41, (n) => post(url, access_token, offset(n)))
    } finally {
      child.kill()
      await once(child, 'exit')
    }
  },
}

/** What takes milliseconds instead of processing records. Each returns its single durations. */
export const timings = {
  node: program('an empty node process', ['--eval', '']),
  spec: program('source-feedback spec', [bin('source-feedback'), 'spec']),
  sandbox: sandboxPages,
}
