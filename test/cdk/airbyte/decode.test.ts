import * as E from 'fp-ts/Either'
import { describe, expect, it } from 'vitest'
import { findStreamById } from '../../../connector/cdk/catalog'
import { decodeInput } from '../../../connector/cdk/input'
import { protocols } from '../../../connector/cdk/protocols'
import { configuredStream, destinationCatalog } from '../../support/catalogs'
import { decodeForSnapshot, inChunks, summarizeInput } from '../../support/decoded-input'

const status = (name: string, value: string, more: object = {}) => ({
  type: 'TRACE',
  trace: {
    type: 'STREAM_STATUS',
    emitted_at: 1.5,
    stream_status: { stream_descriptor: { name, ...more }, status: value },
  },
})
const record = (name: string, data: unknown, more: object = {}) => ({
  type: 'RECORD',
  record: { stream: name, data, emitted_at: 1, ...more },
})
const visits = destinationCatalog(configuredStream('visit_records', { primary_key: [['id']] }))

describe('Airbyte lines for a destination', () => {
  it('are records as they came, states and statuses', async () => {
    const lines = [
      '{"type":"RECORD","record":{"stream":"visit_records","data":{"id":9007199254740993, ' +
        '"x":"\\u00e9"},"emitted_at":1}}',
      {
        type: 'STATE',
        state: { type: 'STREAM', stream: { stream_descriptor: { name: 'visit_records' }, stream_state: {} } },
      },
      status('visit_records', 'COMPLETE'),
    ]
    expect(await summarizeInput(protocols.airbyte, visits, lines)).toEqual([
      ['started', 'visit_records', ['id']],
      ['visit_records', '{"id":9007199254740993, "x":"\\u00e9"}'],
      ['state', 'visit_records', expect.any(String)],
      ['finished', 'visit_records', 'everything'],
    ])
  })

  it.each([
    [
      'adds its counts and leaves the rest as it came',
      'visit_records',
      '{"type": "STATE", "state": ' +
        '{"type":"STREAM","stream":{"stream_descriptor":{"name":"visit_records"},' +
        '"stream_state":{"n":12345678901234567890}},"sourceStats":{"recordCount":0.0} ' +
        '}, "x":1}',
      '{"type": "STATE", "state": ' +
        '{"type":"STREAM","stream":{"stream_descriptor":{"name":"visit_records"},' +
        '"stream_state":{"n":12345678901234567890}},"sourceStats":{"recordCount":0.0},' +
        '"destinationStats":{"recordCount":1.0,"rejectedRecordCount":0.0}}, ' +
        '"x":1}\n',
    ],
    [
      'replaces counts that are there',
      undefined,
      '{"type":"STATE","state":{"destinationStats":{"recordCount":7.0},"data":{}}}',
      '{"type":"STATE","state":{"destinationStats":{"recordCount":1.0,"rejectedRecordCount":0.0},"data":{}}}\n',
    ],
    [
      'takes an empty state',
      undefined,
      '{"type":"STATE","state":{}}',
      '{"type":"STATE","state":{"destinationStats":{"recordCount":1.0,"rejectedRecordCount":0.0}}}\n',
    ],
  ])('print a state back: %s', async (_, stream, line, answer) => {
    const items = await summarizeInput(protocols.airbyte, visits, [line])
    expect(items.filter((item) => Array.isArray(item) && item[0] === 'state')).toEqual([['state', stream, answer]])
  })

  it('skip lines that are not messages, nulls and unknown types', async () => {
    const lines = [
      'nonsense',
      '',
      '{"a":1}',
      { type: 'LOG', log: { level: 'INFO', message: 'x' } },
      { type: 'NEW', record: null },
    ]
    expect(
      await summarizeInput(protocols.airbyte, visits, [
        ...lines,
        record('visit_records', { a: 1 }, { meta: null, namespace: null }),
      ]),
    ).toEqual([
      ['log', 'warn', expect.stringContaining('Line 1')],
      ['log', 'warn', expect.stringContaining('Line 3')],
      ['started', 'visit_records', ['id']],
      ['visit_records', '{"a":1}'],
    ])
  })

  it('fail on a record of a stream that is not configured', async () => {
    expect(await summarizeInput(protocols.airbyte, visits, [record('others', {})])).toEqual([
      expect.stringContaining('stream others'),
    ])
  })

  it.each([
    ['nothing', [], undefined],
    ['an incomplete one', [status('visit_records', 'INCOMPLETE')], ['failed', 'visit_records']],
    ['one that only started', [status('visit_records', 'STARTED')], ['started', 'visit_records', ['id']]],
    ['one that completed', [status('visit_records', 'COMPLETE')], ['finished', 'visit_records', 'everything']],
  ])('say how a stream ended: %s', async (_, lines, last) => {
    expect((await summarizeInput(protocols.airbyte, visits, lines)).at(-1)).toEqual(last)
  })

  const whole = JSON.stringify(record('visit_records', { a: 1 }))
  it.each([
    ['two lines that were joined', `${whole}{"type":"STATE","state":{}}`],
    ['a record that is no JSON', '{"type":"RECORD","record":{"stream":"visit_records","data":{"a":tru}}}'],
    ['a record with a number that JSON does not have', whole.replace('1', 'NaN')],
    ['the beginning of a record', whole.slice(0, 30)],
    ['two characters of a record', whole.slice(0, 2)],
    ['the end of a record', whole.slice(10)],
    ['the last part of a record', '"x":1},"emitted_at":1}}'],
    ['a record behind other text', `INFO ${whole}`],
    ['a record behind a byte order mark', `\ufeff${whole}`],
    ['records in a list', `[${whole}]`],
    ['a record without its type', JSON.stringify({ record: { stream: 'visit_records', data: {} } })],
    ['a record of a type in lower case', whole.replace('RECORD', 'record')],
    ['a record of another protocol', '{"type":"Record","stream":"visit_records","record":{}}'],
    ['a state that is no JSON', '{"type":"STATE","state":{"data":{"a":tru}}}'],
  ])('fail on %s, and let no state after it out', async (_, line) => {
    const state = { type: 'STATE', state: { type: 'STREAM', stream: { stream_descriptor: { name: 'visit_records' } } } }
    expect(await summarizeInput(protocols.airbyte, visits, [line, state])).toEqual([
      expect.stringMatching(/^Line 1 of the input (is not a message and may be a broken record|has a type)/),
    ])
  })

  it.each([
    'Traceback (most recent call last):',
    '2026-01-01 12:00:00 INFO {"level": "x"',
    '{"level":"info","message":"3 records","data":{"n":3}}',
    '{"text":"x","record":{"level":{"name":"INFO"},"message":"x"}}',
    '["a"]',
    '"record"',
    '17',
  ])('skip other text: %s', async (line) => {
    expect(await summarizeInput(protocols.airbyte, visits, [line])).toEqual([
      ['log', 'warn', 'Line 1 of the input is not a message and is skipped.'],
    ])
  })

  const stateOf = (more: object, count?: number) => ({
    type: 'STATE',
    state: { ...more, ...(count === undefined ? {} : { sourceStats: { recordCount: count } }) },
  })
  const single = (name: string, count?: number) =>
    stateOf({ type: 'STREAM', stream: { stream_descriptor: { name }, stream_state: {} } }, count)
  const global = (count?: number) => stateOf({ type: 'GLOBAL', global: { stream_states: [] } }, count)
  const [a, b] = [record('a', { n: 1 }), record('b', { n: 1 })]
  const two = destinationCatalog(configuredStream('a'), configuredStream('b'))
  it.each<[string, ReadonlyArray<object>, number | string]>([
    [
      'counts that are right, since the last state of the stream',
      [a, b, a, single('a', 2), a, single('a', 1), single('b', 1)],
      3,
    ],
    ['no counts', [a, single('a'), a, a, single('a', 2)], 2],
    ['counts of all streams', [a, b, a, global(3), global(0)], 2],
    ['counts of nothing', [single('a', 0), global()], 2],
    ['counts of all streams beside counts of one', [a, single('a', 1), b, global(2)], 2],
    [
      'a record too few',
      [a, single('a', 1), a, single('a', 2)],
      'Line 4 of the input is a state whose source counted 2 records of a since the previous state, but 1 arrived',
    ],
    [
      'a record too many',
      [a, a, single('a', 1)],
      'Line 3 of the input is a state whose source counted 1 records of a since the previous state, but 2 arrived',
    ],
    [
      'a stream without its records',
      [b, single('a', 5)],
      'counted 5 records of a since the previous state, but 0 arrived',
    ],
    ['too few for all streams', [a, b, global(3)], 'counted 3 records since the previous state, but 2 arrived'],
  ])('are held against the counts of the source: %s', async (_, lines, expected) => {
    const items = await summarizeInput(protocols.airbyte, two, lines)
    const states = items.filter((item) => Array.isArray(item) && item[0] === 'state')
    if (typeof expected === 'number') expect(states).toHaveLength(expected)
    else expect(items.at(-1)).toContain(expected)
  })

  it('are taken despite other counts of the source if a platform counts itself, and complete no list', async () => {
    const ofPlatform = (name: string, count: number) =>
      stateOf({ type: 'STREAM', id: 7, stream: { stream_descriptor: { name }, stream_state: {} } }, count)
    const lines = [a, b, ofPlatform('a', 2), ofPlatform('b', 1), status('a', 'COMPLETE'), status('b', 'COMPLETE')]
    const items = await summarizeInput(protocols.airbyte, two, lines)
    expect(items.filter((item) => Array.isArray(item) && ['log', 'finished'].includes(String(item[0])))).toEqual([
      [
        'log',
        'warn',
        'Line 3 of the input is a state whose source counted 2 records of a since ' +
          'the previous state, but 1 arrived. No list counts as complete because of this.',
      ],
      ['finished', 'a', 'changes'],
      ['finished', 'b', 'everything'],
    ])
    const shared = stateOf({ type: 'GLOBAL', id: 8, global: { stream_states: [] } }, 3)
    const ended = await summarizeInput(protocols.airbyte, two, [a, shared, status('a', 'COMPLETE')])
    expect(ended.at(-1)).toEqual(['finished', 'a', 'changes'])
  })

  it.each([
    ['one', { type: 'STREAM', stream: { stream_descriptor: { name: 'a' } } }],
    ['null', { type: 'STREAM', stream: { stream_descriptor: { name: 'a' }, stream_state: null } }],
    ['all', { type: 'GLOBAL', global: { stream_states: [{ stream_descriptor: { name: 'a' }, stream_state: null }] } }],
  ])('say that a stream is cleared by a state without a value: %s', async (_, state) => {
    const items = await summarizeInput(protocols.airbyte, two, [{ type: 'STATE', state }])
    expect(items).toContainEqual(['log', 'info', 'a: cleared on the platform; nothing changes at the service.'])
  })

  it('end within a line where the source was stopped', async () => {
    const cut = (text: string) =>
      decodeInput(protocols.airbyte, { purpose: 'deliver', now: () => 0, findStream: findStreamById(visits) })(
        inChunks(Buffer.from(text), 100),
      )
    const read = async (text: string) => {
      const found: Array<unknown> = []
      for await (const messages of cut(text)) found.push(...(E.isLeft(messages) ? [messages.left] : messages.right))
      return found
    }
    expect(await read(`${whole}\n${whole.slice(0, -3)}`)).toEqual([
      expect.objectContaining({ _tag: 'Started' }),
      expect.objectContaining({ _tag: 'Records' }),
      {
        _tag: 'Failed',
        failure: expect.objectContaining({ _tag: 'Transient', message: expect.stringContaining('within line 2') }),
      },
    ])
    expect(await read(`${whole.slice(0, -3)}\n`)).toEqual([expect.objectContaining({ _tag: 'Config' })])
    expect(await read('bye')).toEqual([expect.objectContaining({ _tag: 'Log' })])
  })

  it.each([
    ['data that is no object', '{"type":"RECORD","record":{"stream":"visit_records","data":[1]}}'],
    ['no stream', '{"type":"RECORD","record":{"data":{}}}'],
  ])('fail on a record with %s', async (_, line) => {
    expect(await summarizeInput(protocols.airbyte, visits, [line])).toEqual([
      expect.stringContaining('Line 1 of the input is a RECORD without stream or data'),
    ])
  })

  it('name a stream by its namespace, or by its name alone if only one stream has it', async () => {
    const two = destinationCatalog(
      configuredStream('a', {}, { namespace: 'x' }),
      configuredStream('a', {}, { namespace: 'y' }),
      configuredStream('b', {}, { namespace: 'x' }),
    )
    const lines = [record('a', {}, { namespace: 'y' }), record('b', {}), status('a', 'COMPLETE', { namespace: 'x' })]
    const items = await summarizeInput(protocols.airbyte, two, lines)
    expect(items.filter((item) => Array.isArray(item) && item[0] !== 'started')).toEqual([
      ['y.a', '{}'],
      ['x.b', '{}'],
      ['finished', 'x.a', 'everything'],
    ])
  })
})

describe('Airbyte lines for a snapshot', () => {
  const before = {
    type: 'STATE',
    state: { type: 'STREAM', stream: { stream_descriptor: { name: 'a' }, stream_state: {} } },
  }
  const counted = { ...before, state: { ...before.state, sourceStats: { recordCount: 1 } } }
  const catalog = destinationCatalog(configuredStream('a'))
  it.each<[string, ReadonlyArray<unknown>]>([
    ['a record is broken', [before, '{"type":"RECORD","rec', before]],
    ['fewer came than the source counted', [before, counted, before]],
  ])('keep no state and complete no stream once %s, and say so once', async (_, lines) => {
    const text = [...lines, record('a', { n: 1 }), before, status('a', 'COMPLETE')]
      .map((line) => (typeof line === 'string' ? line : JSON.stringify(line)))
      .join('\n')
    const { messages, refused } = await decodeForSnapshot(inChunks(Buffer.from(text), 100), catalog)
    expect(refused).toBeUndefined()
    expect(messages.map(({ _tag }) => _tag).filter((tag) => tag !== 'Log')).toEqual([
      'Started',
      'Checkpoint',
      'Records',
      'Failed',
    ])
    const warnings = messages.flatMap((message) => (message._tag === 'Log' ? [message.message] : []))
    expect(warnings.filter((text) => /state/.test(text))).toHaveLength(1)
  })
})
