import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { queryCommand } from '../../connector/cli/query'
import { snapshotCommand } from '../../connector/cli/snapshot'
import { verifyCommand } from '../../connector/cli/verify'
import { runCommand } from '../support/run-command'

const folder = mkdtempSync(join(tmpdir(), 'foreign-'))
afterAll(() => rmSync(folder, { recursive: true }))
const path = (name: string) => join(folder, name)

const jsonLines = (lines: ReadonlyArray<unknown>) =>
  lines.map((line) => (typeof line === 'string' ? line : JSON.stringify(line))).join('\n')
const rows = async (db: string, sql: string) =>
  (await runCommand(queryCommand, ['--db', db, '--json', sql])).stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))

describe('messages of another Airbyte source', () => {
  const user = (data: object, more: object = {}) => ({
    type: 'RECORD',
    record: { namespace: null, stream: 'users', data, emitted_at: 1_700_000_000_002.75, meta: null, ...more },
  })
  const product = (namespace: string, id: number) => ({
    type: 'RECORD',
    record: { namespace, stream: 'products', data: { id }, emitted_at: 1_700_000_000_004 },
  })
  const status = (value: string, name: string, namespace: string | null = null) => ({
    type: 'TRACE',
    trace: {
      type: 'STREAM_STATUS',
      emitted_at: 1.5,
      stream_status: { stream_descriptor: { name, namespace }, status: value },
    },
  })
  const messages = [
    'starting up, which is no JSON',
    { type: 'LOG', log: { level: 'INFO', message: 'hello' } },
    { type: 'CONTROL', control: { type: 'CONNECTOR_CONFIG', emitted_at: 1.5, connectorConfig: { config: { a: 1 } } } },
    {
      type: 'TRACE',
      trace: { type: 'ESTIMATE', emitted_at: 1, estimate: { name: 'users', type: 'STREAM', row_estimate: 3 } },
    },
    status('STARTED', 'users'),
    status('RUNNING', 'users'),
    user({ id: 1, updated_at: '2022-06-01T10:00:00+02:00', age: 33, tags: ['a'] }),
    user({ id: 2, updated_at: '2022-06-02', age: 'x' }),
    user(
      { id: 1, updated_at: '2022-06-03T00:00:00' },
      { meta: { changes: [{ field: 'age', change: 'NULLED', reason: 'PLATFORM_FIELD_SIZE_LIMITATION' }] } },
    ),
    {
      type: 'STATE',
      state: {
        type: 'STREAM',
        stream: { stream_descriptor: { name: 'users', namespace: null }, stream_state: { updated_at: '2022-06-03' } },
        sourceStats: { recordCount: 3.0 },
      },
    },
    product('north', 1),
    product('south', 2),
    status('COMPLETE', 'users'),
    status('COMPLETE', 'products', 'north'),
    status('COMPLETE', 'products', 'south'),
  ]
  const products = (namespace: string) => ({
    stream: {
      name: 'products',
      namespace,
      json_schema: { properties: { id: { oneOf: [{ type: 'integer' }, { type: 'null' }] } } },
    },
    sync_mode: 'full_refresh',
    destination_sync_mode: 'append',
  })
  const catalog = {
    streams: [
      {
        stream: {
          name: 'users',
          namespace: null,
          json_schema: {
            properties: {
              id: { type: 'integer' },
              updated_at: { type: 'string', format: 'date-time', airbyte_type: 'timestamp_with_timezone' },
              age: { type: 'integer' },
              tags: { type: 'array', items: { type: 'string' } },
            },
          },
        },
        sync_mode: 'incremental',
        destination_sync_mode: 'append_dedup',
        cursor_field: ['updated_at'],
        primary_key: [['id']],
        generation_id: 0,
        minimum_generation_id: 0,
        sync_id: 1,
      },
      products('north'),
      products('south'),
    ],
  }
  const catalogFile = path('catalog.json')
  writeFileSync(catalogFile, JSON.stringify(catalog))

  it('are loaded: other lines and messages are skipped, and namespaces stay apart', async () => {
    const db = path('airbyte.duckdb')
    const outcome = await runCommand(snapshotCommand, ['--db', db, '--catalog', catalogFile], jsonLines(messages))
    expect(outcome).toMatchObject({ status: 0, stderr: expect.stringContaining('Line 1 of the input is no message') })
    expect(
      await rows(db, "SELECT id, updated_at, age, _airbyte_meta->>'$.changes[0].reason' AS why FROM users ORDER BY id"),
    ).toEqual([
      { id: 1, updated_at: '2022-06-03T00:00:00.000Z', age: null, why: 'PLATFORM_FIELD_SIZE_LIMITATION' },
      { id: 2, updated_at: '2022-06-02T00:00:00.000Z', age: null, why: 'DESTINATION_TYPECAST_ERROR' },
    ])
    expect(await rows(db, 'SELECT n.id AS n, s.id AS s FROM "north.products" AS n, "south.products" AS s')).toEqual([
      { n: 1, s: 2 },
    ])
    expect((await runCommand(verifyCommand, ['--db', db])).stdout).toContain('All checks passed.')
  })

  it('need their catalog', async () => {
    const outcome = await runCommand(snapshotCommand, ['--db', path('none.duckdb')], jsonLines(messages))
    expect(outcome).toMatchObject({ status: 1, stderr: expect.stringMatching(/users is no stream of ours.*--catalog/) })
  })

  it('need no catalog if they contain one', async () => {
    const found = { type: 'CATALOG', catalog: { streams: catalog.streams.map(({ stream }) => stream) } }
    const db = path('found.duckdb')
    const outcome = await runCommand(snapshotCommand, ['--db', db, '--json'], jsonLines([found, ...messages]))
    expect(JSON.parse(outcome.stdout)).toMatchObject([{ records: 3 }, { records: 1 }, { records: 1 }])
  })
})

describe('messages of another Singer tap', () => {
  const schema = (stream: string, properties: object, more: object = {}) => ({
    type: 'SCHEMA',
    stream,
    schema: { type: 'object', properties, definitions: { day: { type: 'string', format: 'date' } } },
    key_properties: [],
    ...more,
  })
  const record = (stream: string, record: object) => ({ type: 'RECORD', stream, record, version: 17 })
  const keyed = { key_properties: ['k'], bookmark_properties: ['n'] }
  const numbers = { k: { type: 'integer' }, n: { type: ['null', 'integer'] } }
  const messages = [
    'INFO Starting sync',
    { type: 'STATE', value: {} },
    schema('public-numbers', numbers, keyed),
    { type: 'ACTIVATE_VERSION', stream: 'public-numbers', version: 17 },
    record('public-numbers', { k: 1, n: 9 }),
    { type: 'STATE', value: { bookmarks: { 'public-numbers': { n: 9 } }, currently_syncing: 'public-numbers' } },
    schema('plain', { a: { anyOf: [{ type: 'string' }, { type: 'null' }] } }),
    record('plain', { a: 'x' }),
    record('plain', { a: 'x' }),
    record('public-numbers', { k: 2, n: 10 }),
    schema('public-numbers', { ...numbers, day: { $ref: '#/definitions/day' } }, keyed),
    record('public-numbers', { k: 3, n: 8, day: '2024-01-05' }),
    { type: 'ACTIVATE_VERSION', stream: 'public-numbers', version: 17 },
    { type: 'STATE', value: { bookmarks: { 'public-numbers': { n: 10 } }, currently_syncing: null } },
  ]

  it('are loaded: rows without a key, integer cursors, a schema that grows during the run', async () => {
    const db = path('singer.duckdb')
    const outcome = await runCommand(snapshotCommand, ['--db', db], jsonLines(messages))
    expect(outcome).toMatchObject({
      status: 0,
      stdout: '',
    })
    expect(await rows(db, 'SELECT k, n, strftime(day, \'%d\') AS day FROM "public-numbers" ORDER BY k')).toEqual([
      { k: 1, n: 9, day: null },
      { k: 2, n: 10, day: null },
      { k: 3, n: 8, day: '05' },
    ])
    expect(await rows(db, 'SELECT a FROM plain')).toEqual([{ a: 'x' }, { a: 'x' }])
    expect(await rows(db, `SELECT cursor_from, cursor_to FROM _loads WHERE stream = 'public-numbers'`)).toEqual([
      { cursor_from: '8', cursor_to: '10' },
    ])
    expect((await runCommand(verifyCommand, ['--db', db])).stdout).toContain('All checks passed.')
  })

  it('that activate a version replace the rows of older versions, and no others', async () => {
    const db = path('versions.duckdb')
    const table = schema('full', { k: { type: 'integer' } }, { key_properties: ['k'] })
    const plain = schema('log', { a: { type: 'integer' } })
    const run = (version: number, keys: ReadonlyArray<number>, active = true) => {
      const activate = (stream: string) => ({ type: 'ACTIVATE_VERSION', stream, version })
      return jsonLines([
        table,
        plain,
        ...keys.map((k) => ({ type: 'RECORD', stream: 'full', record: { k }, version })),
        ...keys.map((a) => ({ type: 'RECORD', stream: 'log', record: { a }, version })),
        ...(active ? [activate('full'), activate('log')] : []),
        { type: 'STATE', value: { bookmarks: {} } },
      ])
    }
    const found = async () => [
      (await rows(db, 'SELECT k FROM "full" ORDER BY k')).map(({ k }) => k),
      (await rows(db, 'SELECT a FROM log ORDER BY a')).map(({ a }) => a),
    ]
    const load = async (...given: Parameters<typeof run>) =>
      expect(await runCommand(snapshotCommand, ['--db', db], run(...given))).toMatchObject({ status: 0 })
    await load(1_700_000_000_000, [1, 2])
    await load(1_700_000_000_000, [3])
    expect(await found()).toEqual([
      [1, 2, 3],
      [1, 2, 3],
    ])
    await load(1_700_000_000_001, [2], false)
    expect(await found()).toEqual([
      [1, 2, 3],
      [1, 2, 2, 3],
    ])
    await load(1_700_000_000_001, [2, 4])
    expect(await found()).toEqual([
      [2, 4],
      [2, 2, 4],
    ])
    expect((await runCommand(verifyCommand, ['--db', db])).stdout).toContain('All checks passed.')
  })

  it('that refer to records in other files are refused instead of lost', async () => {
    const batch = { type: 'BATCH', stream: 'plain', encoding: { format: 'jsonl' }, manifest: ['file:///tmp/a.gz'] }
    const outcome = await runCommand(snapshotCommand, ['--db', path('batch.duckdb')], jsonLines([...messages, batch]))
    expect(outcome).toMatchObject({
      status: 1,
      stderr: expect.stringMatching(/BATCH of the stream plain, whose files are not read\. Take batch_config/),
    })
  })
})
