import { describe, expect, it } from 'vitest'
import { createSourceTest } from '../../../connector/cdk/testing'
import { checkEvents } from '../../../connector/cdk/testing/check-events'
import { testedProtocols } from '../../../connector/cdk/testing/events'
import { writeTempFile } from '../../support/files'

const schema = {
  type: 'object',
  properties: {
    id: { type: 'integer' },
    at: { type: ['null', 'string'], format: 'date-time' },
    kind: { type: 'string', enum: ['a', 'b'] },
    tags: { type: 'array', items: { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] } },
    either: { oneOf: [{ type: 'string' }, { type: 'boolean' }] },
  },
  required: ['id'],
}
const stream = {
  name: 'items',
  json_schema: schema,
  supported_sync_modes: ['full_refresh', 'incremental'],
  source_defined_primary_key: [['id']],
}
const spec = {
  type: 'SPEC',
  spec: { connectionSpecification: { properties: { token: { type: 'string', airbyte_secret: true } } } },
}
const status = (value: string, name = 'items') => ({
  type: 'TRACE',
  trace: { type: 'STREAM_STATUS', stream_status: { stream_descriptor: { name }, status: value } },
})
const record = (data: object, name = 'items') => ({ type: 'RECORD', record: { stream: name, data, emitted_at: 1 } })
const state = (recordCount: number, after = 1) => ({
  type: 'STATE',
  state: {
    type: 'STREAM',
    stream: { stream_descriptor: { name: 'items' }, stream_state: { after } },
    sourceStats: { recordCount },
  },
})

const singerCatalog = { streams: [{ stream: 'items', tap_stream_id: 'items', schema, key_properties: ['id'] }] }
const singerSchema = { type: 'SCHEMA', stream: 'items', schema, key_properties: ['id'] }
const singerRecord = (data: object, name = 'items') => ({ type: 'RECORD', stream: name, record: data })
const singerState = { type: 'STATE', value: { bookmarks: { items: { after: 1 } } } }

const airbyteCatalog = JSON.stringify({ type: 'CATALOG', catalog: { streams: [stream] } })

const printLines = (lines: ReadonlyArray<unknown>): ReadonlyArray<string> =>
  lines.map((line) => (typeof line === 'string' ? line : JSON.stringify(line)))

type Script = {
  readonly airbyte?: ReadonlyArray<unknown>
  readonly singer?: ReadonlyArray<unknown>
  readonly status?: number
  readonly stderr?: string
}

/** A source that prints these lines; its stderr ends with its arguments and the state that it was given. */
const createSource = ({ airbyte = [], singer = [], status: exit = 0, stderr = '' }: Script) => {
  const print = (lines: ReadonlyArray<unknown>) =>
    printLines(lines)
      .map((line) => `${line}\n`)
      .join('')
  const outputs = {
    spec: print([spec]),
    check: print([{ type: 'CONNECTION_STATUS', connectionStatus: { status: 'FAILED', message: 'No.' } }]),
    discover: print([{ type: 'LOG', log: { level: 'INFO', message: 'x' } }, airbyteCatalog]),
    read: print(airbyte),
    '--discover': JSON.stringify(singerCatalog, null, 2),
    tap: print(singer),
  }
  const program = `
    const [, , ...args] = process.argv
    const outputs = ${JSON.stringify(outputs)}
    const verb = args.find((arg) => outputs[arg] !== undefined) ?? 'tap'
    process.stdout.write(outputs[verb])
    if (verb !== 'read' && verb !== 'tap') process.exit(0)
    process.stderr.write(${JSON.stringify(stderr)})
    const at = args.indexOf('--state')
    if (at >= 0) process.stderr.write('state ' + require('fs').readFileSync(args[at + 1], 'utf8'))
    process.exitCode = ${exit}
  `
  return createSourceTest(writeTempFile(program, 'cjs'), { token: 'abcdef-123456' })
}

/** What is wrong with these lines of a run. */
const findProblems = (name: 'airbyte' | 'singer', lines: ReadonlyArray<unknown>): ReadonlyArray<string> => {
  const { readLine, readCatalog, hasStatuses } = testedProtocols[name]
  const catalog = readCatalog(name === 'airbyte' ? airbyteCatalog : JSON.stringify(singerCatalog))
  return checkEvents(printLines(lines).map(readLine), catalog, hasStatuses).problems
}

const good = { id: 1, at: '2026-01-01T00:00:00Z', kind: 'a', tags: [{ n: 1.5 }], either: true }
const whole = (...lines: ReadonlyArray<unknown>) => [status('STARTED'), status('RUNNING'), ...lines, status('COMPLETE')]

describe('a source under test', () => {
  it('gives the records and the state of a right run, with all digits', async () => {
    const big = '{"type":"RECORD","record":{"stream":"items","data":{"id":9007199254740993},"emitted_at":1}}'
    const source = createSource({ airbyte: whole(record(good), big, state(2), state(0, 2)), stderr: 'hello ' })
    const first = await source.read('airbyte')
    expect(first.records).toEqual({ items: [good, { id: 9007199254740993n }] })
    expect(first.state).toEqual([state(0, 2).state])
    expect(first.log).toBe('hello ')
    expect((await source.read('airbyte', first.state)).log).toBe(`hello state ${JSON.stringify([state(0, 2).state])}`)
  })

  it('keeps the state of an earlier run where a run has none', async () => {
    const source = createSource({ airbyte: whole(), singer: [singerSchema] })
    expect((await source.read('airbyte', [state(0).state])).state).toEqual([state(0).state])
    expect((await source.read('singer', { bookmarks: {} })).state).toEqual({ bookmarks: {} })
  })

  it('fails for every problem and a secret on stdout', async () => {
    const log = { type: 'LOG', log: { level: 'INFO', message: 'abcdef-123456' } }
    const problem = await createSource({ airbyte: whole(log, record({})) })
      .read('airbyte')
      .then(String, String)
    expect(problem).toBe(
      [
        'Error: A read over airbyte:',
        '- items has a record without its key id',
        '- items.id is missing',
        '- items has no state after its last record',
        '- it printed a secret of the config',
      ].join('\n'),
    )
  })

  it('says what the check says', async () =>
    expect(await createSource({}).check()).toEqual({ succeeded: false, message: 'No.' }))

  it.each<[string, ReadonlyArray<unknown>, string]>([
    ['a wrong type', whole(record({ id: 'x' }), state(1)), 'items.id is string and declared as integer'],
    ['null where it is not declared', whole(record({ id: 1, kind: null }), state(1)), 'items.kind is null'],
    ['a missing attribute', whole(record({ kind: 'a' }), state(1)), 'items.id is missing'],
    ['a fraction', whole(record({ id: 1.5 }), state(1)), 'items.id is number and declared as integer'],
    ['a value that is not declared', whole(record({ id: 1, kind: 'c' }), state(1)), 'items.kind is none of'],
    ['a wrong item of a list', whole(record({ id: 1, tags: [{ n: 1 }, {}] }), state(1)), 'items.tags[].n is missing'],
    ['no alternative', whole(record({ id: 1, either: 1 }), state(1)), 'items.either fits none'],
    ['a time without a zone', whole(record({ id: 1, at: '2026-01-01T00:00:00' }), state(1)), 'items.at is declared as'],
    [
      'a day that does not exist',
      whole(record({ id: 1, at: '2026-02-30T00:00:00Z' }), state(1)),
      'items.at is declared',
    ],
    ['a record without its key', whole(record({ id: null }), state(1)), 'items has a record without its key id'],
    ['a stream that is not declared', whole(record(good, 'others'), state(0)), 'others is not declared'],
    ['a record before its stream starts', [record(good), ...whole(state(1))], 'items has a record before'],
    ['a record after its stream ends', [...whole(), record(good), state(1)], 'items has a record before'],
    ['no state after the last record', whole(record(good), state(1), record(good)), 'items has no state after'],
    ['a state that counts wrong', whole(record(good), state(2)), 'items has a state that counts 2 records after 1'],
    ['a stream that does not end', whole().slice(0, -1), 'items does not end with the status COMPLETE'],
    ['a stream that is incomplete', [status('STARTED'), status('INCOMPLETE')], 'items does not end with'],
    ['a stream that is left out', [], 'items does not end with the status COMPLETE'],
    [
      'an error',
      [...whole(), { type: 'TRACE', trace: { type: 'ERROR', error: { message: 'It broke.' } } }],
      'It broke.',
    ],
    ['a line that is no JSON', ['hello', ...whole()], 'line 1 of stdout is not a message'],
    ['a line of the other protocol', [singerSchema, ...whole()], 'line 1 of stdout is not a message'],
  ])('fails over airbyte for %s', (_, airbyte, message) => {
    expect(findProblems('airbyte', airbyte)).toContainEqual(expect.stringContaining(message))
  })

  it.each<[string, ReadonlyArray<unknown>, string]>([
    ['a record before its schema', [singerRecord(good), singerSchema, singerState], 'items is not declared before'],
    ['a schema that is left out', [singerState], 'items has no SCHEMA'],
    ['a stream that is not in the catalog', [{ ...singerSchema, stream: 'others' }], 'others is not in the catalog'],
    ['a wrong type', [singerSchema, singerRecord({ id: 'x' }), singerState], 'items.id is string'],
    ['no state at the end', [singerSchema, singerState, singerRecord(good)], 'items has no state after'],
    ['a line of the other protocol', [singerSchema, record(good)], 'line 2 of stdout is'],
  ])('fails over singer for %s', (_, singer, message) => {
    expect(findProblems('singer', singer)).toContainEqual(expect.stringContaining(message))
  })

  it('fails for a secret on stderr and for an exit status, and shows the log', async () => {
    const source = createSource({ singer: [singerSchema, singerState], status: 3, stderr: 'abcdef-123456 it broke' })
    const problem = await source.read('singer').then(String, String)
    expect(problem).toContain('- it ended with 3\n- it printed a secret of the config\nIt logged:\n*** it broke')
  })

  it('shows each problem once, and not the values', async () => {
    const airbyte = whole(...Array.from({ length: 50 }, () => record({ id: 'Ada Byron' })), state(50))
    const problem = await createSource({ airbyte }).read('airbyte').then(String, String)
    expect(problem).toBe('Error: A read over airbyte:\n- items.id is string and declared as integer')
  })
})
