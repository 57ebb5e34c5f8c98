import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import https from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { checkCommand } from '../../connector/cli/check'
import type { ServiceKind } from '../../connector/sandbox/server/handlers'
import { startSandbox } from '../../connector/sandbox/start'
import { createCertificate } from '../support/certificate'
import { codeBlocks, docsFolder, fillIn } from '../support/doc-blocks'
import { createJsonFolder, writeTempFile } from '../support/files'
import { type ReceivedRequest, sendJson, startServer } from '../support/listen'
import { dayMs, type ObservedService, startObservedService } from '../support/observed-service'
import { runCommand } from '../support/run-command'
import { listTexts } from '../support/source-texts'

const page = readFileSync(join(docsFolder, 'first-sync.md'), 'utf8')
const installed = join(__dirname, '..', '..', 'node_modules', '.bin')

/** The messages in the tables of the page: cells of nothing but messages. `…` stands for the part that varies. */
const messages = [...page.matchAll(/^\| (.*) \|$/gm)].flatMap(([, row = '']) =>
  row
    .split(' | ')
    .filter((cell) => /^`[^`]+`( or `[^`]+`)*$/.test(cell))
    .flatMap((cell) => [...cell.matchAll(/`([^`]+)`/g)].map(([, text = '']) => text)),
)

describe('the commands of first-sync.md', () => {
  /** Runs the shell commands of the page one after the other; stops at the first that fails. */
  const runPage = async (like: ServiceKind) => {
    const sandbox = await startSandbox({ reviews: 120, like })
    const files = createJsonFolder()
    const blocks = codeBlocks('first-sync.md', 'sh').map((text) => fillIn(text, sandbox))
    const child = spawn('bash', ['-c', ['set -euo pipefail', ...blocks].join('\n')], {
      cwd: files.path,
      env: { ...process.env, PATH: [installed, process.env.PATH].join(':') },
    })
    let output = ''
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk: Buffer) => {
        output += chunk.toString()
      })
    const status = await new Promise((resolve) => child.on('close', resolve))
    const secrets = [sandbox.accessToken, sandbox.applicationSecret]
    const hasTable = existsSync(join(files.path, 'reviews.duckdb'))
    files.remove()
    await sandbox.close()
    return { status, output, hasTable, secrets }
  }

  it.each(['specification', 'published'] as const)('lead to the first table at a sandbox like the %s', async (like) => {
    const { status, output, hasTable, secrets } = await runPage(like)
    expect([status, hasTable], output).toEqual([0, true])
    expect(output).toMatch(/Everything works\.[\s\S]*reviews +complete[\s\S]*rating[\s\S]*Everything works\./)
    for (const secret of secrets) expect(output).not.toContain(secret)
  })
})

const fixed = { auth_type: 'access_token', access_token: 'not-for-anybody' }
const application = { auth_type: 'application', application_id: 'app', application_secret: 'S3CR3T' }
const entities = { location_ids: ['1'] }
const lookups = { sources: { path: '/find', records_path: 'sources', primary_key: 'id' } }
const status = (code: string | number, message = 'no') => ({ status: { code, message } })
const isToken = ({ url }: ReceivedRequest) => url.includes('token')
const isDeleted = ({ url }: ReceivedRequest) => url.includes('deleted')
const isReviews = ({ url }: ReceivedRequest) => url === '/api/reputation/v1/reviews'

type Reply = (seen: ReceivedRequest, to: ServerResponse, count: number) => void

/** Answers what `reply` leaves over as a service with 20 reviews. */
const otherwise =
  (isAnswered: (seen: ReceivedRequest) => boolean, reply: Reply, rows = 20): Reply =>
  (seen, to, count) => {
    if (isAnswered(seen)) return reply(seen, to, count)
    const filter = isToken(seen) || seen.body === '' ? {} : JSON.parse(seen.body)
    if (isToken(seen)) return sendJson(to, 200, { accessToken: 'abc' })
    const isLater = String(filter.modifiedTimeFrom) > '2025'
    const reviews = Array.from({ length: isDeleted(seen) || isLater ? 0 : rows }, (_, n) => ({
      id: n + 1,
      modifiedTime: new Date(Date.parse('2024-02-01T00:00:00Z') + n * 1000).toISOString(),
    })).slice(filter.offset, filter.offset + filter.limit)
    return sendJson(to, 200, { reviews, filter })
  }
const always =
  (code: number, body: unknown = status(code), headers = {}): Reply =>
  (_, to) =>
    sendJson(to, code, body, headers)

const cutShort: Reply = (_, to) => {
  to.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': 100 })
  to.write('{', () => to.destroy())
}

/**
 * A check: which service answers, and further config keys. `url`: replaces the server's address, for which `https:`
 * stands; `path`: follows it. `isUntrusted`: a service over https with an untrusted certificate.
 */
type Scenario = {
  readonly path?: string
  readonly isUntrusted?: boolean
  readonly reply?: Reply
  readonly world?: ObservedService
  readonly more?: object
  readonly url?: string
  readonly select?: string
}

const withApplication = (reply: Reply, more: object = {}): Scenario => ({
  reply: otherwise(isToken, reply),
  more: { credentials: { ...application, ...more } },
})
const token = (expiresIn: unknown): Scenario => ({
  world: { token: () => ({ accessToken: 'abc', expiresIn }) },
  more: { credentials: application },
})
const pageRows =
  (modifiedTime: string, ids: (offset: number) => number): Reply =>
  (seen, to) => {
    const filter = JSON.parse(seen.body)
    const reviews = [{ id: ids(filter.offset), modifiedTime }]
    sendJson(to, 200, { reviews: filter.modifiedTimeFrom > '2025' ? [] : reviews, filter })
  }
const onComments = ({ url }: ReceivedRequest) => url.startsWith('/api/bsr/comments')
const feedbackOf = (seen: ReceivedRequest) => onComments(seen) || seen.url.includes('/bsr/v2/')
const noFeedback = { status: { code: 200, message: 'success' }, data: { entities: [{ id: '1', name: 'One' }] } }
/** The feedback operations work, until the windows are asked for. */
const onWindows = (reply: Reply): Scenario => ({
  reply: otherwise(feedbackOf, (seen, to, count) =>
    /fromDate/.test(seen.url + seen.body) ? reply(seen, to, count) : sendJson(to, 200, noFeedback),
  ),
  more: { entities },
})

/** A service that reads the time of a filter so much later, and has rows of these times; milliseconds. */
const dated = (zone: number, times: ReadonlyArray<number>, more: object = {}): Scenario => ({
  reply: otherwise(isReviews, (seen, to) => {
    const filter = JSON.parse(seen.body)
    const from = Date.parse(filter.modifiedTimeFrom) + zone
    const reviews = times
      .filter((time) => time > from)
      .map((time) => ({ id: times.indexOf(time) + 1, modifiedTime: new Date(time).toISOString() }))
    sendJson(to, 200, { reviews: reviews.slice(filter.offset), filter })
  }),
  more,
})

const scenarios: ReadonlyArray<Scenario> = [
  // What it finds out.
  { world: {} },
  { world: { reviews: 0 } },
  { world: { reviews: 1 } },
  { world: { reviews: 150, clamp: 100 } },
  { world: { reviews: 5, clamp: 100, echoesClamp: true } },
  { world: { reviews: 2000, ignoresLimit: true }, more: { page_size: 50 } },
  { world: { reviews: 30, order: (n, count) => count - 1 - n }, more: { page_size: 20 } },
  { world: { reviews: 40, order: (n, count) => (n * 7919) % count } },
  { world: { reviews: 20_000 } },
  { world: { reviews: 5000, delay: 120 }, more: { page_size: 100 } },
  { world: { reviews: 20_000, depth: 10_000 }, more: { rate_limit: { requests_per_minute: 400 } } },
  { world: { reviews: 3000, beyondEnd: 'last row' } },
  { world: { reviews: 700_000 }, more: { rate_limit: { requests_per_minute: 12 } } },
  { world: {}, more: { rate_limit: { requests_per_minute: 10 } } },
  { world: {}, more: { rate_limit: { requests_per_minute: 1 } } },
  { world: { reviews: 20_000 }, more: { rate_limit: { requests_per_minute: 600 } } },
  { world: { clock: 300_000 } },
  { world: { clock: -300_000 } },
  { world: { clock: null } },
  { world: { clock: (n) => n * 60_000 } },
  { world: { headers: { 'X-RateLimit-Limit': '60' } } },
  {
    reply: (seen, to, count) =>
      count === 9
        ? sendJson(to, 429, status(429))
        : otherwise(
            () => false,
            () => undefined,
          )(seen, to, count),
  },
  {
    reply: otherwise(
      isReviews,
      pageRows('2024-02-01T00:00:00.000Z', (offset) => offset + 1),
    ),
  },
  {
    reply: otherwise(isReviews, (seen, to) => {
      const filter = JSON.parse(seen.body)
      const times = ['2024-02-03', '2024-02-01', '2024-02-02']
      const reviews = times.map((day, n) => ({ id: n + 1, modifiedTime: `${day}T00:00:00.000Z` })).slice(filter.offset)
      sendJson(to, 200, { reviews: filter.modifiedTimeFrom > '2025' ? [] : reviews, filter })
    }),
  },
  token(1800),
  token('yesterday'),
  token(undefined),
  token(new Date(Date.now() + dayMs / 4).toISOString().slice(0, 19)),
  { world: {}, more: { entities: { location_ids: ['1', '2', '7'] } } },
  { world: { unknownEntity: 404 }, more: { entities: { location_ids: Array.from({ length: 12 }, (_, n) => `${n}`) } } },
  { world: { unknownEntity: 'error in a 200' }, more: { entities: { location_ids: ['1', '7'] } } },
  { world: { windows: 'ignored' }, more: { entities } },
  { world: { mentions: [] }, more: { entities } },
  { world: { mentions: [], windows: 'ignored' }, more: { entities } },
  { world: { mentions: [], echo: 'no window' }, more: { entities } },
  { world: {}, more: { entities: { from_reviews: { locations: true } } } },
  onWindows(always(405)),
  onWindows(always(200, status('X'))),
  onWindows((_, to) => void to.destroy()),
  onWindows(always(429, status(429), { 'Retry-After': '3600' })),
  onWindows(always(200, '[]')),
  // The configuration.
  { world: {}, more: { start_date: 'yesterday' } },
  { world: {}, more: { partition: { index: 3, count: 2 } } },
  { world: {}, more: { partition: { index: 0, count: 2 }, activate_version: true } },
  { world: {}, more: { partition: { index: 0, count: 2 }, audit: true } },
  { world: {}, more: { mention_time_after: '2025-01-01', mention_time_before: '2024-01-01' } },
  { url: 'https://me:pass@feedback.example' },
  { url: 'https://feedback.example/#a' },
  { url: 'https://feedback.example/?tenant=a' },
  { world: {}, more: { credentials: { auth_type: 'access_token' } } },
  { url: 'http://feedback.example' },
  { world: {}, more: { rate_limit: { redis_url: 'localhost' } } },
  { world: {}, more: { rate_limit: { redis_url: 'redis://127.0.0.1:1' } } },
  { world: {}, more: { reporting_time_zone: 'Mars/Phobos' } },
  { world: {}, more: { snapshot_path: 'package.json' } },
  { world: {}, more: { snapshot_path: 'docs' } },
  { world: {}, more: { snapshot_path: 'none/reviews.duckdb' } },
  { world: {}, select: 'review' },
  { world: {}, more: { base_urls: 'x' } },
  // No service.
  { url: 'http://127.0.0.1:1' },
  { reply: (_, to) => void to.destroy() },
  { reply: always(200), url: 'https:' },
  { reply: () => undefined, more: { timeouts: { response_seconds: 1 } } },
  { reply: cutShort },
  { reply: always(200, '{}', { 'Content-Encoding': 'gzip' }) },
  { reply: always(200, '{}', { 'Set-Cookie': 'x'.repeat(20_000) }) },
  { reply: (_, to) => void to.socket?.end('SSH-2.0-OpenSSH_9.2\r\n') },
  { isUntrusted: true },
  { isUntrusted: true, more: { credentials: application } },
  { reply: always(302, '', { Location: 'https://elsewhere.example/' }) },
  { reply: always(200, '<html>') },
  { reply: always(404) },
  { reply: always(404), path: '/api/x' },
  { reply: always(405) },
  { reply: always(503) },
  { reply: otherwise(isDeleted, () => undefined) },
  { reply: otherwise(isReviews, () => undefined) },
  // Tokens.
  { reply: always(401) },
  { reply: always(200, status(401)) },
  { reply: otherwise(isDeleted, always(403)) },
  { reply: otherwise(isReviews, always(403)) },
  { reply: always(200), more: { credentials: { ...fixed, access_token: 'schlüssel' } } },
  withApplication(always(401)),
  withApplication(always(404)),
  withApplication(always(200, {})),
  withApplication(always(302, '', { Location: 'https://elsewhere.example/' })),
  withApplication(always(503)),
  withApplication(always(200, '{}', { 'Content-Encoding': 'br' })),
  withApplication((_, to) => void to.destroy()),
  withApplication(always(200), { token_url: 'http://127.0.0.1:1/token' }),
  withApplication(always(200), { token_url: 'http://issuer.example/token' }),
  withApplication((seen, to) =>
    sendJson(to, seen.headers['content-type'] === 'application/json' ? 200 : 400, { accessToken: 'abc' }),
  ),
  // The service.
  { reply: otherwise(isDeleted, always(400)) },
  { reply: otherwise(isDeleted, always(200, status('X'))) },
  { reply: otherwise(isDeleted, always(200, status(200, 'success'))) },
  { reply: otherwise(isDeleted, always(200, { ...status(200, 'Busy'), reviews: [] })) },
  {
    reply: otherwise(feedbackOf, (seen, to) => sendJson(to, 200, onComments(seen) ? noFeedback : status('X'))),
    more: { entities },
  },
  {
    reply: otherwise(({ url }) => url === '/find', always(429, status(429), { 'Retry-After': '3600' })),
    more: { lookups },
  },
  { reply: always(429, status(429), { 'Retry-After': '3600' }) },
  { reply: otherwise(isDeleted, always(200, ' '.repeat(3_000_000))), more: { max_response_mb: 1 } },
  { reply: otherwise(isDeleted, always(200, { reviews: 'none' })) },
  { reply: otherwise(isDeleted, always(200, '{}', { 'Content-Encoding': 'br' })) },
  {
    reply: otherwise(isReviews, (seen, to) =>
      sendJson(to, 200, {
        reviews: [{ id: 1, modifiedTime: '2024-02-01T00:00:00.000Z' }],
        filter: JSON.parse(seen.body),
      }),
    ),
  },
  {
    reply: otherwise(
      isReviews,
      pageRows('2020-02-01T00:00:00.000Z', () => 1),
    ),
  },
  {
    reply: otherwise(
      isReviews,
      pageRows('2024-02-01T00:00:00.000Z', () => 1),
    ),
  },
  {
    reply: otherwise(isReviews, (seen, to) =>
      sendJson(to, 200, { reviews: [], filter: { ...JSON.parse(seen.body), sources: [1] } }),
    ),
    more: { sources: [1, 2] },
  },
  {
    reply: otherwise(isReviews, (seen, to) =>
      sendJson(to, 200, {
        reviews: [],
        filter: {
          ...JSON.parse(seen.body),
          mentionTimeAfter: '2024-01-01T00:00:00.000Z',
          mentionTimeBefore: '2024-02-01T00:00:00.000Z',
        },
      }),
    ),
  },
  {
    reply: otherwise(
      (seen) => seen.url.includes('deleted'),
      (seen, to) =>
        sendJson(to, 200, {
          reviews: [],
          filter: { ...JSON.parse(seen.body), mentionTimeAfter: '2024-01-01T00:00:00.000Z' },
        }),
    ),
  },
  dated(dayMs / 4, [Date.now() - 9 * dayMs]),
  dated(dayMs / 4, [Date.now() - 9 * dayMs], { lookback_minutes: 1440 }),
  dated(0, [Date.now() - dayMs, Date.now() + dayMs / 4, Date.now() + dayMs / 3]),
  // Warnings.
  { world: { reviews: 0 }, more: { start_date: new Date(Date.now() + dayMs).toISOString() } },
]

const folder = mkdtempSync(join(tmpdir(), 'certificate-'))
afterAll(() => rmSync(folder, { recursive: true }))
const certificate = createCertificate(folder, 'untrusted', 'IP:127.0.0.1')
if (certificate === undefined)
  console.warn('The message for a certificate that is not trusted is not tested: no openssl here.')

const startUntrusted = async (onEnd: (close: () => void) => void): Promise<string> => {
  const server = https.createServer({ key: certificate?.key, cert: certificate?.cert })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onEnd(() => server.close())
  return `https://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** All that a check prints. */
const runScenario = async (
  { reply, world, more = {}, url, select, path: basePath = '', isUntrusted }: Scenario,
  onEnd: (close: () => void) => void,
) => {
  const service =
    reply === undefined
      ? world === undefined
        ? undefined
        : await startObservedService(world, onEnd)
      : await startServer(reply, onEnd)
  const base = isUntrusted ? await startUntrusted(onEnd) : (service?.url ?? '')
  const base_url = url ?? `${base}${basePath}`
  const config = JSON.stringify({
    base_url,
    credentials: fixed,
    start_date: '2024-01-01',
    ...more,
  })
  const path = writeTempFile(config.replace('"https:"', `"${base.replace('http:', 'https:')}"`))
  const args = ['--config', path]
  const { stdout, stderr } = await runCommand(checkCommand, select === undefined ? args : [...args, '--select', select])
  return [stdout, stderr].join('\n')
}

describe('the messages of first-sync.md', () => {
  const closing: Array<() => void> = []
  const outputs: string[] = []
  beforeAll(async () => {
    // Few at a time, so that on a busy machine none takes longer than a check may.
    const waiting = [...scenarios]
    const run = async (): Promise<void> => {
      for (let next = waiting.pop(); next !== undefined; next = waiting.pop())
        outputs.push(await runScenario(next, (close) => closing.push(close)))
    }
    await Promise.all(Array.from({ length: 12 }, run))
  })
  afterAll(() => {
    for (const close of closing) close()
  })

  /** `…` matches anything within a line. */
  const toPattern = (message: string): RegExp =>
    new RegExp(
      message
        .split('…')
        .map((text) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
        .join('.+?'),
    )

  it('are all produced by a check', () => {
    expect(messages.length).toBeGreaterThan(40)
    expect(messages.filter((message) => !outputs.some((output) => toPattern(message).test(output)))).toEqual([])
  })

  /** What a source file says, but a check does not. */
  const notOfChecks = [
    // Words that a masked message may keep.
    /^\s*a access accesstoken/,
    // The kinds of findings, orders and expiries, and what the help says.
    /^(export|retrieve|look up) \w+( \w+)?$/,
    // A destination's check, and remedies of a run.
    /^an empty array$|To go on, ….$/,
    // What a check says after a minute without a failure.
    /^The service may be slow/,
    // What only a proxy causes: test/api/http/proxy.test.ts.
    /proxy may want a log-in first|The answer may be that of …/,
    // The codec of the config refuses such addresses before.
    /^is not a URL|^starts with …/,
  ]
  const files = [
    'runtime/source-check.ts',
    'runtime/check.ts',
    'runtime/export-check.ts',
    'runtime/findings.ts',
    'runtime/source.ts',
    'streams/entities/probe.ts',
    'api/error.ts',
    'api/http/token-exchange.ts',
    'api/http/token.ts',
    'api/http/url.ts',
    'api/http/send.ts',
    'reading/clock.ts',
  ]

  it.each(files)('leave nothing out that %s says', (file) => {
    const texts = listTexts(readFileSync(join(__dirname, '..', '..', 'connector', file), 'utf8'))
    const shown = outputs.join('\n').replaceAll(/\s+/g, ' ')
    const parts = texts
      .filter((text) => !notOfChecks.some((pattern) => pattern.test(text)))
      .flatMap((text) => text.split('…').map((part) => part.trim()))
      .filter((part) => part.split(' ').length >= 3)
    expect(parts.length).toBeGreaterThan(0)
    expect(parts.filter((part) => !shown.includes(part.replace(/\.$/, '')))).toEqual([])
  })
})
