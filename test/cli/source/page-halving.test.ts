import { expect, it } from 'vitest'
import { sourceReadCommand } from '../../../connector/cli/feedback-source'
import { messages } from '../../support/destination'
import { writeTempFile } from '../../support/files'
import { sendJson, startServer } from '../../support/listen'
import { runCommand } from '../../support/run-command'

const rows = Array.from({ length: 90 }, (_, id) => ({
  id,
  modifiedTime: new Date(1_700_000_000_000 + id * 60_000).toISOString(),
  visitRecordId: 'x'.repeat(20_000),
}))

it('requests a page that is too large in halves, and reads all of it', async () => {
  const limits: number[] = []
  const { url } = await startServer((request, response) => {
    const asked = JSON.parse(request.body) as { readonly offset: number; readonly limit: number }
    limits.push(asked.limit)
    sendJson(response, 200, { reviews: rows.slice(asked.offset, asked.offset + asked.limit), filter: asked })
  })
  const config = writeTempFile({
    base_url: url,
    credentials: { auth_type: 'access_token', access_token: 'x' },
    start_date: '2020-01-01T00:00:00Z',
    max_response_mb: 1,
  })
  const catalog = writeTempFile({
    streams: [{ stream: { name: 'reviews', json_schema: {} }, sync_mode: 'incremental' }],
  })
  const { status, stdout } = await runCommand(sourceReadCommand, ['--config', config, '--catalog', catalog])
  expect(status).toBe(0)
  expect([...new Set(limits)]).toEqual([1000, 500, 250, 125, 62, 31])
  const ids = messages(stdout).flatMap(({ record }) => (record === undefined ? [] : [Number(record.data.id)]))
  expect(ids.sort((a, b) => a - b)).toEqual(rows.map(({ id }) => id))
})
