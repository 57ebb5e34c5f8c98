import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pagesOf } from './pages.mjs'

const total = Number(process.argv[2])
const part = total / 10
const program = join(import.meta.dirname, '../../../build/bin/source-feedback.js')
const folder = mkdtempSync(join(tmpdir(), 'memory-'))
const file = (name, value) => {
  const path = join(folder, name)
  writeFileSync(path, JSON.stringify(value))
  return path
}

const pages = pagesOf(total)
let reached = 0
let peakOfPart
let child
const peak = () => Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))?.[1]) / 1024

const server = createServer((request, response) => {
  const chunks = []
  request.on('data', (chunk) => chunks.push(chunk))
  request.on('end', () => {
    const asked = JSON.parse(Buffer.concat(chunks).toString())
    const body = pages(asked)
    reached = Math.max(reached, asked.offset)
    if (peakOfPart === undefined && reached >= part) peakOfPart = peak()
    response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': body.length })
    response.end(body)
  })
})
await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))

const config = file('config.json', {
  base_url: `http://127.0.0.1:${server.address().port}`,
  credentials: { auth_type: 'access_token', access_token: 'x' },
  start_date: '2020-01-01T00:00:00Z',
})
const catalog = file('catalog.json', {
  streams: [{ stream: { name: 'reviews', json_schema: {} }, sync_mode: 'incremental' }],
})
const began = Date.now()
child = spawn(process.execPath, [program, 'read', '--config', config, '--catalog', catalog], {
  stdio: ['ignore', 'pipe', 'inherit'],
})
let records = 0
let last = 0
let rest = ''
const mark = Buffer.from('\n{"type":"RECORD"')
child.stdout.on('data', (chunk) => {
  // A process that has ended no longer reports a peak.
  last = peak() || last
  const text = Buffer.concat([Buffer.from(rest, 'latin1'), chunk])
  for (let at = text.indexOf(mark); at >= 0; at = text.indexOf(mark, at + 1)) records += 1
  rest = text.subarray(Math.max(0, text.length - mark.length + 1)).toString('latin1')
})
const status = await new Promise((resolve) => child.on('close', resolve))
server.closeAllConnections()
server.close()
rmSync(folder, { recursive: true })

const seconds = (Date.now() - began) / 1000
const growth = last / peakOfPart
const wrong = [
  ...(status === 0 ? [] : [`exit status ${status}`]),
  ...(records === total ? [] : [`${records} records`]),
  ...(growth <= 1.4 ? [] : [`memory grew by ${growth.toFixed(2)}`]),
]
console.log(
  `${part} records: peak ${peakOfPart?.toFixed(0)} MB. ${records}: peak ` +
    `${last.toFixed(0)} MB, ${growth.toFixed(2)} of that, in ${seconds.toFixed(0)} s.`,
)
console.log(wrong.length === 0 ? 'good' : `NOT good: ${wrong.join(', ')}`)
process.exit(wrong.length === 0 ? 0 : 1)
