import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pagesOf } from './pages.mjs'

/** Audits this many reviews in each way. Fails if one needs more memory, or more requests, than docs/proof.md says. */
const total = Number(process.argv[2])
const maxPeak = 360
const maxRequests = 1.25 * Math.ceil(total / 1000)
const bin = join(import.meta.dirname, '../../../build/bin')
const folder = mkdtempSync(join(tmpdir(), 'memory-audit-'))
const file = (name, text) => {
  const path = join(folder, name)
  writeFileSync(path, text)
  return path
}

const pages = pagesOf(total)
let requests = 0
const server = createServer((request, response) => {
  const chunks = []
  request.on('data', (chunk) => chunks.push(chunk))
  request.on('end', () => {
    requests += 1
    const asked = JSON.parse(Buffer.concat(chunks).toString())
    const isDeleted = request.url.endsWith('deleted-reviews')
    const body = isDeleted ? Buffer.from(JSON.stringify({ reviews: [], filter: asked })) : pages(asked)
    response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': body.length })
    response.end(body)
  })
})
await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))

const config = file(
  'config.json',
  JSON.stringify({
    base_url: `http://127.0.0.1:${server.address().port}`,
    credentials: { auth_type: 'access_token', access_token: 'x' },
    start_date: '2020-01-01T00:00:00Z',
  }),
)
const catalog = file(
  'catalog.json',
  JSON.stringify({ streams: [{ stream: { name: 'reviews', json_schema: {} }, sync_mode: 'incremental' }] }),
)
const ids = Array.from({ length: 100 }, (_, n) => `${10_000_000_000 + Math.floor((n * total) / 100)},missing`)
const answer = file('answer.csv', ['id,difference', ...ids].join('\n'))

const run = async (program, args) => {
  const began = performance.now()
  requests = 0
  let peak = 0
  let cpu = 0
  const child = spawn(process.execPath, [join(bin, `${program}.js`), ...args], { stdio: ['ignore', 'pipe', 'inherit'] })
  child.stdout.resume()
  const look = setInterval(() => {
    try {
      peak = Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))?.[1]) / 1024 || peak
      const [, user, system] = /^(?:\S+ ){13}(\d+) (\d+)/.exec(readFileSync(`/proc/${child.pid}/stat`, 'utf8')) ?? []
      cpu = user === undefined ? cpu : (Number(user) + Number(system)) / 100
    } catch {}
  }, 20)
  const status = await new Promise((resolve) => child.on('close', resolve))
  clearInterval(look)
  return { status, peak, cpu, requests, seconds: (performance.now() - began) / 1000 }
}

const audit = (stream, ...args) => [
  ...['audit', '--config', config, '--stream', stream, '--table', 't', '--dialect', 'postgres', ...args],
]
const cases = [
  ['a plain read', 'source-feedback', ['read', '--config', config, '--catalog', catalog]],
  ['audit', 'feedback', audit('reviews')],
  ['audit of review_contents', 'feedback', audit('review_contents')],
  ['audit --deep', 'feedback', audit('reviews', '--deep')],
  ['audit --ids, a tenth', 'feedback', audit('reviews', '--buckets', '10', '--ids', '3')],
  ['audit --repair', 'feedback', audit('reviews', '--repair', answer, '--folder', join(folder, 'repair'))],
]
const wrong = []
for (const [name, program, args] of cases) {
  const { status, peak, cpu, requests: count, seconds } = await run(program, args)
  console.log(
    `${name}: peak ${peak.toFixed(0)} MiB, ${cpu.toFixed(1)} s of CPU, ${seconds.toFixed(1)} s, ${count} requests`,
  )
  if (status !== 0) wrong.push(`${name}: exit status ${status}`)
  if (peak > maxPeak) wrong.push(`${name}: more than ${maxPeak} MiB`)
  if (count > maxRequests) wrong.push(`${name}: more than ${maxRequests} requests`)
}
server.closeAllConnections()
server.close()
rmSync(folder, { recursive: true })
console.log(wrong.length === 0 ? 'good' : `NOT good: ${wrong.join(', ')}`)
process.exit(wrong.length === 0 ? 0 : 1)
