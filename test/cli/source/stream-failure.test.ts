import type { ServerResponse } from 'node:http'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { reportAirbyteFailure } from '../../../connector/cdk/program/exit'
import { sourceReadCommand, tapCommand } from '../../../connector/cli/feedback-source'
import type { Sandbox } from '../../../connector/sandbox/start'
import { streams } from '../../../connector/streams/streams'
import { writeTempFile } from '../../support/files'
import { startProxy } from '../../support/gate'
import { airbyteLines, singerLines, singerState } from '../../support/lines'
import { type ReceivedRequest, sendJson } from '../../support/listen'
import { runCommand } from '../../support/run-command'
import { lookupSettings, startTestSandbox } from '../../support/sandbox'

const ofReviews = streams.flatMap(({ name, derivation }) =>
  derivation === undefined || name in lookupSettings ? [] : [name],
)
const all = streams.map(({ name }) => name)
const at = (path: string) => (seen: ReceivedRequest) => seen.url.startsWith(path)
const summaries = ({ url }: ReceivedRequest) =>
  url.startsWith('/api/bsr/comments') && url.includes('showComments=false')

/** What stops a family of streams, and which streams those are. */
const families: Readonly<Record<string, readonly [(seen: ReceivedRequest) => boolean, ReadonlyArray<string>]>> = {
  export: [at('/api/reputation/v1/reviews'), ofReviews],
  deletions: [at('/api/reputation/v1/deleted-reviews'), ['deleted_reviews']],
  comments: [(seen) => at('/api/bsr/comments')(seen) && !summaries(seen), ['comments']],
  'entity ratings': [summaries, ['entity_ratings']],
  'transparency reviews': [at('/api/external/bsr/v2/reviews'), ['transparency_reviews']],
  ...Object.fromEntries(
    Object.entries(lookupSettings).map(([name, { path }]) => [`the lookup of ${name}`, [at(path), [name]]]),
  ),
}

const faults: Readonly<Record<string, (response: ServerResponse) => void>> = {
  'answers 403': (response) => sendJson(response, 403, { status: { code: 7, message: 'not yours' } }),
  'makes no sense': (response) => sendJson(response, 200, '<html>'),
}

describe('a refused stream fails alone', () => {
  let sandbox: Sandbox
  beforeAll(async () => {
    sandbox = await startTestSandbox({ reviews: 60, locations: 2, until: Date.now() - 3_600_000 })
    await sandbox.churn({ delete: 2 })
  })
  afterAll(() => sandbox.close())

  const configured = (base_url: string, entities: object) => ({
    base_url,
    credentials: { auth_type: 'access_token', access_token: sandbox.accessToken },
    start_date: '2010-01-01T00:00:00Z',
    entities,
    lookups: lookupSettings,
  })
  const someone = async () => {
    const [location] = (await sandbox.truth()).locations
    return { location_ids: [String(location?.id)] }
  }
  const catalog = writeTempFile({
    streams: streams.map(({ name }) => ({ stream: { name, json_schema: {} }, sync_mode: 'incremental' })),
  })

  const airbyte = async (config: string, state: unknown = []) => {
    const args = ['--config', config, '--catalog', catalog, '--state', writeTempFile(state)]
    const { status, stdout } = await runCommand(sourceReadCommand, args, { fail: reportAirbyteFailure })
    const statuses = airbyteLines(stdout).flatMap(({ trace }) =>
      trace?.stream_status === undefined
        ? []
        : [[trace.stream_status.status, trace.stream_status.stream_descriptor.name] as const],
    )
    const ended = (as: string) => statuses.flatMap(([status, name]) => (status === as ? [name] : [])).sort()
    return {
      status,
      complete: ended('COMPLETE'),
      incomplete: ended('INCOMPLETE'),
      errors: airbyteLines(stdout).flatMap(({ trace }) => (trace?.error === undefined ? [] : [trace.error.message])),
      records: new Set(airbyteLines(stdout).flatMap(({ record }) => (record === undefined ? [] : [record.stream]))),
    }
  }

  const without = (names: ReadonlyArray<string>) => all.filter((name) => !names.includes(name)).sort()

  it.concurrent.for(
    Object.entries(families).flatMap(([family, [stops, failing]]) =>
      Object.entries(faults).map(([fault, strike]) => [family, fault, stops, failing, strike] as const),
    ),
  )('%s %s', async ([family, fault, stops, failing, strike], { onTestFinished, expect }) => {
    const stop = (seen: ReceivedRequest, response: ServerResponse) => {
      if (stops(seen)) strike(response)
      return stops(seen)
    }
    const { url } = await startProxy(sandbox.url, stop, onTestFinished)
    const config = writeTempFile(configured(url, await someone()))
    const { status, complete, incomplete, errors, records } = await airbyte(config)
    expect([status, complete, incomplete]).toEqual([1, without(failing), [...failing].sort()])
    expect(errors).toHaveLength(failing.length)
    for (const error of errors)
      expect(error).toMatch(fault === 'answers 403' ? /lacks permission.*\(403\)/ : /answer is not what was asked for/)
    for (const name of without(failing)) expect([...records], family).toContain(name)

    const singer = await runCommand(tapCommand, ['--config', config])
    const sent = new Set(singerLines(singer.stdout).flatMap((line) => (line.type === 'RECORD' ? [line.stream] : [])))
    expect(singer.status).toBe(1)
    expect([...sent].sort()).toEqual(without(failing))
    expect(Object.keys(singerState(singer.stdout).bookmarks)).toEqual(expect.arrayContaining(without(failing)))
    for (const name of failing) expect(singer.stderr).toContain(name)
  })

  it('streams that take their entities from the reviews name the cause if the reviews are refused', async () => {
    const { url } = await startProxy(sandbox.url, (seen, response) => {
      const stopped = at('/api/reputation/v1/reviews')(seen)
      if (stopped) faults['answers 403']?.(response)
      return stopped
    })
    const config = writeTempFile(configured(url, { from_reviews: { locations: true } }))
    const { complete, errors } = await airbyte(config)
    expect(complete).toEqual(['deleted_reviews', ...Object.keys(lookupSettings)].sort())
    expect(errors.filter((error) => error.startsWith('entities.from_reviews: export reviews: '))).toHaveLength(3)
  })

  it.each(['separate', 'tombstones'])('a stream with a wrong state fails alone, with deletes: %s', async (deletes) => {
    const config = writeTempFile({ ...configured(sandbox.url, await someone()), deletes })
    const wrong = ['reviews', 'review_contents', 'comments'].map((name) => ({
      type: 'STREAM',
      stream: { stream_descriptor: { name }, stream_state: { modifiedTimeFrom: 'yesterday', fromDate: 'yesterday' } },
    }))
    const { complete, incomplete, errors } = await airbyte(config, wrong)
    expect(incomplete).toEqual(['comments', 'review_contents', 'reviews'])
    expect(complete).toEqual(without(incomplete))
    expect(errors.sort()).toEqual(
      incomplete.map((name) => expect.stringMatching(`^The state of ${name} is wrong: (modifiedTimeFrom|fromDate) `)),
    )
  })

  it('reviews and their deletions fail alone if the deletions to mark are refused', async () => {
    const stop = (seen: ReceivedRequest, response: ServerResponse) => {
      const stopped = at('/api/reputation/v1/deleted-reviews')(seen)
      if (stopped) faults['answers 403']?.(response)
      return stopped
    }
    const { url } = await startProxy(sandbox.url, stop)
    const config = writeTempFile({ ...configured(url, await someone()), deletes: 'tombstones' })
    const cursor = { modifiedTimeFrom: '2020-01-01T00:00:00.000Z' }
    const state = [{ type: 'STREAM', stream: { stream_descriptor: { name: 'reviews' }, stream_state: cursor } }]
    const { complete, incomplete, records } = await airbyte(config, state)
    expect(incomplete).toEqual(['deleted_reviews', 'reviews'])
    expect(complete).toEqual(without(incomplete))
    expect([...records]).toEqual(expect.arrayContaining(['locations', 'review_contents', 'comments']))
  })
})
