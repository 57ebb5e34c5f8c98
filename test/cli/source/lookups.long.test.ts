import { readFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { describe, expect, it } from 'vitest'
import { reportAirbyteFailure } from '../../../connector/cdk/program/exit'
import { checkCommand } from '../../../connector/cli/check'
import {
  sourceCheckCommand,
  sourceDiscoverCommand,
  sourceReadCommand,
  tapCommand,
} from '../../../connector/cli/feedback-source'
import { queryCommand } from '../../../connector/cli/query'
import { syncCommand } from '../../../connector/cli/sync'
import { verifyCommand } from '../../../connector/cli/verify'
import type { Sandbox, SandboxOptions } from '../../../connector/sandbox/start'
import { streams } from '../../../connector/streams/streams'
import { messages } from '../../support/destination'
import { createExportApi } from '../../support/export-api'
import { newTempPath, writeTempFile } from '../../support/files'
import { createSourceEnv, readAll } from '../../support/in-process'
import { type ReceivedRequest, sendJson, startServer } from '../../support/listen'
import { runCommand } from '../../support/run-command'
import { startSmallSandbox } from '../../support/sandbox'

const sources = [
  { id: 9_007_199_254_740_993n, name: 'Surveys', kind: { code: 'S', live: true } },
  { id: 2, name: null },
  { id: 2, name: null },
]
const text = (value: unknown): string =>
  JSON.stringify(value, (_, inner) => (typeof inner === 'bigint' ? `#${inner}#` : inner)).replace(/"#|#"/g, '')

/** A service of two lookups: one under `data.items` by POST, one that is a list itself, by GET. */
const lookups = (reply: { readonly sources?: unknown; readonly categories?: unknown; readonly status?: number } = {}) =>
  startServer(({ url }: ReceivedRequest, response: ServerResponse) => {
    if (url.endsWith('/find/sources'))
      return sendJson(response, reply.status ?? 200, text(reply.sources ?? { data: { items: sources, total: 3 } }))
    if (url.endsWith('/find/categories')) return sendJson(response, 200, text(reply.categories ?? [{ name: 'Staff' }]))
    return sendJson(response, 200, text({ reviews: [], filter: { modifiedTimeFrom: '2024-01-01T00:00:00.000Z' } }))
  })

const configured = (base_url: string, more: object = {}) => ({
  base_url: `${base_url}/gateway`,
  credentials: { auth_type: 'access_token', access_token: 'not-for-anybody' },
  start_date: '2024-01-01T00:00:00Z',
  lookups: {
    sources: { method: 'POST', path: '/find/sources', records_path: 'data.items', primary_key: 'id', ...more },
    categories: { path: '/find/categories', primary_key: 'name' },
  },
})

const catalog = (...names: ReadonlyArray<string>) =>
  writeTempFile({ streams: names.map((name) => ({ stream: { name, json_schema: {} }, sync_mode: 'full_refresh' })) })

const reading = async (config: object, ...names: ReadonlyArray<string>) => {
  const { status, stdout } = await runCommand(
    sourceReadCommand,
    ['--config', writeTempFile(config), '--catalog', catalog(...names)],
    { fail: reportAirbyteFailure },
  )
  const lines = messages(stdout)
  return {
    status,
    records: lines.flatMap(({ record }) => (record === undefined ? [] : [record])),
    completed: lines.flatMap(({ trace }) =>
      trace?.stream_status?.status === 'COMPLETE' ? [trace.stream_status.stream_descriptor.name] : [],
    ),
    errors: lines.flatMap(({ trace }) => (trace?.error === undefined ? [] : [trace.error])),
    warnings: lines.flatMap(({ log }) => (log?.level === 'WARN' ? [log.message] : [])),
  }
}

describe('a lookup whose operation the config names', () => {
  it('is read completely in both protocols: the key as text, other attributes in record, each row once', async () => {
    const { url, seen } = await lookups()
    const expected = [
      { id: '9007199254740993', record: { name: 'Surveys', kind: { code: 'S', live: true } } },
      { id: '2', record: { name: null } },
    ]
    const airbyte = await reading(configured(url), 'sources', 'categories')
    expect(airbyte.status).toBe(0)
    expect(airbyte.records.map(({ stream, data }) => [stream, data])).toEqual([
      ...expected.map((data) => ['sources', data]),
      ['categories', { name: 'Staff', record: {} }],
    ])
    expect(airbyte.completed).toEqual(['sources', 'categories'])

    const config = writeTempFile(configured(url))
    const found: Singer = JSON.parse((await runCommand(tapCommand, ['--config', config, '--discover'])).stdout)
    const selected = found.streams.flatMap((one) => (one.stream === 'sources' ? [{ ...one, metadata: chosen }] : []))
    const singer = await runCommand(tapCommand, ['--config', config, '--catalog', writeTempFile({ streams: selected })])
    const said = singer.stdout.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line)]))
    expect(said.filter(({ type }) => type === 'RECORD').map(({ record }) => record)).toEqual(expected)
    expect(said.find(({ type }) => type === 'SCHEMA')).toMatchObject({ stream: 'sources', key_properties: ['id'] })

    expect(seen.map(({ method, url, body, headers }) => [method, url, body, headers.accesstoken])).toEqual([
      ['POST', '/gateway/find/sources', '{}', 'not-for-anybody'],
      ['GET', '/gateway/find/categories', '', 'not-for-anybody'],
      ['POST', '/gateway/find/sources', '{}', 'not-for-anybody'],
    ])
  })

  it('supports only full refresh and has its own key in discover', async () => {
    const { stdout } = await runCommand(sourceDiscoverCommand, [
      '--config',
      writeTempFile(configured('http://127.0.0.1:1')),
    ])
    const streams: ReadonlyArray<Record<string, unknown>> = JSON.parse(stdout).catalog.streams
    expect(streams.find(({ name }) => name === 'categories')).toMatchObject({
      supported_sync_modes: ['full_refresh'],
      source_defined_primary_key: [['name']],
      json_schema: { properties: { name: { type: 'string' }, record: { type: ['null', 'object'] } } },
    })
  })

  it.each<[string, Parameters<typeof lookups>[0], object, string, RegExp]>([
    [
      'an application error inside a 200',
      { sources: { status: { code: 'E7', message: 'No lookups today' }, data: { items: sources } } },
      {},
      'transient_error',
      /^look up sources: the service reports an application error \(code E7\)/,
    ],
    [
      'a list at another path',
      { sources: { status: { code: 0, message: 'SUCCESS' }, result: { sources, names: ['a'] } } },
      {},
      'config_error',
      new RegExp(
        String.raw`^lookups\.sources\.records_path: there is no list of objects at data\.items\. ` +
          String.raw`The answer has one at result\.sources\.$`,
      ),
    ],
    [
      'a list that is the whole response',
      { sources: [{ id: 1 }] },
      {},
      'config_error',
      /records_path: .* The answer has one at "" \(the answer itself\)\.$/,
    ],
    [
      'records that are no objects',
      { sources: { data: { items: ['one', 'two'] } } },
      {},
      'config_error',
      /records_path: there is no list of objects at data\.items\. The answer has one nowhere\.$/,
    ],
    [
      'a key that no record has',
      {},
      { primary_key: 'code' },
      'config_error',
      /^lookups\.sources\.primary_key: record 1 of 3 has no code that can be a key\. Every record has id\.$/,
    ],
    [
      'a key that is null in a record',
      {
        sources: {
          data: {
            items: [
              { id: 1, code: 'a' },
              { id: null, code: 'b' },
            ],
          },
        },
      },
      {},
      'config_error',
      /primary_key: record 2 of 2 has no id that can be a key\. Every record has code\.$/,
    ],
    [
      'a key that is blank in a record',
      { sources: { data: { items: ['x', '', ' '].map((id, n) => ({ id, code: n })) } } },
      {},
      'config_error',
      /primary_key: record 2 of 3 has no id that can be a key\. Every record has code\.$/,
    ],
    [
      'a key that two different records share',
      {
        sources: {
          data: {
            items: [
              { id: 1, code: 'a' },
              { id: 1, code: 'b' },
            ],
          },
        },
      },
      {},
      'config_error',
      /primary_key: two different records have the same id\. Choose a distinguishing attribute\.$/,
    ],
    [
      'an operation that does not exist',
      { sources: undefined, status: 404 },
      {},
      'config_error',
      /^lookups\.sources: the service answered 404\. Check its path/,
    ],
  ])('reports %s, and the other stream continues', async (_, reply, more, type, says) => {
    const { url } = await lookups(reply)
    const { status, records, completed, errors } = await reading(configured(url, more), 'sources', 'categories')
    expect(errors).toEqual([expect.objectContaining({ failure_type: type, message: expect.stringMatching(says) })])
    expect([status, completed]).toEqual([1, ['categories']])
    expect(records.map(({ stream }) => stream)).toEqual(['categories'])
  })

  it.each(['record', 'Record'])('cannot have the key %s, as check says', async (primary_key) => {
    const { url, seen } = await lookups()
    const { stdout } = await runCommand(
      sourceCheckCommand,
      ['--config', writeTempFile(configured(url, { primary_key }))],
      { fail: reportAirbyteFailure },
    )
    expect(messages(stdout)).toEqual([
      expect.objectContaining({
        connectionStatus: {
          status: 'FAILED',
          message: expect.stringContaining('lookups.sources.primary_key must not be record'),
        },
      }),
    ])
    expect(seen).toEqual([])
  })
})

it('a stream without its lookup is built again from all reviews', async () => {
  const now = () => Date.parse('2024-03-01T00:00:00Z')
  const { data, api } = createExportApi(now)
  const review = { id: 1, modifiedTime: '2024-02-01T00:00:00.000Z', source: { id: 3, name: 'Web' } }
  data.reviews = [review]
  const { failures, records } = await readAll(
    createSourceEnv(api, { now }),
    streams.filter(({ name }) => name === 'sources'),
    { sources: { readAt: '2024-02-20T00:00:00.000Z' } },
  )
  expect(failures).toEqual({})
  expect(records.sources).toEqual([{ ...review.source, reviewModifiedTime: review.modifiedTime }])
})

type Singer = { readonly streams: ReadonlyArray<{ readonly stream: string }> }

const chosen = [{ breadcrumb: [], metadata: { selected: true } }]

const credentials = { auth_type: 'access_token', access_token: 'not-for-anybody' }
const start_date = '2010-01-01T00:00:00Z'
const settingsOf = ({ url, accessToken }: Pick<Sandbox, 'url' | 'accessToken'>, lookups: object) => ({
  base_url: url,
  credentials: { ...credentials, access_token: accessToken },
  start_date,
  lookups,
})
const dataOf = ({ records }: Awaited<ReturnType<typeof reading>>, stream: string) =>
  records.flatMap((record) => (record.stream === stream ? [record.data] : []))
/** The answer of an export without rows to a request. */
const noRows = (body: string) => ({ reviews: [], filter: { modifiedTimeFrom: JSON.parse(body).modifiedTimeFrom } })

describe('lookups.sources: true', () => {
  it.each([true, { enabled: true }])('reads the list of a published service, as %j', async (sources) => {
    const sandbox = await startSmallSandbox({ like: 'published' })
    const truth = new Map(
      (await sandbox.truth()).reviews.map(({ json }) => [JSON.parse(json).source.id, JSON.parse(json)]),
    )
    const result = await reading(settingsOf(sandbox, { sources }), 'sources')
    expect([result.status, result.errors, result.completed]).toEqual([0, [], ['sources']])
    const rows = dataOf(result, 'sources')
    expect(rows.map(({ id }) => id)).toEqual(expect.arrayContaining([...truth.keys()]))
    for (const row of rows)
      expect(row).toEqual({
        id: expect.any(Number),
        name: expect.any(String),
        reviewModifiedTime: expect.any(String),
        record: {},
      })
  })

  it.each<[string, number, unknown]>([
    ['400', 400, {}],
    ['401', 401, {}],
    ['403', 403, {}],
    ['404', 404, 'not here'],
    ['an application error', 200, { status: { code: 'E7', message: 'No such feature' } }],
    ['no list', 200, { sources: [] }],
    ['a page for people', 200, '<html>'],
    ['records without ids', 200, [{ name: 'Web' }]],
    ['an empty list', 200, []],
  ])('takes them from the reviews where the answer is %s, and says so once', async (_, status, answer) => {
    const review = { id: 1, modifiedTime: '2024-02-01T00:00:00.000Z', source: { id: 3, name: 'Web' } }
    const { url, seen } = await startServer(({ url: path, body }, response) => {
      if (path.endsWith('/sources')) return sendJson(response, status, answer)
      const { offset = 0, modifiedTimeFrom } = JSON.parse(body)
      const reviews = offset === 0 && modifiedTimeFrom < '2024-02-01' ? [review] : []
      return sendJson(response, 200, { reviews, filter: { modifiedTimeFrom, offset } })
    })
    const config = { base_url: url, credentials, start_date, lookups: { sources: true } }
    const result = await reading(config, 'reviews', 'sources', 'providers')
    expect([result.status, result.errors]).toEqual([0, []])
    expect(dataOf(result, 'sources')).toEqual([{ ...review.source, reviewModifiedTime: review.modifiedTime }])
    expect(result.warnings).toEqual([
      expect.stringMatching(/^lookups\.sources: .* Sources are read from the reviews instead/),
    ])
    const scans = seen.filter(({ method }) => method === 'POST').length
    const alone = await reading({ ...config, lookups: {} }, 'reviews', 'providers')
    expect(alone.status).toBe(0)
    expect(seen.filter(({ method }) => method === 'POST').length).toBe(2 * scans)
  })

  it('is read with tombstones too, and keeps a name that is not text in its record', async () => {
    const answer = [{ id: '3', name: { en: 'Web' } }]
    const { url, seen } = await startServer(({ url: path, body }, response) =>
      sendJson(response, 200, path.endsWith('/sources') ? answer : noRows(body)),
    )
    const config = { base_url: url, credentials, start_date, deletes: 'tombstones', lookups: { sources: true } }
    const result = await reading(config, 'reviews', 'sources')
    expect(dataOf(result, 'sources')).toEqual([
      { id: 3, name: null, reviewModifiedTime: expect.any(String), record: { name: { en: 'Web' } } },
    ])
    expect(seen.filter(({ url: path }) => path.endsWith('/sources'))).toHaveLength(1)
  })

  it('fails alone where the service is down, and the other streams go on', async () => {
    const { url } = await startServer(({ url: path, body }, response) =>
      path.endsWith('/sources')
        ? sendJson(response, 429, {}, { 'Retry-After': '9999' })
        : sendJson(response, 200, noRows(body)),
    )
    const config = { base_url: url, credentials, start_date, lookups: { sources: true } }
    const { completed, errors } = await reading(config, 'sources', 'providers')
    expect([completed, errors.map(({ failure_type }) => failure_type)]).toEqual([['providers'], ['transient_error']])
  })

  it('fails feedback check too where the service is down', async () => {
    const { url } = await startServer(({ url: path, body }, response) =>
      path.endsWith('/sources') ? sendJson(response, 503) : sendJson(response, 200, noRows(body)),
    )
    const config = writeTempFile({ base_url: url, credentials, start_date, lookups: { sources: true } })
    const { status, stdout } = await runCommand(checkCommand, ['--config', config])
    expect([status, stdout]).toEqual([75, expect.stringMatching(/^sources +FAILED +look up sources: .*503/m)])
  })

  it('is not asked for where privacy hides an attribute of sources', async () => {
    const sandbox = await startSmallSandbox({ like: 'published' })
    const config = { ...settingsOf(sandbox, { sources: true }), privacy: { drop: ['export.source.name'] } }
    const result = await reading(config, 'sources')
    expect(dataOf(result, 'sources').length).toBeGreaterThan(0)
    for (const row of dataOf(result, 'sources')) expect(Object.keys(row).sort()).toEqual(['id', 'reviewModifiedTime'])
    expect(result.warnings.join()).toContain('privacy hides attributes of sources')
  })

  it('passes check, with a warning where the reviews stand in for it', async () => {
    const check = async (config: object) =>
      messages(
        (await runCommand(sourceCheckCommand, ['--config', writeTempFile(config)], { fail: reportAirbyteFailure }))
          .stdout,
      )
    const [published, specified] = await Promise.all([
      startSmallSandbox({ like: 'published' }),
      startSmallSandbox({ like: 'specification' }),
    ])
    expect(JSON.stringify(await check(settingsOf(published, { sources: true, locations: true })))).not.toContain(
      'lookups',
    )
    expect(JSON.stringify(await check(settingsOf(specified, { sources: true })))).toMatch(
      /SUCCEEDED.*lookups\.sources: the service answered 404|lookups\.sources: the service answered 404.*SUCCEEDED/,
    )
  })
})

describe('lookups.locations', () => {
  const locationRoute = { method: 'GET', path: '/all/locations' } as const
  it.each<[string, SandboxOptions, unknown]>([
    ['a published service', { like: 'published', locations: 130 }, true],
    [
      'a published service, of 20 in a page',
      { like: 'published', locations: 130 },
      { enabled: true, paging: { page_param: 'page', size_param: 'size', size: 20 } },
    ],
    [
      'another operation',
      { like: 'specification', locations: 130, lookups: { locations: locationRoute } },
      { path: '/all/locations' },
    ],
  ])('reads every active location of %s, with its schema in discover', async (_, options, locations) => {
    const sandbox = await startSmallSandbox(options)
    const [first] = (await sandbox.truth()).locations
    await sandbox.api.syncLocations([{ code: first?.code ?? '', active: false }])()
    const config = settingsOf(sandbox, { locations })
    const result = await reading(config, 'managed_locations')
    expect([result.status, result.completed]).toEqual([0, ['managed_locations']])
    const active = (await sandbox.truth()).locations.filter((one) => one.active)
    expect(active).toHaveLength(129)
    expect(dataOf(result, 'managed_locations').map(({ id, displayName, code }) => [id, displayName, code])).toEqual(
      active.map(({ id, name, code }) => [id, name, code]),
    )
    const { stdout } = await runCommand(sourceDiscoverCommand, ['--config', writeTempFile(config)])
    const found = JSON.parse(stdout).catalog.streams.find(({ name }: { name: string }) => name === 'managed_locations')
    expect(found).toEqual(JSON.parse(readFileSync('catalog/managed_locations.json', 'utf8')))
  })

  const serveLocations = (answer: (query: URLSearchParams, request: number) => unknown, status = 200) =>
    startServer(({ url }, response, count) =>
      sendJson(response, status, text(answer(new URL(url, 'http://x').searchParams, count))),
    )
  const readLocations = async (base_url: string, locations: unknown = true, more: object = {}) =>
    reading({ base_url, credentials, start_date, lookups: { locations }, ...more }, 'managed_locations')

  it('loses no location without a code, or with the code and type of another', async () => {
    const data = [
      {
        id: 1,
        code: 'A',
        codeType: 'STORE',
        displayName: 'a',
        zip: 75_001,
        labels: ['x'],
        createdTime: '2019-10-01 17:44:46',
      },
      { id: 2, code: 'A', codeType: 'STORE', displayName: 'b', modifiedTime: 1_569_951_886_000 },
      { id: 3, code: null, displayName: 'c', entityMappings: { a: 1 } },
      { id: 4, code: ' ', codeType: '', colour: 'red' },
      { id: 5, code: 'A', codeType: null },
      { id: 9_007_199_254_740_993n, code: 7, codeType: 'X' },
    ]
    const { url, seen } = await serveLocations(() => ({ data, totalPages: 1 }))
    const result = await readLocations(url)
    expect(result.status).toBe(0)
    expect(dataOf(result, 'managed_locations')).toEqual([
      expect.objectContaining({
        id: 1,
        code: 'A',
        codeType: 'STORE',
        zip: '75001',
        labels: '["x"]',
        createdTime: '2019-10-01T17:44:46.000Z',
      }),
      expect.objectContaining({
        id: 2,
        code: '2',
        codeType: 'id',
        displayName: 'b',
        modifiedTime: '2019-10-01T17:44:46.000Z',
      }),
      expect.objectContaining({ id: 3, code: '3', codeType: 'id', entityMappings: '{"a":1}' }),
      expect.objectContaining({ id: 4, code: '4', codeType: 'id', unknown_attributes: { colour: 'red' } }),
      expect.objectContaining({ id: 5, code: 'A', codeType: 'none' }),
      expect.objectContaining({ id: 9_007_199_254_740_993n, code: '7', codeType: 'X' }),
    ])
    expect(result.warnings).toEqual([
      expect.stringContaining('colour'),
      expect.stringMatching(/1 locations have the code and codeType of another/),
    ])
    expect(seen[0]?.url).toBe('/api/v2/entity/locations?sortBy=id&sortDirection=ASC&page=1&size=100')
  })

  it.each<[string, ReadonlyArray<object>, RegExp]>([
    ['has neither code nor id', [{ id: 1 }, { displayName: 'x' }], /location 2 of 2 has neither a code nor an id/],
    [
      'cannot be distinguished from another',
      [{ code: 'A' }, { code: 'A', displayName: 'x' }],
      /location 2 of 2 has the code and codeType of another/,
    ],
    [
      'has an id that is the code of another',
      [{ code: '5', codeType: 'id' }, { id: 5 }],
      /location 2 of 2 has the code and codeType of another/,
    ],
  ])('is an error where a location %s', async (_, data, message) => {
    const { url } = await serveLocations(() => ({ data }))
    const { status, records, errors } = await readLocations(url)
    expect([status, records]).toEqual([1, []])
    expect(errors).toEqual([
      expect.objectContaining({ failure_type: 'config_error', message: expect.stringMatching(message) }),
    ])
  })

  it.each<[number, unknown, RegExp]>([
    [404, 'no', /lookups\.locations: the service answered 404\. Check its path/],
    [403, {}, /look up locations: The token lacks permission/],
    [401, {}, /look up locations: The access token is missing, wrong or expired/],
    [200, { status: { code: 9, message: 'off' } }, /look up locations: the service reports an application error/],
  ])('fails alone where it is answered %i: the exports go on', async (status, answer, message) => {
    const { url } = await startServer(({ method, body }, response) =>
      method === 'GET' ? sendJson(response, status, answer) : sendJson(response, 200, noRows(body)),
    )
    const config = { base_url: url, credentials, start_date, lookups: { locations: true } }
    const { completed, errors } = await reading(config, 'managed_locations', 'providers')
    expect(errors.map((error) => error.message)).toEqual([expect.stringMatching(message)])
    expect(completed).toEqual(['providers'])
  })

  it('is read again, and says so, where a location goes while it is read', async () => {
    let ids = Array.from({ length: 9 }, (_, n) => n + 1)
    const { url } = await serveLocations((query, count) => {
      const page = Number(query.get('page'))
      const size = Number(query.get('size'))
      const data = ids.slice((page - 1) * size, page * size).map((id) => ({ id, code: `L${id}` }))
      if (count === 1) ids = ids.filter((id) => id !== 2)
      return { data, totalPages: Math.ceil(ids.length / size) }
    })
    const locations = {
      enabled: true,
      paging: { page_param: 'page', size_param: 'size', size: 3, total_pages_path: 'totalPages' },
    }
    const result = await readLocations(url, locations)
    expect(dataOf(result, 'managed_locations').map(({ id }) => id)).toEqual([1, 3, 4, 5, 6, 7, 8, 9])
    expect(result.warnings).toEqual([expect.stringContaining('the list changed while it was read')])
  })

  it('ends where pages never do', async () => {
    const { url, seen } = await serveLocations((query) => {
      const page = Number(query.get('page'))
      return { data: [{ id: page, code: `L${page}` }], totalPages: 1e9 }
    })
    const { status, errors } = await readLocations(url)
    expect([status, errors.map(({ message }) => message)]).toEqual([
      1,
      [expect.stringMatching(/does not end after 1000 pages/)],
    ])
    expect(seen).toHaveLength(1000)
  })

  it('hides what privacy names', async () => {
    const { url } = await serveLocations(() => ({ data: [{ id: 1, code: 'A', email: 'a@b.c', phone: '1' }] }))
    const privacy = { drop: ['managed_locations.email'], hash: ['managed_locations.phone'], hash_key: 'k' }
    const { records } = await readLocations(url, true, { privacy })
    expect(records[0]?.data).not.toHaveProperty('email')
    expect(records[0]?.data.phone).toMatch(/^[0-9a-f]{64}$/)
  })
})

it('a source estimates the streams whose count it knows, before their first record, and no other', async () => {
  const sandbox = await startSmallSandbox({ like: 'published' })
  const config = { ...settingsOf(sandbox, { sources: true, locations: true }), audit: true }
  const counted = ['sources', 'managed_locations', 'sync_audit']
  const args = ['--config', writeTempFile(config), '--catalog', catalog('reviews', 'review_contents', ...counted)]
  const { status, stdout } = await runCommand(sourceReadCommand, args)
  expect(status).toBe(0)
  const said = messages(stdout)
  const estimates = said.flatMap(({ trace }) => (trace?.type === 'ESTIMATE' ? [trace.estimate] : []))
  const isOf = (name: string) => (line: (typeof said)[number]) => line.record?.stream === name
  const countOf = (name: string) => said.filter(isOf(name)).length
  expect(estimates).toEqual(counted.map((name) => ({ name, type: 'STREAM', row_estimate: countOf(name) })))
  for (const name of counted) {
    const at = said.findIndex(({ trace }) => trace?.type === 'ESTIMATE' && trace.estimate?.name === name)
    expect(countOf(name)).toBeGreaterThan(0)
    expect(at).toBeLessThan(said.findIndex(isOf(name)))
  }
})

it('what was looked up passes verify', async () => {
  const sandbox = await startSmallSandbox({ like: 'published' })
  const config = writeTempFile(settingsOf(sandbox, { sources: true, locations: true }))
  const db = newTempPath('lookups.duckdb')
  const args = ['--config', config, '--db', db]
  const synced = await runCommand(syncCommand, [...args, '--select', 'reviews,sources,managed_locations'])
  expect([synced.status, synced.stdout]).toEqual([0, expect.stringMatching(/^managed_locations +complete/m)])
  expect(await runCommand(verifyCommand, args)).toMatchObject({ status: 0 })
  const { stdout } = await runCommand(queryCommand, [
    '--db',
    db,
    'SELECT count(*) AS n, count(DISTINCT code) AS m FROM managed_locations',
  ])
  const count = (await sandbox.truth()).locations.filter(({ active }) => active).length
  expect(stdout).toMatch(new RegExp(`${count}\\D+${count}`))
})
