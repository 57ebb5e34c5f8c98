import { expect, it } from 'vitest'
import { tapCommand } from '../../../connector/cli/feedback-source'
import { writeTempFile } from '../../support/files'
import { type SingerStream, singerRecords } from '../../support/lines'
import { sendJson, startServer } from '../../support/listen'
import { runCommand } from '../../support/run-command'

const day = 86_400_000
const at = Date.parse('2024-06-01T00:00:00Z')
const toText = (time: number): string => new Date(time).toISOString()

/**
 * Reviews that all changed in one hour and were posted a month apart, from a service that reads back one year unless it
 * is asked for more.
 */
const startService = () =>
  startServer(({ body, url }, response) => {
    const { modifiedTimeFrom, offset = 0, limit = 1000, mentionTimeAfter, mentionTimeBefore } = JSON.parse(body)
    const filter = { modifiedTimeFrom, offset, limit }
    if (url.endsWith('/deleted-reviews')) return sendJson(response, 200, { reviews: [], filter })
    const bounds = {
      mentionTimeAfter: mentionTimeAfter ?? toText(at - 365 * day),
      mentionTimeBefore: mentionTimeBefore ?? toText(Date.now()),
    }
    const rows = Array.from({ length: 60 }, (_, n) => ({
      id: n + 1,
      modifiedTime: toText(at + n * 60_000),
      mentionTime: toText(at - n * 30 * day),
    })).filter(
      ({ modifiedTime, mentionTime }) =>
        modifiedTime > modifiedTimeFrom &&
        mentionTime > bounds.mentionTimeAfter &&
        mentionTime < bounds.mentionTimeBefore,
    )
    sendJson(response, 200, { reviews: rows.slice(offset, offset + limit), filter: { ...filter, ...bounds } })
  })

it('a run reads what the service leaves out by its own default range', async () => {
  const { url } = await startService()
  const { streams } = JSON.parse((await runCommand(tapCommand, ['--discover'])).stdout)
  const catalog = writeTempFile({
    streams: streams.map((stream: SingerStream) => ({
      ...stream,
      metadata: [
        ...stream.metadata,
        {
          breadcrumb: [],
          metadata: { selected: ['reviews', 'deleted_reviews', 'locations'].includes(stream.tap_stream_id) },
        },
      ],
    })),
  })
  const read = async (settings: object) => {
    const config = writeTempFile({
      base_url: url,
      credentials: { auth_type: 'access_token', access_token: 'token' },
      start_date: '2024-01-01T00:00:00Z',
      page_size: 10,
      ...settings,
    })
    const { status, stdout, stderr } = await runCommand(tapCommand, ['--config', config, '--catalog', catalog], {
      program: 'tap-feedback',
    })
    return { status, count: singerRecords(stdout, 'reviews').length, isReported: stderr.includes('its own default') }
  }
  expect(await read({})).toEqual({ status: 0, count: 60, isReported: false })
  expect(await read({ mention_time_after: '2000-01-01T00:00:00Z' })).toEqual({
    status: 0,
    count: 60,
    isReported: false,
  })
})
