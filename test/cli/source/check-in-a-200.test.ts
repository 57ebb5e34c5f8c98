import { describe, it } from 'vitest'
import { checkCommand } from '../../../connector/cli/check'
import { writeTempFile } from '../../support/files'
import { type Reply, sendJson, startServer } from '../../support/listen'
import { runCommand } from '../../support/run-command'

const outage = { code: 503, message: 'Service temporarily unavailable' }
const limit = { code: 429, message: 'Too many requests' }
const token = { code: 401, message: 'Access token has expired' }
const refusal = { code: 'E7', message: 'no such location' }

const isExport = (url: string): boolean => /\/v1\/(deleted-)?reviews$/.test(url)

/** A service without rows, which reports `status` inside a 200 response if `isTold` is true. */
const telling =
  (status: object, isTold: (url: string, body: string) => boolean): Reply =>
  ({ url, body }, response) => {
    if (isTold(url, body)) return sendJson(response, 200, { status })
    if (isExport(url)) return sendJson(response, 200, { reviews: [], filter: JSON.parse(body) })
    const data = { client: 'c', entities: ['10', '11'].map((id) => ({ id })) }
    sendJson(response, 200, url.endsWith('/sources') ? [{ id: 1 }] : { status: { message: 'success' }, data })
  }

const configOf = (base_url: string, more: object = {}): string =>
  writeTempFile({
    base_url,
    credentials: { auth_type: 'access_token', access_token: 'not-for-anybody' },
    start_date: '2024-01-01T00:00:00Z',
    timeouts: { max_wait_seconds: 1 },
    ...more,
  })

type Step = { readonly check: string; readonly stream?: string; readonly status: string }

const check = async (config: string) => {
  const { status, stdout } = await runCommand(checkCommand, ['--config', config, '--json'])
  const { checks, failure, findings, warnings } = JSON.parse(stdout) as {
    readonly checks: ReadonlyArray<Step>
    readonly failure: { readonly type: string; readonly message: string } | null
    readonly findings: ReadonlyArray<{ readonly finding: string; readonly text: string }>
    readonly warnings: ReadonlyArray<string>
  }
  const statuses = Object.fromEntries(checks.map(({ check, stream, status }) => [stream ?? check, status]))
  const textOf = (name: string) => findings.find(({ finding }) => finding === name)?.text
  return { status, statuses, failure, warnings: warnings.join('\n'), textOf }
}

describe('trouble that the service reports to check in a 200', () => {
  const entities = { entities: { location_ids: ['10', '11'] } }

  it.concurrent.for<readonly [string, object, number, string]>([
    ['an outage', outage, 75, 'transient_error'],
    ['a rate limit', limit, 75, 'transient_error'],
    ['a refused token', token, 78, 'config_error'],
  ])('for an entity is not a refusal of the entity: %s', async ([, status, exit, type], { expect, onTestFinished }) => {
    const { url } = await startServer(
      telling(status, (path) => !isExport(path)),
      onTestFinished,
    )
    const told = await check(configOf(url, entities))
    expect(told.status).toBe(exit)
    expect(told.statuses).toMatchObject({ reviews: 'ok', comments: 'failed', transparency_reviews: 'failed' })
    expect(told.failure).toMatchObject({ type })
    expect(told.warnings).not.toMatch(/refuses|does not know/)
  })

  it.concurrent('is reported as a refusal of the entity if it is not trouble', async ({ expect, onTestFinished }) => {
    const { url } = await startServer(
      telling(refusal, (path) => !isExport(path)),
      onTestFinished,
    )
    const { status, textOf, warnings } = await check(configOf(url, entities))
    expect([status, textOf('entities')]).toEqual([0, expect.stringMatching(/^2 of 2 are unknown to the service/)])
    expect(warnings).toMatch(/does not know 10 .*\n.*does not know 11 /)
  })

  it.concurrent.for<readonly [string, object]>([
    ['an outage', outage],
    ['a rate limit', limit],
  ])(
    'once the operations have answered leaves the entities as they are: %s',
    async ([, status], { expect, onTestFinished }) => {
      const isProbe = (path: string, body: string) => path.includes('comments') && /minRatingCount/.test(path + body)
      const { url } = await startServer(telling(status, isProbe), onTestFinished)
      const told = await check(configOf(url, entities))
      expect([told.status, told.warnings]).toEqual([0, ''])
      expect(told.textOf('entities')).toMatch(/^unknown: /)
    },
  )

  it.concurrent.for<readonly [string, object, number, object]>([
    ['a rate limit', limit, 75, { service: 'failed' }],
    ['a refused token', token, 78, { service: 'ok', token: 'failed' }],
  ])(
    'for the first export is reported once, and nothing else is asked: %s',
    async ([, status, exit, statuses], { expect, onTestFinished }) => {
      const { url, seen } = await startServer(
        telling(status, () => true),
        onTestFinished,
      )
      const told = await check(configOf(url, entities))
      expect([told.status, told.statuses]).toEqual([exit, { configuration: 'ok', ...statuses }])
      expect(new Set(seen.map(({ url: path }) => path))).toEqual(new Set(['/api/reputation/v1/reviews']))
    },
  )

  it.concurrent('for an offset is not a refusal of the offset', async ({ expect, onTestFinished }) => {
    const rows = Array.from({ length: 10 }, (_, n) => ({ id: n + 1, modifiedTime: `2024-06-01T00:00:0${n}.000Z` }))
    const { url } = await startServer(({ url: path, body }, response) => {
      const filter = JSON.parse(body) as { offset: number; limit: number; modifiedTimeFrom: string }
      if (filter.offset >= 10 && filter.limit > 10) return sendJson(response, 200, { status: outage })
      const isEmpty = path.includes('deleted') || filter.modifiedTimeFrom > '2025' || filter.offset >= 10
      sendJson(response, 200, { reviews: isEmpty ? [] : rows, filter })
    }, onTestFinished)
    const { status, textOf } = await check(configOf(url, { page_size: 20 }))
    expect([status, textOf('reviews')]).toEqual([0, expect.stringMatching(/^at least 10 since start_date: .*503/)])
  })

  it.concurrent.for<readonly [string, object, number]>([
    ['an outage', outage, 75],
    ['a refusal', refusal, 0],
  ])('for the list of sources: %s', async ([, status, exit], { expect, onTestFinished }) => {
    const { url } = await startServer(
      telling(status, (path) => path.endsWith('/sources')),
      onTestFinished,
    )
    const told = await check(configOf(url, { lookups: { sources: true } }))
    expect(told.status).toBe(exit)
    expect(told.warnings.includes('Sources are read from the reviews instead')).toBe(exit === 0)
  })
})
