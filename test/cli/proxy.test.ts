import { mkdtempSync, rmSync } from 'node:fs'
import https from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createCertificate } from '../support/certificate'
import { messages } from '../support/destination'
import {
  airbyteFormat,
  configuredCatalogOf,
  formatLines,
  formatStream,
  mapping,
  visitRow,
} from '../support/destination-input'
import { writeTempFile } from '../support/files'
import { type ProgramName, runProgram } from '../support/program'
import { startProxyProcess } from '../support/proxy-process'

const folder = mkdtempSync(join(tmpdir(), 'proxy-'))
afterAll(() => rmSync(folder, { recursive: true }))

const names = ['DNS:feedback.test', 'DNS:proxy.localhost', 'IP:127.0.0.1']
const ours = createCertificate(folder, 'ours', ...names)
const other = createCertificate(folder, 'other', 'DNS:elsewhere.test')
if (ours === undefined) console.warn('Tests of TLS behind a proxy are skipped: no openssl here.')

const base_url = 'https://feedback.test'
const application = { auth_type: 'application', application_id: 'a', application_secret: 'not-for-anybody' }
const source = { base_url, credentials: application, start_date: '2024-01-01', page_size: 20 }
const sink = { base_url, credentials: application, mapping, batch_size: 2 }

describe.skipIf(ours === undefined || other === undefined)('behind a proxy', () => {
  const rows = Array.from({ length: 300 }, (_, n) => ({
    id: n + 1,
    modifiedTime: new Date(Date.UTC(2024, 5, 1) + n * 60_000).toISOString(),
  }))
  const servers: https.Server[] = []
  let requests = 0
  const written: string[] = []

  const answer = (url: string, text: string): object => {
    if (url.includes('token')) return { accessToken: 'issued-token', expiresIn: 600 }
    const body = JSON.parse(text)
    if (Array.isArray(body)) {
      written.push(...body.map(({ visitRecordId }) => visitRecordId))
      return { records: Object.fromEntries(body.map(({ visitRecordId }) => [visitRecordId, 'Success'])) }
    }
    const later = url.endsWith('/v1/reviews') ? rows.filter((row) => row.modifiedTime > body.modifiedTimeFrom) : []
    return { reviews: later.slice(body.offset ?? 0, (body.offset ?? 0) + body.limit), filter: body }
  }

  /** A service over https with this certificate; its port. */
  const start = async (certificate: typeof ours): Promise<number> => {
    const server = https.createServer({ key: certificate?.key, cert: certificate?.cert }, (request, response) => {
      requests += 1
      let text = ''
      request.on('data', (chunk: Buffer) => {
        text += chunk.toString()
      })
      request.on('end', () => {
        response.writeHead(200, { 'Content-Type': 'application/json' })
        response.end(JSON.stringify(answer(request.url ?? '', text)))
      })
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    servers.push(server)
    return (server.address() as AddressInfo).port
  }
  let port = 0
  let elsewhere = 0
  beforeAll(async () => {
    port = await start(ours)
    elsewhere = await start(other)
  })
  afterAll(() => {
    for (const server of servers) server.closeAllConnections()
    for (const server of servers) server.close()
  })

  const catalog = writeTempFile({
    streams: [{ stream: { name: 'reviews', json_schema: {} }, sync_mode: 'incremental' }],
  })
  const run = (
    program: ProgramName,
    args: ReadonlyArray<string>,
    proxy: string,
    stdin = '',
    trusted = ours?.path ?? '',
  ) =>
    runProgram(program, args, {
      stdin,
      env: { NODE_EXTRA_CA_CERTS: trusted, HTTPS_PROXY: proxy, https_proxy: '', NO_PROXY: '', no_proxy: '' },
    })
  const read = (proxy: string) =>
    run('source-feedback', ['read', '--config', writeTempFile(source), '--catalog', catalog], proxy)

  it('tokens and pages come over a few tunnels that are kept, with the name and password of the proxy', async () => {
    const proxy = await startProxyProcess({ upstream: port, user: 'us:er p@ss' })
    const { status, stdout, stderr } = await read(`us:er%20p%40ss@${proxy.address}`)
    expect(status, stdout + stderr).toBe(0)
    expect(messages(stdout).filter(({ type }) => type === 'RECORD')).toHaveLength(300)
    const seen = await proxy.listSeen()
    expect(new Set(seen.map(({ method, url }) => `${method} ${url}`))).toEqual(new Set(['CONNECT feedback.test:443']))
    expect([seen.length <= 6, requests >= 17]).toEqual([true, true])
    // Of the service's requests the proxy sees nothing.
    expect(JSON.stringify(seen)).not.toContain('issued-token')
    expect(stdout + stderr).not.toMatch(/p@ss|p%40ss|dXM6ZXIgcEBzcw/)
  })

  it('a proxy that is spoken to in TLS serves, too', async () => {
    const proxy = await startProxyProcess({ upstream: port, key: ours?.key ?? '', cert: ours?.cert ?? '' })
    const { status, stdout } = await read(`https://${proxy.address}`)
    expect(status, stdout).toBe(0)
    expect((await proxy.listSeen()).length).toBeGreaterThan(0)
  })

  const checking = async (config: object, proxy: string, trusted?: string) => {
    const { stdout } = await run('source-feedback', ['check', '--config', writeTempFile(config)], proxy, '', trusted)
    return JSON.parse(stdout).connectionStatus
  }

  it("the service's certificate is checked by its own name", async () => {
    const proxy = await startProxyProcess({ upstream: elsewhere })
    expect(await checking(source, `http://${proxy.address}`, other?.path)).toEqual({
      status: 'FAILED',
      message: expect.stringMatching(
        /^credentials\.token_url \(https:\/\/feedback\.test\) .*\(ERR_TLS_CERT_ALTNAME_INVALID\)/,
      ),
    })
    const trusting = await startProxyProcess({ upstream: port })
    expect(await checking(source, `http://${trusting.address}`, other?.path)).toEqual({
      status: 'FAILED',
      message: expect.stringMatching(/\(DEPTH_ZERO_SELF_SIGNED_CERT\).*NODE_EXTRA_CA_CERTS\.$/),
    })
  })

  it("the certificate of a proxy is the proxy's matter", async () => {
    const proxy = await startProxyProcess({ upstream: port, key: other?.key ?? '', cert: other?.cert ?? '' })
    expect(await checking(source, `https://${proxy.address}`, other?.path)).toEqual({
      status: 'FAILED',
      message: expect.stringContaining(
        `no secure connection to the proxy ${proxy.address} (HTTPS_PROXY) (ERR_TLS_CERT`,
      ),
    })
  })

  const input = formatLines(
    formatStream(
      airbyteFormat,
      'visit_records',
      'id',
      Array.from({ length: 4 }, (_, n) => visitRow(n, { visitRecordId: `v${n}`, clinic: 'W1' })),
      { every: 2 },
    ),
  )
  const write = (proxy: string) =>
    run(
      'destination-feedback',
      [
        'write',
        '--config',
        writeTempFile(sink),
        '--catalog',
        writeTempFile(configuredCatalogOf({ visit_records: 'id' })),
      ],
      proxy,
      input,
    )

  it('visits are written', async () => {
    const proxy = await startProxyProcess({ upstream: port })
    const { status, stdout } = await write(`http://${proxy.address}`)
    expect(status, stdout).toBe(0)
    expect(written.toSorted()).toEqual(['v0', 'v1', 'v2', 'v3'])
    expect(messages(stdout).filter(({ type }) => type === 'STATE').length).toBeGreaterThan(0)
  })

  it('visits that the proxy answers for have not left, so no state comes back', async () => {
    const body = JSON.stringify({ accessToken: 't', records: { v0: 'Success', v1: 'Success' } })
    const page = `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`
    const proxy = await startProxyProcess({ answer: `HTTP/1.1 201 Created\r\n${page}` })
    const { status, stdout } = await write(`http://${proxy.address}`)
    expect(status).toBe(1)
    expect(messages(stdout).filter(({ type }) => type === 'STATE')).toEqual([])
    expect(messages(stdout).flatMap(({ trace }) => trace?.error ?? [])).toMatchObject([
      {
        failure_type: 'config_error',
        message: expect.stringMatching(/the proxy .* answers 201 and a page of its own/),
      },
    ])
  })
})
