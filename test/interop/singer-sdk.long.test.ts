import Ajv from 'ajv'
import addFormats from 'ajv-formats'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { JsonSchema } from '../../connector/cdk/schema'
import type { Sandbox } from '../../connector/sandbox/start'
import manifest from '../../package.json'
import { createJsonFolder, type JsonFolder } from '../support/files'
import { type SingerStream, singerLines, singerRecords, singerState } from '../support/lines'
import { type ProgramResult, runProgram } from '../support/program'
import { startTestSandbox } from '../support/sandbox'
import { schemaProperties, schemaTypes } from '../support/schema-walk'
import { createTapRunner, recordKeys } from './tap'

// The Meltano SDK's standard tap tests under their own names, over the built tap: its own runner drives Python taps in
// process only.

let sandbox: Sandbox
let files: JsonFolder
let streams: ReadonlyArray<SingerStream>
let synced: ProgramResult
let runTap: ReturnType<typeof createTapRunner>

beforeAll(async () => {
  sandbox = await startTestSandbox({ reviews: 400 })
  files = createJsonFolder()
  runTap = createTapRunner(sandbox, files)
  streams = JSON.parse((await runProgram('tap-feedback', ['--discover'])).stdout).streams
  expect(streams.length).toBeGreaterThan(10)
  synced = await runTap({})
})
afterAll(async () => {
  await sandbox.close()
  files.remove()
})

const records = ({ tap_stream_id }: SingerStream) => singerRecords(synced.stdout, tap_stream_id)

/** Each attribute of a stream whose schema `is` of the kind, with the values it has. */
const attributes = (is: (schema: JsonSchema) => boolean) =>
  streams.flatMap((stream) =>
    Object.entries(schemaProperties(stream.schema))
      .filter(([, schema]) => is(schema))
      .map(([name, schema]) => ({
        name: `${stream.tap_stream_id}.${name}`,
        nullable: schemaTypes(schema).includes('null'),
        values: records(stream)
          .map((record) => record[name])
          .filter((value) => value !== undefined && value !== null),
        missing: records(stream).filter((record) => record[name] === undefined || record[name] === null).length,
      })),
  )
const has = (type: string) => (schema: JsonSchema) => schemaTypes(schema).includes(type)

describe('the tap', () => {
  it('cli_prints: prints its version, its settings in JSON and Markdown, and its usage', async () => {
    const version = await runProgram('tap-feedback', ['--version'])
    expect([version.status, version.stdout]).toEqual([0, `tap-feedback ${manifest.version}\n`])
    const about = JSON.parse((await runProgram('tap-feedback', ['--about', '--format', 'json'])).stdout)
    expect(about).toMatchObject({ name: 'tap-feedback', version: manifest.version })
    expect(about.capabilities).toContain('state')
    expect(Object.keys(about.settings.properties)).toContain('base_url')
    expect((await runProgram('tap-feedback', ['--about', '--format', 'markdown'])).stdout).toMatch(/^# tap-feedback\n/)
    expect((await runProgram('tap-feedback', ['--help'])).stdout).toMatch(/^Usage: tap-feedback \[options\]\n/)
  })

  it('discovery: finds the same streams without a config and with an incomplete one', async () => {
    expect(streams.length).toBeGreaterThan(1)
    const wrong = await runProgram('tap-feedback', ['--config', files.put('empty.json', {}), '--discover'])
    expect([wrong.status, JSON.parse(wrong.stdout).streams]).toEqual([0, streams])
    for (const { tap_stream_id, key_properties } of streams) {
      expect(tap_stream_id).toMatch(/^[a-z_]+$/)
      expect(key_properties.length).toBeGreaterThan(0)
    }
  })

  it('stream_connections: sends one record of each stream in a test', async () => {
    const ran = await runTap({ flags: ['--test'] })
    expect(ran.status).toBe(0)
    for (const { tap_stream_id } of streams) expect(singerRecords(ran.stdout, tap_stream_id)).toHaveLength(1)
  })

  it('stream_connections: fails a test without records if the token is wrong', async () => {
    const config = { credentials: { auth_type: 'access_token', access_token: 'wrong' } }
    const ran = await runTap({ config, flags: ['--test'] })
    expect([ran.status, singerLines(ran.stdout).filter(({ type }) => type === 'RECORD')]).toEqual([1, []])
    expect(ran.stderr).toMatch(/^ERROR .*token/m)
  })

  it('valid_final_state: ends with a bookmark of every stream and no stream under way', () => {
    expect(synced.status).toBe(0)
    const state = singerState(synced.stdout)
    expect(Object.keys(state.bookmarks).sort()).toEqual(streams.map(({ tap_stream_id }) => tap_stream_id).sort())
    expect(state.currently_syncing).toBeNull()
  })

  it('first_state: sends a state before the first record', () => {
    const [schema, state] = singerLines(synced.stdout)
    expect([schema?.type, state?.type]).toEqual(['SCHEMA', 'STATE'])
  })

  it('logs metrics that count the records, and structured lines on request', async () => {
    expect(synced.stderr).toMatch(/^INFO METRIC: \{"type":"timer","metric":"http_request_duration",/m)
    expect(synced.stderr).toMatch(/^INFO METRIC: \{"type":"timer","metric":"sync_duration",/m)
    for (const stream of streams) {
      const lines = synced.stderr.split('\n').filter((line) => line.includes('"metric":"record_count"'))
      const mine = lines
        .map((line) => JSON.parse(line.replace('INFO METRIC: ', '')))
        .filter(({ tags }) => tags.stream === stream.tap_stream_id)
      expect(mine.reduce((sum, { value }) => sum + value, 0)).toBe(records(stream).length)
    }
    const structured = await runTap({ flags: ['--test'] }, { env: { SINGER_SDK_LOG_CONFIG: 'log.yml' } })
    const keys = ['level', 'pid', 'logger_name', 'ts', 'thread_name', 'app_name', 'stream_name', 'message']
    const logged = structured.stderr.trimEnd().split('\n')
    expect(logged.length).toBeGreaterThan(1)
    for (const line of logged) expect(Object.keys(JSON.parse(line)).sort()).toEqual([...keys].sort())
  })
})

describe('a stream', () => {
  const ajv = addFormats(new Ajv({ strict: false, allErrors: true }))

  it('schema_is_valid: has a schema of JSON Schema', () => {
    for (const { schema } of streams) expect(ajv.validateSchema(schema)).toBe(true)
  })

  it('schema_is_valid: has a list of types for every property and no two names that differ only in case', () => {
    for (const { tap_stream_id, schema } of streams) {
      const properties = Object.entries(schemaProperties(schema))
      expect(properties.filter(([, { type }]) => !Array.isArray(type))).toEqual([])
      const names = properties.map(([name]) => name.toLowerCase())
      expect([tap_stream_id, new Set(names).size]).toEqual([tap_stream_id, names.length])
    }
  })

  it('returns_record: has records', () => {
    for (const stream of streams) expect([stream.tap_stream_id, records(stream).length]).not.toContain(0)
  })

  it('record_matches_stream_schema: has records that match its schema', () => {
    for (const stream of streams) {
      const validate = ajv.compile(stream.schema)
      expect(records(stream).flatMap((record) => (validate(record) ? [] : (validate.errors ?? [])))).toEqual([])
    }
  })

  it('record_matches_catalog: has no record with an attribute that the catalog lacks', () => {
    for (const stream of streams) {
      const declared = new Set(Object.keys(schemaProperties(stream.schema)))
      const extra = records(stream).flatMap((record) => Object.keys(record).filter((name) => !declared.has(name)))
      expect([stream.tap_stream_id, extra]).toEqual([stream.tap_stream_id, []])
    }
  })

  it('catalog_schema_matches_record: has every attribute of the catalog in some record', () => {
    for (const stream of streams) {
      const present = new Set(records(stream).flatMap((record) => Object.keys(record)))
      const missing = Object.keys(schemaProperties(stream.schema)).filter(
        (name) => !present.has(name) && name !== 'unknown_attributes',
      )
      expect([stream.tap_stream_id, missing]).toEqual([stream.tap_stream_id, []])
    }
  })

  it('primary_keys: has a unique key without nulls in each record', () => {
    for (const stream of streams) {
      const keys = recordKeys(stream, synced.stdout)
      expect([stream.tap_stream_id, keys.filter((key) => /null|undefined/.test(key))]).toEqual([
        stream.tap_stream_id,
        [],
      ])
      expect([stream.tap_stream_id, new Set(keys).size]).toEqual([stream.tap_stream_id, keys.length])
    }
  })

  it('has the same records in a second run', async () => {
    const again = await runTap({})
    for (const stream of streams) expect(singerRecords(again.stdout, stream.tap_stream_id)).toEqual(records(stream))
  })
})

describe('an attribute', () => {
  it.each<[string, (schema: JsonSchema) => boolean, (value: unknown) => boolean]>([
    [
      'is_datetime: is a time in UTC if its format is date-time',
      ({ format }) => format === 'date-time',
      (value) => typeof value === 'string' && /Z$/.test(value) && !Number.isNaN(Date.parse(value)),
    ],
    ['is_integer: is an integer if its type is integer', has('integer'), (value) => Number.isInteger(value)],
    ['is_numeric: is a number if its type is number', has('number'), (value) => typeof value === 'number'],
    [
      'is_object: is an object if its type is object',
      has('object'),
      (value) => typeof value === 'object' && !Array.isArray(value),
    ],
    ['is_array: is a list if its type is array', has('array'), (value) => Array.isArray(value)],
    [
      'is_string: is a string if its type is string',
      (schema) => has('string')(schema) && schema.format === undefined,
      (value) => typeof value === 'string',
    ],
  ])('%s', (_, kind, right) => {
    const found = attributes(kind)
    expect(found.flatMap(({ values }) => values).length).toBeGreaterThan(0)
    expect(found.filter(({ values }) => values.some((value) => !right(value))).map(({ name }) => name)).toEqual([])
  })

  it('is_boolean: is never a boolean, so that there is no value to test', () => {
    expect(attributes(has('boolean'))).toEqual([])
  })

  it('not_null: is present in every record if it is not nullable', () => {
    const found = attributes(() => true).filter(({ nullable }) => !nullable)
    expect(found.length).toBeGreaterThan(streams.length)
    expect(found.filter(({ missing }) => missing > 0).map(({ name }) => name)).toEqual([])
  })
})
