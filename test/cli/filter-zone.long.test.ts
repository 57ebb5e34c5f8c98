import { expect, it } from 'vitest'
import { checkCommand } from '../../connector/cli/check'
import { syncCommand } from '../../connector/cli/sync'
import { verifyCommand } from '../../connector/cli/verify'
import { newTempPath, writeTempFile } from '../support/files'
import { sendJson, startServer } from '../support/listen'
import { runCommand } from '../support/run-command'

const [minute, hour] = [60_000, 3_600_000]

/** A service that reads the time of its filter five hours late, with 50 reviews of ten days ago. */
const startZoneService = async () => {
  const last = Date.now() - 240 * hour
  const review = (id: number, modified: number) => ({
    id,
    modifiedTime: new Date(modified).toISOString(),
    contents: [],
  })
  const rows = Array.from({ length: 50 }, (_, n) => review(n + 1, last - (49 - n) * minute))
  const { url } = await startServer((seen, to) => {
    const { offset = 0, limit = 1000, ...filter } = JSON.parse(seen.body)
    const from = Date.parse(filter.modifiedTimeFrom) + 5 * hour
    const listed = seen.url.includes('deleted') ? [] : rows.filter((row) => Date.parse(row.modifiedTime) > from)
    sendJson(to, 200, { reviews: listed.slice(offset, offset + limit), filter: { ...filter, offset, limit } })
  })
  const settings = {
    base_url: url,
    credentials: { auth_type: 'access_token', access_token: 'not-for-anybody' },
    start_date: '2020-01-01T00:00:00Z',
  }
  return { settings, add: (id: number, time: number) => rows.push(review(id, time)), last }
}

it('check and sync name a service that reads its filter in another time zone, verify its lost rows', async () => {
  const { settings, add, last } = await startZoneService()
  const config = writeTempFile(settings)
  const db = newTempPath('duckdb')
  const sync = (file = config) => runCommand(syncCommand, ['--config', file, '--db', db, '--select', 'reviews'])
  const verify = async (file = config) => {
    const { stdout } = await runCommand(verifyCommand, ['--db', db, '--config', file, '--json'])
    const results = JSON.parse(stdout) as ReadonlyArray<{ name: string; failures: number; examples: string[] }>
    const found = (name: string) => results.find((result) => result.name === name)?.examples.map((it) => it.slice(0, 6))
    return [found('no review is missing'), found('not read yet')]
  }
  const checked = await runCommand(checkCommand, ['--config', config])
  expect([checked.status, checked.stdout]).toEqual([78, expect.stringContaining('its own time zone')])

  expect(await sync()).toMatchObject({ status: 0 })
  expect(await verify()).toEqual([[], []])
  add(101, last + hour)
  add(102, last + 9 * hour)
  expect(await verify()).toEqual([['id 101'], ['id 102']])
  const second = await sync()
  expect([second.status, second.stdout + second.stderr]).toEqual([0, expect.stringContaining('in its own time zone')])
  expect(await verify()).toEqual([['id 101'], []])
  const third = await sync()
  expect([third.status, third.stdout + third.stderr]).toEqual([75, expect.stringContaining('lookback_minutes')])
  expect(await verify()).toEqual([['id 101'], []])

  const covered = writeTempFile({ ...settings, lookback_minutes: 1440 })
  expect(await sync(covered)).toMatchObject({ status: 0 })
  expect(await verify(covered)).toEqual([[], []])
}, 60_000)
