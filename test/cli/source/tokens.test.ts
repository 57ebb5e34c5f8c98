import { describe, expect, it } from 'vitest'
import { parseExactJson } from '../../../connector/cdk/json/exact'
import { reportAirbyteFailure } from '../../../connector/cdk/program/exit'
import { sourceCheckCommand, sourceReadCommand } from '../../../connector/cli/feedback-source'
import { operationNames } from '../../../connector/sandbox/operations/operation'
import type { Sandbox, SandboxOptions } from '../../../connector/sandbox/start'
import { writeTempFile } from '../../support/files'
import { type Reply, sendJson, startServer } from '../../support/listen'
import { runCommand } from '../../support/run-command'
import { applicationCredentials, startSmallSandbox } from '../../support/sandbox'

const applicationConfig = (sandbox: Sandbox, more: object = {}) => ({
  base_url: sandbox.url,
  start_date: '2000-01-01T00:00:00Z',
  credentials: { ...applicationCredentials(sandbox), ...more },
})

const catalog = {
  streams: [
    {
      stream: { name: 'reviews', json_schema: {}, supported_sync_modes: ['full_refresh', 'incremental'] },
      sync_mode: 'incremental',
      destination_sync_mode: 'append_dedup',
    },
  ],
}

const read = async (config: object) => {
  const { status, stdout } = await runCommand(
    sourceReadCommand,
    ['--config', writeTempFile(config), '--catalog', writeTempFile(catalog)],
    { fail: reportAirbyteFailure },
  )
  const messages = stdout
    .trim()
    .split('\n')
    .map((line) => parseExactJson(line) as Message)
  const ofType = (type: string) => messages.filter((message) => message.type === type)
  return {
    status,
    output: stdout,
    ids: ofType('RECORD').map(({ record }) => String(record.data.id)),
    logs: ofType('LOG').map(({ log }) => String(log.message)),
    traces: ofType('TRACE').flatMap(({ trace }) => trace.error?.message ?? []),
  }
}

type Message = {
  readonly type: string
  readonly record: { readonly data: { readonly id: unknown } }
  readonly log: { readonly message: string }
  readonly trace: { readonly error?: { readonly message: string } }
}

const idsOf = async (sandbox: Sandbox) => (await sandbox.truth()).reviews.map(({ id }) => id).sort()

describe('an application with an id and a secret alone', () => {
  const startPublished = (options: SandboxOptions = {}) =>
    startSmallSandbox({ like: 'published', reviews: 300, ...options })

  it.each(['specification', 'published'] as const)('reads from a sandbox like the %s', async (like) => {
    const sandbox = await startSmallSandbox({ like, reviews: 300 })
    const { status, ids } = await read(applicationConfig(sandbox))
    expect(status).toBe(0)
    expect([...new Set(ids)].sort()).toEqual(await idsOf(sandbox))
    expect(sandbox.stats().requests.issueToken).toBe(1)
  })

  it('reads through many expiries, each reported to all requests in flight and followed by one exchange', async () => {
    const sandbox = await startPublished({
      reviews: 1_000,
      until: Date.now() - 30 * 86_400_000,
      secondsPerRequest: 200,
      latency: { minMs: 1, maxMs: 4 },
    })
    const { status, ids, traces } = await read({ ...applicationConfig(sandbox), page_size: 10 })
    expect([status, traces]).toEqual([0, []])
    expect([...new Set(ids)].sort()).toEqual(await idsOf(sandbox))
    const issued = sandbox.log().flatMap(({ operation, at }) => (operation === 'issueToken' ? [Date.parse(at)] : []))
    expect(issued.length).toBeGreaterThan(20)
    const ages = issued.slice(1).map((at, index) => (at - (issued[index] ?? 0)) / 60_000)
    expect(Math.min(...ages)).toBeGreaterThanOrEqual(25)
  })

  const withIssuer = async (reply: Reply) => {
    const granted = new Map([['issued-token', operationNames]])
    const [sandbox, issuer] = [await startPublished({ granted }), await startServer(reply)]
    return { sandbox, issuer, ...(await read(applicationConfig(sandbox, { token_url: `${issuer.url}/token` }))) }
  }

  it.each<readonly [string, Reply, RegExp]>([
    [
      'a page',
      (_, response) => void response.end('<html>sign in</html>'),
      /answered 200 without a token at "accessToken"/,
    ],
    ['null', (_, response) => sendJson(response, 200, 'null'), /answered 200 without a token at "accessToken"/],
    [
      'a token elsewhere',
      (_, response) => sendJson(response, 200, { data: { token: 'hidden-token' } }),
      new RegExp(
        String.raw`answered 200 without a token at "accessToken"\. ` +
          String.raw`Check credentials\.token_url and credentials\.token_request\.token_field`,
      ),
    ],
    [
      'a token that is no text',
      (_, response) => sendJson(response, 200, { accessToken: { value: 'hidden-token' } }),
      /answered 200 without a token at "accessToken"/,
    ],
    [
      'nothing, for a status of its own',
      (_, response) => sendJson(response, 200, { accessToken: 'hidden-token', status: { code: 'E-17' } }),
      /refused the application \(200, status\.code E-17\)\. Check credentials\.application_id/,
    ],
    [
      'no such address',
      (_, response) => sendJson(response, 404),
      /No tokens are issued at credentials\.token_url .*answered 404\)\. Check base_url and credentials\.token_url/,
    ],
  ])('reads nothing where the token endpoint answers %s, and says once what to check', async (_, reply, message) => {
    const { status, ids, traces, output, sandbox } = await withIssuer(reply)
    expect([status, ids, traces]).toEqual([1, [], [expect.stringMatching(message)]])
    expect(output).not.toMatch(/hidden-token|sign in/)
    expect(output).not.toContain(sandbox.applicationSecret)
    expect(sandbox.stats().requests).toEqual({})
  })

  it.each(['2019-10-01 17:44:46', 1_569_951_886, -60])(
    'reads with a token whose expiry has passed: %s',
    async (expiresIn) => {
      const { issuer, status, ids, logs } = await withIssuer((_, response) =>
        sendJson(response, 200, { accessToken: 'issued-token', status: { message: 'Success', code: 200 }, expiresIn }),
      )
      expect([status, ids.length]).toEqual([0, 300])
      expect(issuer.seen).toHaveLength(1)
      expect(logs.filter((line) => line.includes('expires_in_field'))).toEqual([
        expect.stringMatching(/"expiresIn"\) is not within a day from now, so the token is renewed after 25 minutes/),
      ])
    },
  )

  it.each([
    ['a wrong secret', { application_secret: 'guess' }, /refused the application \(200, status\.code 401\)/],
    [
      'a wrong address',
      { token_url: '/nowhere' },
      /No tokens are issued at credentials\.token_url .*404.*Check base_url/,
    ],
  ])('is reported by check for %s', async (_, more, message) => {
    const sandbox = await startPublished()
    const config = writeTempFile(applicationConfig(sandbox, more))
    const { stdout } = await runCommand(sourceCheckCommand, ['--config', config], { fail: reportAirbyteFailure })
    const { status, message: text } = JSON.parse(stdout).connectionStatus
    expect(status).toBe('FAILED')
    expect(text).toMatch(message)
    expect(text).not.toContain('guess')
  })
})
