import { describe, expect, it } from 'vitest'
import { sourceReadCommand } from '../../../connector/cli/feedback-source'
import { messages } from '../../support/destination'
import { writeTempFile } from '../../support/files'
import { sendJson, startServer } from '../../support/listen'
import { runCommand } from '../../support/run-command'

const start = '2024-01-01T00:00:00.000Z'
const minute = 60_000
const day = 1440 * minute

type Asked = {
  readonly modifiedTimeFrom: string
  readonly mentionTimeAfter?: string
  readonly mentionTimeBefore?: string
  readonly sources?: ReadonlyArray<number>
  readonly offset: number
  readonly limit: number
}
type Row = { readonly id: number; readonly modifiedTime: string; readonly mentionTime?: string }

const rows: ReadonlyArray<Row> = Array.from({ length: 430 }, (_, id) => ({
  id: id + 1,
  modifiedTime: new Date(Date.parse(start) + id * minute).toISOString(),
  mentionTime: new Date(Date.parse(start) - ((id * 7919) % 430) * day).toISOString(),
}))

/** The same rows, with mention times of 35 years. */
const spreadRows = rows.map((row, id) => ({
  ...row,
  mentionTime: new Date(Date.parse(start) - ((id * 7919) % 430) * 30 * day).toISOString(),
}))

const mentioned = ({ mentionTimeAfter = '0', mentionTimeBefore = '9' }: Asked, among: ReadonlyArray<Row> = rows) =>
  among.filter(({ mentionTime = '' }) => mentionTime > mentionTimeAfter && mentionTime < mentionTimeBefore)

/** What `read` makes of a service that answers with what `body` makes of a request. */
const reading = async (
  stream: string,
  body: (asked: Asked, nth: number) => unknown,
  statusOf: (asked: Asked) => number = () => 200,
) => {
  const { url, seen } = await startServer((request, response) => {
    const asked: Asked = JSON.parse(request.body)
    const status = statusOf(asked)
    const refusal = { status: { code: status, message: 'offset is too large' } }
    sendJson(response, status, status === 200 ? body(asked, seen.length) : refusal)
  })
  const config = writeTempFile({
    base_url: url,
    credentials: { auth_type: 'access_token', access_token: 'x' },
    start_date: start,
    page_size: 50,
  })
  const catalog = writeTempFile({ streams: [{ stream: { name: stream, json_schema: {} }, sync_mode: 'incremental' }] })
  const { status, stdout } = await runCommand(sourceReadCommand, ['--config', config, '--catalog', catalog])
  const said = messages(stdout)
  return {
    status,
    requests: seen.length,
    ids: said.flatMap(({ record }) => (record === undefined ? [] : [Number(record.data.id)])).sort((a, b) => a - b),
    errors: said.flatMap(({ trace }) => (trace?.error === undefined ? [] : [trace.error])),
    statuses: said.flatMap(({ trace }) => (trace?.stream_status === undefined ? [] : [trace.stream_status.status])),
    cursors: said.flatMap(({ state }) =>
      state === undefined
        ? []
        : [(state.stream.stream_state as { readonly modifiedTimeFrom: string }).modifiedTimeFrom],
    ),
    stdout,
  }
}
const echoed = (asked: Asked, reviews: ReadonlyArray<Row>) => ({ reviews, filter: asked })
const all = rows.map(({ id }) => id)

describe('a service that ignores offset ends the stream soon, with its cursor unchanged', () => {
  it.each<[string, string, (asked: Asked, nth: number) => unknown]>([
    ['and serves one page for ever', 'reviews', (asked) => echoed(asked, rows.slice(0, 50))],
    ['and echoes nothing', 'reviews', ({ limit }) => ({ reviews: rows.slice(0, limit), filter: {} })],
    ['and has no echo', 'reviews', ({ limit }) => ({ reviews: rows.slice(0, limit) })],
    ['nor tells its limit, which is small', 'reviews', () => ({ reviews: rows.slice(0, 7), filter: {} })],
    [
      'and names its sources',
      'reviews',
      (asked) => echoed({ ...asked, sources: asked.sources ?? [1, 2, 3] }, rows.slice(0, 50)),
    ],
    ['of deletions', 'deleted_reviews', (asked) => echoed(asked, rows.slice(0, 50))],
    ['and has fewer rows than fit in a page', 'reviews', (asked) => echoed(asked, rows.slice(0, 12))],
    ['but applies mention times', 'reviews', (asked) => echoed(asked, mentioned(asked).slice(0, asked.limit))],
  ])('%s', async (_, stream, body) => {
    const { status, requests, errors, statuses, cursors } = await reading(stream, body)
    expect(status).toBe(1)
    expect(errors).toMatchObject([
      {
        failure_type: 'config_error',
        message: expect.stringMatching(/ignores offset.*ask the service's operator/),
      },
    ])
    expect(statuses.at(-1)).toBe('INCOMPLETE')
    expect(new Set(cursors)).toEqual(new Set([start]))
    expect(requests).toBeLessThan(80)
  })

  it('and serves the answers of another offset', async () => {
    const { errors, requests, ids } = await reading('reviews', (asked) =>
      echoed({ ...asked, offset: 0 }, rows.slice(0, asked.limit)),
    )
    expect(errors).toMatchObject([
      { failure_type: 'transient_error', message: expect.stringMatching(/offset.*requested/) },
    ])
    expect([ids.length, requests]).toEqual([50, expect.any(Number)])
    expect(requests).toBeLessThan(20)
  })
})

describe('everything is read, in a bounded number of requests, if a service', () => {
  const sliced = (asked: Asked) => echoed(asked, mentioned(asked).slice(asked.offset, asked.offset + asked.limit))
  const isBehindEnd = (asked: Asked): boolean => asked.offset >= mentioned(asked).length

  it.each([400, 404, 413])('answers %i for an offset after its last row', async (refused) => {
    const statusOf = (asked: Asked) => (isBehindEnd(asked) ? refused : 200)
    const { status, ids, errors, requests } = await reading('reviews', sliced, statusOf)
    expect([status, errors]).toEqual([0, []])
    expect([...new Set(ids)]).toEqual(all)
    expect(requests).toBeLessThan(60)
  })

  it('refuses an offset above a limit that it does not announce', async () => {
    const { status, ids, errors, requests } = await reading(
      'reviews',
      (asked) => echoed(asked, mentioned(asked, spreadRows).slice(asked.offset, asked.offset + asked.limit)),
      ({ offset }) => (offset > 120 ? 400 : 200),
    )
    expect([status, errors]).toEqual([0, []])
    expect([...new Set(ids)]).toEqual(all)
    expect(requests).toBeLessThan(200)
  })

  it('answers an error inside a 200 for an offset after its last row', async () => {
    const refusal = { status: { code: 400, message: 'offset is too large' } }
    const { status, ids, errors } = await reading('reviews', (asked) => (isBehindEnd(asked) ? refusal : sliced(asked)))
    expect([status, errors]).toEqual([0, []])
    expect([...new Set(ids)]).toEqual(all)
  })

  it('answers nothing for a while, which contradicts the rows that it has shown: it is asked again', async () => {
    const emptyAtStart: number[] = []
    const { status, ids, errors, stdout } = await reading('reviews', (asked, nth) => {
      const isEmpty = nth > 1 && nth < 9
      if (isEmpty && asked.offset === 0) emptyAtStart.push(nth)
      return isEmpty ? echoed(asked, []) : sliced(asked)
    })
    expect([status, errors]).toEqual([0, []])
    expect([...new Set(ids)]).toEqual(all)
    // The first page came, then it was empty, and was asked for until it came again.
    expect(emptyAtStart.length).toBeGreaterThan(0)
    expect(stdout).not.toContain('INCOMPLETE')
  })

  it('never runs out of rows that are later than the run', async () => {
    const { status, requests, ids } = await reading('reviews', (asked, nth) =>
      echoed(
        asked,
        asked.offset < 50
          ? rows.slice(asked.offset, 50)
          : rows.slice(0, 50).map((row) => ({
              ...row,
              id: 1_000_000 + nth * 50 + row.id,
              modifiedTime: new Date(Date.now() + day).toISOString(),
            })),
      ),
    )
    expect(status).toBe(0)
    expect([...new Set(ids)]).toEqual(all.slice(0, 50))
    expect(requests).toBeLessThan(2000)
  })
})
