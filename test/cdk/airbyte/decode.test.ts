import { describe, expect, it } from 'vitest'
import { protocols } from '../../../connector/cdk/protocols'
import { configuredStream, destinationCatalog } from '../../support/catalogs'
import { summarizeInput } from '../../support/decoded-input'

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
      '{"type":"RECORD","record":{"stream":"visit_records","data":{"id":9007199254740993, "x":"\\u00e9"},"emitted_at":1}}',
      { type: 'STATE', state: { type: 'STREAM', stream: { stream_descriptor: { name: 'visit_records' } } } },
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
      '{"type": "STATE", "state": {"type":"STREAM","stream":{"stream_descriptor":{"name":"visit_records"},"stream_state":{"n":12345678901234567890}},"sourceStats":{"recordCount":1.0} }, "x":1}',
      '{"type": "STATE", "state": {"type":"STREAM","stream":{"stream_descriptor":{"name":"visit_records"},"stream_state":{"n":12345678901234567890}},"sourceStats":{"recordCount":1.0},"destinationStats":{"recordCount":1.0,"rejectedRecordCount":0.0}}, "x":1}\n',
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

  it('skip what is no message, nulls and unknown types', async () => {
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

  it.each([
    ['two lines that were joined', `${JSON.stringify(record('visit_records', {}))}{"type":"STATE","state":{}}`],
    ['a record that is no JSON', '{"type":"RECORD","record":{"stream":"visit_records","data":{"a":tru}}}'],
    ['a state that is no JSON', '{"type":"STATE","state":{"data":{"a":tru}}}'],
  ])('skip %s', async (_, line) => {
    expect(await summarizeInput(protocols.airbyte, visits, [line])).toEqual([
      ['log', 'warn', 'Line 1 of the input is no message and is skipped.'],
    ])
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
