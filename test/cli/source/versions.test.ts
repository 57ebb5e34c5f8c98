import { describe, expect, it } from 'vitest'
import { tapCommand } from '../../../connector/cli/feedback-source'
import { writeTempFile } from '../../support/files'
import { type SingerStream, singerRecords, singerState } from '../../support/lines'
import { sendJson, startServer } from '../../support/listen'
import { random } from '../../support/random'
import { runCommand } from '../../support/run-command'

type Version = { readonly id: number; readonly modifiedTime: string }

const minute = 60_000
const version = (id: number, time: number): Version => ({ id, modifiedTime: new Date(time).toISOString() })

/** Both exports serve these rows, in their order. */
const startService = (rows: ReadonlyArray<Version>) =>
  startServer(({ body }, response) => {
    const { modifiedTimeFrom, offset = 0, limit = 1000 } = JSON.parse(body)
    const reviews = rows.filter(({ modifiedTime }) => modifiedTime > modifiedTimeFrom).slice(offset, offset + limit)
    sendJson(response, 200, { reviews, filter: { modifiedTimeFrom, offset, limit } })
  })

const select = async (name: string): Promise<string> => {
  const { streams } = JSON.parse((await runCommand(tapCommand, ['--discover'])).stdout)
  return writeTempFile({
    streams: streams
      .filter(({ tap_stream_id }: SingerStream) => tap_stream_id === name)
      .map((stream: SingerStream) => ({
        ...stream,
        metadata: [...stream.metadata, { breadcrumb: [], metadata: { selected: true } }],
      })),
  })
}

/** The records of one run, and the state after it. */
const read = async (stream: string, url: string, settings: object, state?: object) => {
  const config = {
    base_url: url,
    credentials: { auth_type: 'access_token', access_token: 'token' },
    start_date: '2024-01-01T00:00:00Z',
    ...settings,
  }
  const { status, stdout } = await runCommand(
    tapCommand,
    [
      ...['--config', writeTempFile(config), '--catalog', await select(stream)],
      ...(state === undefined ? [] : ['--state', writeTempFile(state)]),
    ],
    { program: 'tap-feedback' },
  )
  expect(status).toBe(0)
  const records = singerRecords(stdout, stream).map(({ id, modifiedTime }) => `${id} ${modifiedTime}`)
  return { records, state: singerState(stdout) as object }
}

/** What a target has that keeps the record that came last. */
const lastById = (records: ReadonlyArray<string>): ReadonlyMap<string, string> =>
  new Map(records.map((record) => record.split(' ') as [string, string]))

const newestById = (rows: ReadonlyArray<Version>): ReadonlyMap<string, string> =>
  lastById(
    [...rows]
      .sort((a, b) => Date.parse(a.modifiedTime) - Date.parse(b.modifiedTime))
      .map(({ id, modifiedTime }) => `${id} ${modifiedTime}`),
  )

describe.each(['deleted_reviews', 'reviews'])('of two versions of one id, %s', (stream) => {
  it('gives the newer one last, whichever stands first in a page', async () => {
    const at = Date.parse('2024-06-01T00:00:00Z')
    const [first, second, third] = [at, at + minute, at + 2 * minute]
    const { url } = await startService([version(7, third), version(8, second), version(7, first)])
    const { records } = await read(stream, url, {})
    expect(records.map((record) => record.split(' ')[0]).sort()).toEqual(['7', '7', '8'])
    expect(lastById(records).get('7')).toBe(new Date(third).toISOString())
  })

  it.each(['oldest first', 'newest first', 'by id', 'in no order'])(
    'gives the newest one last of many on many pages, %s, in the next run too',
    async (order) => {
      const start = Date.now() - 3 * 60 * minute
      const draw = random(7)
      const rows = Array.from({ length: 300 }, (_, n) => version(1 + (n % 120), start + n * 30_000))
      const key = new Map(rows.map((row) => [row, draw()]))
      const byTime = (a: Version, b: Version) => Date.parse(a.modifiedTime) - Date.parse(b.modifiedTime)
      rows.sort(
        {
          'oldest first': byTime,
          'newest first': (a: Version, b: Version) => byTime(b, a),
          'by id': (a: Version, b: Version) => a.id - b.id || byTime(b, a),
          'in no order': (a: Version, b: Version) => (key.get(a) ?? 0) - (key.get(b) ?? 0),
        }[order],
      )
      const { url } = await startService(rows)
      // The lookback has the next run read everything again.
      const settings = { page_size: 50, lookback_minutes: 1000 }
      const { records, state } = await read(stream, url, settings)
      expect(lastById(records)).toEqual(newestById(rows))
      const next = await read(stream, url, settings, state)
      expect(lastById([...records, ...next.records])).toEqual(newestById(rows))
    },
  )
})
