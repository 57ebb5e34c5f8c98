import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { sourceReadCommand, tapCommand } from '../../../connector/cli/feedback-source'
import { messages } from '../../support/destination'
import { writeTempFile } from '../../support/files'
import { sendJson, startServer } from '../../support/listen'
import { runCommand } from '../../support/run-command'
import { startTestSandbox } from '../../support/sandbox'

const rows = Array.from({ length: 60 }, (_, id) => ({
  id: id + 1,
  modifiedTime: new Date(1_700_000_000_000 + id * 60_000).toISOString(),
}))

const reading = async (settings: object, more: object = {}) => {
  const config = writeTempFile({ start_date: '2020-01-01T00:00:00Z', page_size: 20, ...settings, ...more })
  const catalog = writeTempFile({
    streams: [{ stream: { name: 'reviews', json_schema: {} }, sync_mode: 'incremental' }],
  })
  const ran = await runCommand(sourceReadCommand, ['--config', config, '--catalog', catalog])
  return { ...ran, said: messages(ran.stdout) }
}

type Status = {
  readonly status: string
  readonly reasons?: ReadonlyArray<{ readonly type: string; readonly rate_limited: { readonly quota_reset: number } }>
}
const statusOf = (line: ReturnType<typeof messages>[number]) => line.trace?.stream_status as Status | undefined
const isWait = (line: ReturnType<typeof messages>[number]) => statusOf(line)?.reasons?.[0]?.type === 'RATE_LIMITED'

describe('a 429 in the middle of a scan', () => {
  it.each<[string, () => string, number]>([
    ['of seconds', () => '1', 1000],
    ['as a date', () => new Date(Date.now() + 2000).toUTCString(), 500],
    ['of 0', () => '0', 0],
  ])(
    'with Retry-After %s is waited out, announced with its end and a state, and loses nothing',
    async (_, after, least) => {
      const sent: number[] = []
      let refusedAt = 0
      const { url } = await startServer((request, response, count) => {
        sent.push(Date.now())
        const asked = JSON.parse(request.body) as { readonly offset: number; readonly limit: number }
        if (count === 2) {
          refusedAt = Date.now()
          return sendJson(response, 429, { status: { code: 429, message: 'slow' } }, { 'Retry-After': after() })
        }
        sendJson(response, 200, { reviews: rows.slice(asked.offset, asked.offset + asked.limit), filter: asked })
      })
      const { status, said } = await reading(
        { base_url: url, credentials: { auth_type: 'access_token', access_token: 'x' } },
        { rate_limit: { max_concurrency: 1 } },
      )
      expect(status).toBe(0)
      expect(said.filter(({ record }) => record !== undefined)).toHaveLength(rows.length)
      const at = said.findIndex(isWait)
      const [reason] = statusOf(said[at] as (typeof said)[number])?.reasons ?? []
      expect(statusOf(said[at] as (typeof said)[number])?.status).toBe('RUNNING')
      expect(reason?.rate_limited.quota_reset).toBeGreaterThanOrEqual(refusedAt + least - 5)
      expect(said[at - 1]?.state?.stream.stream_state).toHaveProperty('scan')
      // No request left before the time that was asked for.
      expect((sent[2] ?? 0) - refusedAt).toBeGreaterThanOrEqual(least - 5)
    },
  )
})

/**
 * A service that refuses the second page once, while the first is still being printed: its reader takes records only
 * after that. `catalog`: what selects the stream `reviews`.
 */
const readSlowly = async (command: typeof sourceReadCommand, catalog: object) => {
  let refuse = (): void => undefined
  const refused = new Promise<void>((resolve) => {
    refuse = resolve
  })
  const { url } = await startServer((request, response, count) => {
    const asked = JSON.parse(request.body) as { readonly offset: number; readonly limit: number }
    if (count !== 2)
      return sendJson(response, 200, { reviews: rows.slice(asked.offset, asked.offset + asked.limit), filter: asked })
    response.once('finish', refuse)
    sendJson(response, 429, { status: { code: 429, message: 'slow' } }, { 'Retry-After': '1' })
  })
  const config = writeTempFile({
    base_url: url,
    credentials: { auth_type: 'access_token', access_token: 'x' },
    start_date: '2020-01-01T00:00:00Z',
    page_size: 20,
  })
  return runCommand(command, ['--config', config, '--catalog', writeTempFile(catalog)], {
    program: command === tapCommand ? 'tap-feedback' : 'source-feedback',
    beforePrint: async (text) => {
      if (!text.includes('"RECORD"')) return
      await refused
      // Until the client has the answer; too short a time makes this test easier, not wrong.
      await sleep(100)
    },
  })
}

describe('a wait that begins while records are printed', () => {
  it('is reported by the source with the newest state', async () => {
    const { status, stdout } = await readSlowly(sourceReadCommand, {
      streams: [{ stream: { name: 'reviews', json_schema: {} }, sync_mode: 'incremental' }],
    })
    const said = messages(stdout)
    const at = said.findIndex(isWait)
    expect(status).toBe(0)
    expect(said.slice(0, at).filter(({ record }) => record !== undefined)).toHaveLength(20)
    expect(said[at - 1]?.state?.stream.stream_state).toHaveProperty('scan')
    expect(said.filter(({ record }) => record !== undefined)).toHaveLength(rows.length)
  })

  it('is logged by the tap', async () => {
    const reviews = {
      tap_stream_id: 'reviews',
      schema: {},
      metadata: [{ breadcrumb: [], metadata: { selected: true } }],
    }
    const { status, stdout, stderr } = await readSlowly(tapCommand, { streams: [reviews] })
    expect(status).toBe(0)
    expect(stderr).toMatch(/The service makes reviews wait until \d{4}-/)
    expect(stdout.match(/"type":"RECORD"/g)).toHaveLength(rows.length)
  })
})

it('a service with a low rate limit is read at about that rate, although no rate is configured', async () => {
  const sandbox = await startTestSandbox({ reviews: 300, rate: { requests: 5, seconds: 1 } })
  try {
    const { status, said } = await reading({
      base_url: sandbox.url,
      credentials: { auth_type: 'access_token', access_token: sandbox.accessToken },
      start_date: '2010-01-01T00:00:00Z',
    })
    expect(status).toBe(0)
    expect(said.filter(({ record }) => record !== undefined)).toHaveLength(300)
    const answers = sandbox.log().map((entry) => entry.status)
    const refused = answers.filter((one) => one === 429).length
    expect(refused).toBeGreaterThan(0)
    expect(refused / answers.length).toBeLessThan(0.2)
    expect(said.some(isWait)).toBe(true)
  } finally {
    await sandbox.close()
  }
})
