import { mkdtempSync, rmSync } from 'node:fs'
import https from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createCertificate } from '../../support/certificate'
import { messages } from '../../support/destination'
import { writeTempFile } from '../../support/files'
import { runProgram } from '../../support/program'

const folder = mkdtempSync(join(tmpdir(), 'certificate-'))
afterAll(() => rmSync(folder, { recursive: true }))

const ours = createCertificate(folder, 'ours', 'DNS:localhost', 'IP:127.0.0.1')
const other = createCertificate(folder, 'other', 'DNS:feedback.example.com')
if (ours === undefined) console.warn('Tests of TLS are skipped: no openssl here.')

describe.skipIf(ours === undefined)('a service whose certificate', () => {
  const servers: https.Server[] = []
  const asked: string[] = []
  const start = async (with_: typeof ours): Promise<string> => {
    const server = https.createServer({ key: with_?.key, cert: with_?.cert }, (request, response) => {
      asked.push(String(request.url))
      let text = ''
      request.on('data', (chunk: Buffer) => {
        text += chunk.toString()
      })
      request.on('end', () => {
        response.writeHead(200, { 'Content-Type': 'application/json' })
        response.end(
          request.url === '/token'
            ? '{"accessToken":"t","expiresIn":600}'
            : JSON.stringify({ reviews: [], filter: JSON.parse(text) }),
        )
      })
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    servers.push(server)
    return `https://localhost:${(server.address() as AddressInfo).port}`
  }
  let service: string
  let elsewhere: string
  beforeAll(async () => {
    service = await start(ours)
    elsewhere = await start(other)
  })
  afterAll(() => {
    for (const server of servers) server.closeAllConnections()
  })

  const settings = (base_url: string, more: object = {}) => ({
    base_url,
    credentials: { auth_type: 'access_token', access_token: 'not-for-anybody' },
    start_date: '2024-01-01T00:00:00Z',
    ...more,
  })
  const application = (url: string) => ({
    credentials: { auth_type: 'application', application_id: 'a', application_secret: 'b', token_url: `${url}/token` },
  })
  const trusting = (path: string | undefined) => ({ env: { NODE_EXTRA_CA_CERTS: path ?? '' } })
  const checking = async (config: object, options: Parameters<typeof runProgram>[2] = {}) => {
    const { stdout } = await runProgram('source-feedback', ['check', '--config', writeTempFile(config)], options)
    return JSON.parse(stdout).connectionStatus
  }

  it('is not trusted is reported by check with a remedy, and receives no request', async () => {
    const before = asked.length
    expect(await checking(settings(service))).toEqual({
      status: 'FAILED',
      message: expect.stringMatching(
        new RegExp(
          '^export reviews: the service offers no secure connection that can be trusted ' +
            String.raw`\(DEPTH_ZERO_SELF_SIGNED_CERT\)\..*NODE_EXTRA_CA_CERTS\.$`,
        ),
      ),
    })
    expect(asked.length).toBe(before)
  })

  it('belongs to another host is reported, although it is trusted', async () => {
    const { status, message } = await checking(settings(elsewhere), trusting(other?.path))
    expect([status, message]).toEqual([
      'FAILED',
      expect.stringMatching(
        /the service offers no secure connection that can be trusted \(ERR_TLS_CERT_ALTNAME_INVALID\)/,
      ),
    ])
  })

  it('belongs to the token exchange is reported with the config key of its address', async () => {
    const { status, message } = await checking(settings(service, application(elsewhere)), trusting(ours?.path))
    expect([status, message]).toEqual([
      'FAILED',
      expect.stringMatching(/credentials\.token_url .* no secure connection.*NODE_EXTRA_CA_CERTS/),
    ])
  })

  it('is in NODE_EXTRA_CA_CERTS is trusted by check and read', async () => {
    const config = settings(service, application(service))
    expect(await checking(config, trusting(ours?.path))).toMatchObject({ status: 'SUCCEEDED' })
    const catalog = writeTempFile({
      streams: [{ stream: { name: 'reviews', json_schema: {} }, sync_mode: 'incremental' }],
    })
    const { status, stdout } = await runProgram(
      'source-feedback',
      ['read', '--config', writeTempFile(config), '--catalog', catalog],
      trusting(ours?.path),
    )
    expect(status, stdout).toBe(0)
    expect(messages(stdout).at(-1)?.trace?.stream_status?.status).toBe('COMPLETE')
  })
})
