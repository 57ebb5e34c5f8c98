import { describe, expect, it } from 'vitest'
import { parseExactJson } from '../../../connector/cdk/json/exact'
import { reportAirbyteFailure } from '../../../connector/cdk/program'
import { sourceCheckCommand, sourceReadCommand } from '../../../connector/cli/feedback-source'
import type { Sandbox, SandboxOptions } from '../../../connector/sandbox/start'
import { writeTempFile } from '../../support/files'
import { runCommand } from '../../support/run-command'
import { startSmallSandbox } from '../../support/sandbox'

const applicationConfig = ({ url, applicationId, applicationSecret }: Sandbox, more: object = {}) => ({
  base_url: url,
  start_date: '2000-01-01T00:00:00Z',
  credentials: {
    auth_type: 'application',
    application_id: applicationId,
    application_secret: applicationSecret,
    ...more,
  },
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

  it('reads from a published deployment', async () => {
    const sandbox = await startPublished()
    const { status, ids } = await read(applicationConfig(sandbox))
    expect(status).toBe(0)
    expect([...new Set(ids)].sort()).toEqual(await idsOf(sandbox))
    expect(sandbox.stats().requests.issueToken).toBe(1)
  })

  it('reads across many expiries that a 200 tells', async () => {
    const sandbox = await startPublished({ secondsPerRequest: 400, until: Date.now() - 86_400_000 })
    const { status, ids, traces } = await read({ ...applicationConfig(sandbox), page_size: 10 })
    expect(traces).toEqual([])
    expect(status).toBe(0)
    expect([...new Set(ids)].sort()).toEqual(await idsOf(sandbox))
    expect(sandbox.stats().requests.issueToken).toBeGreaterThan(5)
  })

  it('goes on with the form of former versions, and says which settings ask for it at once', async () => {
    const sandbox = await startSmallSandbox({ like: 'specification' })
    const former = applicationConfig(sandbox, { token_url: '/oauth/token' })
    const { status, ids, logs } = await read(former)
    expect(status).toBe(0)
    expect(ids).toHaveLength(100)
    expect(logs.filter((line) => line.includes('credentials.token_request'))).toEqual([
      expect.stringContaining('"encoding":"json"'),
    ])
    const settled = { encoding: 'json', id_field: 'applicationId', secret_field: 'applicationSecret' }
    const told = await read(applicationConfig(sandbox, { token_url: sandbox.tokenUrl, token_request: settled }))
    expect(told.logs.filter((line) => line.includes('credentials.token_request'))).toEqual([])
  })

  it.each([
    ['a wrong secret', { application_secret: 'guess' }, /refused the application \(200, status\.code 401\)/],
    [
      'a wrong address',
      { token_url: '/nowhere' },
      /No tokens are issued at credentials\.token_url .*404.*Check base_url/,
    ],
  ])('is told of %s by check', async (_, more, message) => {
    const sandbox = await startPublished()
    const config = writeTempFile(applicationConfig(sandbox, more))
    const { stdout } = await runCommand(sourceCheckCommand, ['--config', config], { fail: reportAirbyteFailure })
    const { status, message: text } = JSON.parse(stdout).connectionStatus
    expect(status).toBe('FAILED')
    expect(text).toMatch(message)
    expect(text).not.toContain('guess')
  })
})
