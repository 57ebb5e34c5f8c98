import { describe, it } from 'vitest'
import { sourceReadCommand } from '../../../connector/cli/feedback-source'
import { messages } from '../../support/destination'
import { writeTempFile } from '../../support/files'
import { type ReceivedRequest, type Reply, sendJson, startServer } from '../../support/listen'
import { runCommand } from '../../support/run-command'

const time = (n: number): string => new Date(Date.UTC(2024, 5, 1) + n * 3_600_000).toISOString()

const read = async (base_url: string, streams: ReadonlyArray<string>, more: object = {}) => {
  const config = writeTempFile({
    base_url,
    credentials: { auth_type: 'access_token', access_token: 'not-for-anybody' },
    start_date: '2024-01-01T00:00:00Z',
    rate_limit: { max_concurrency: 1 },
    ...more,
  })
  const catalog = writeTempFile({
    streams: streams.map((name) => ({ stream: { name, json_schema: {} }, sync_mode: 'full_refresh' })),
  })
  const { status, stdout } = await runCommand(sourceReadCommand, ['--config', config, '--catalog', catalog])
  const said = messages(stdout)
  return {
    status,
    keys: said.flatMap(({ record }) => (record === undefined ? [] : [record.data.id ?? record.data.documentId])),
    ends: said.flatMap(({ trace }) => (trace?.stream_status as { readonly status: string } | undefined)?.status ?? []),
    output: stdout,
  }
}

const outage = { code: 503, message: 'Service temporarily unavailable' }
const limit = { code: 429, message: 'Too many requests' }
const ids = Array.from({ length: 50 }, (_, n) => n + 1)

describe('trouble that an export reports in a 200', () => {
  const rows = ids.map((id) => ({ id, modifiedTime: time(id) }))
  const reply =
    (status: object, times: number): Reply =>
    ({ body }, response, count) => {
      if (count > 1 && count <= 1 + times) return sendJson(response, 200, { status })
      const filter = JSON.parse(body) as { readonly offset: number; readonly limit: number }
      sendJson(response, 200, { reviews: rows.slice(filter.offset, filter.offset + filter.limit), filter })
    }

  it.concurrent.for<readonly [string, object]>([
    ['reviews', outage],
    ['deleted_reviews', limit],
  ])('for a while is waited out: %s, %j', async ([stream, status], { expect, onTestFinished }) => {
    const { url } = await startServer(reply(status, 3), onTestFinished)
    const ran = await read(url, [stream], { page_size: 20 })
    expect([ran.status, ran.ends.at(-1)]).toEqual([0, 'COMPLETE'])
    expect(new Set(ran.keys)).toEqual(new Set(ids))
  })
})

describe('trouble that the service reports in a 200 for an entity', () => {
  const rowsOf = (location: string) => ids.slice(0, 5).map((n) => Number(location) * 100 + n)
  const locations = ['10', '11', '12']
  const all = locations.flatMap(rowsOf)

  const answer = ({ url, method, body }: ReceivedRequest) => {
    const isReviews = url.includes('reviews')
    const form = isReviews ? undefined : new URL(method === 'GET' ? url : `/?${body}`, 'http://x').searchParams
    const asked = (form === undefined ? JSON.parse(body) : Object.fromEntries(form)) as Record<string, string>
    const [from, to] = [Date.parse(asked.fromDate ?? ''), Date.parse(asked.toDate ?? '')]
    const list = (id: string) =>
      rowsOf(id)
        .map((key) => ({ [isReviews ? 'documentId' : 'id']: key, mentionTime: time(key) }))
        .filter(({ mentionTime }) => Date.parse(String(mentionTime)) >= from && Date.parse(String(mentionTime)) <= to)
    const requested = form?.getAll('locationId') ?? [asked.locationId ?? '']
    const isFirst = Number(asked.page) === (isReviews ? 0 : 1)
    const entities = requested.map((id) => ({ id, [isReviews ? 'reviews' : 'comments']: isFirst ? list(id) : [] }))
    return { requested, page: { status: { code: 200, message: 'success' }, data: { client: 'c', entities } } }
  }

  const startService = (status: object, times: number, onEnd: (close: () => void) => void) => {
    let told = 0
    return startServer((request, response) => {
      const { requested, page } = answer(request)
      const isTold = requested.includes('11') && told < times
      if (isTold) told += 1
      sendJson(response, 200, isTold ? { status } : page)
    }, onEnd)
  }
  const entities = { entities: { location_ids: locations } }

  it.concurrent.for<readonly [string, object]>([
    ['comments', outage],
    ['comments', limit],
    ['transparency_reviews', outage],
    ['transparency_reviews', limit],
  ])(
    'for a while is waited out, and the entity is read: %s, %j',
    async ([stream, status], { expect, onTestFinished }) => {
      const { url } = await startService(status, 3, onTestFinished)
      const ran = await read(url, [stream], entities)
      expect([ran.status, ran.ends.at(-1)]).toEqual([0, 'COMPLETE'])
      expect(ran.keys.map(Number).sort()).toEqual([...all].sort())
      expect(ran.output).not.toContain('refuses location')
    },
  )

  it.concurrent.for(['comments', 'transparency_reviews'])(
    'for too long ends %s, and the entity counts as not read',
    async (name, { expect, onTestFinished }) => {
      const { url } = await startService(limit, Number.POSITIVE_INFINITY, onTestFinished)
      const ran = await read(url, [name], { ...entities, timeouts: { max_wait_seconds: 1 } })
      expect([ran.status, ran.ends.at(-1)]).toEqual([1, 'INCOMPLETE'])
      expect(ran.output).not.toContain('refuses location')
    },
  )

  it.concurrent('does not keep a refused entity from being skipped where it is no trouble', async ({
    expect,
    onTestFinished,
  }) => {
    const { url } = await startService(
      { code: 'NOT_FOUND', message: 'no such location' },
      Number.POSITIVE_INFINITY,
      onTestFinished,
    )
    const ran = await read(url, ['comments'], entities)
    expect([ran.status, ran.ends.at(-1)]).toEqual([0, 'COMPLETE'])
    expect(ran.output).toContain('refuses location 11')
    expect(new Set(ran.keys.map(Number))).toEqual(new Set([...rowsOf('10'), ...rowsOf('12')]))
  })
})
