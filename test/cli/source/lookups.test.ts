import type { ServerResponse } from 'node:http'
import { describe, expect, it } from 'vitest'
import { reportAirbyteFailure } from '../../../connector/cdk/program'
import {
  sourceCheckCommand,
  sourceDiscoverCommand,
  sourceReadCommand,
  tapCommand,
} from '../../../connector/cli/feedback-source'
import { streams } from '../../../connector/streams/streams'
import { messages } from '../../support/destination'
import { createExportApi } from '../../support/export-api'
import { writeTempFile } from '../../support/files'
import { createSourceEnv, readAll } from '../../support/in-process'
import { type ReceivedRequest, sendJson, startServer } from '../../support/listen'
import { runCommand } from '../../support/run-command'

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
  }
}

describe('a lookup whose operation the config names', () => {
  it('is read completely in both protocols: the key as text, the other attributes in record, each row once', async () => {
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
      /^lookups\.sources\.records_path: there is no list of objects at data\.items\. The answer has one at result\.sources\.$/,
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
      /primary_key: two different records have the same id\. Choose what tells them apart\.$/,
    ],
    [
      'an operation that does not exist',
      { sources: undefined, status: 404 },
      {},
      'config_error',
      /^lookups\.sources: the service answered 404\. Check its path/,
    ],
  ])('tells of %s, and the other stream goes on', async (_, reply, more, type, says) => {
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
