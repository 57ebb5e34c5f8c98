import * as E from 'fp-ts/Either'
import { describe, expect, it } from 'vitest'
import { type ConfiguredStream, decodeDestinationCatalog } from '../../../connector/cdk/airbyte/catalog'
import { decodeAirbyte } from '../../../connector/cdk/airbyte/decode'
import { meant } from '../../support/decoded-input'

const stream = (name: string, more: object = {}, stream: object = {}) => ({
  stream: { name, json_schema: {}, supported_sync_modes: ['full_refresh'], ...stream },
  sync_mode: 'full_refresh',
  destination_sync_mode: 'append',
  ...more,
})
const configured = (...streams: ReadonlyArray<unknown>): ReadonlyArray<ConfiguredStream> => {
  const result = decodeDestinationCatalog({ streams })
  if (E.isLeft(result)) throw new Error(result.left.message)
  return result.right
}
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
const visits = configured(stream('visit_records', { primary_key: [['id']] }))

describe('a configured catalog', () => {
  it.each([
    ['its own name', stream('visit_records'), 'visit_records'],
    ['destination_object_name', stream('patients', { destination_object_name: 'visit_records' }), 'visit_records'],
    ['its own name where that is null', stream('locations', { destination_object_name: null }), 'locations'],
  ])('sends a stream to %s', (_, one, object) => {
    expect(configured(one)[0]?.objectName).toBe(object)
  })

  it('takes the key of the stream where the caller chose none', () => {
    const keys = [{ primary_key: [['a', 'b']] }, {}, { primary_key: [] }, { primary_key: null }]
    expect(keys.map((more) => configured(stream('x', more, { source_defined_primary_key: [['id']] }))[0]?.key)).toEqual(
      [[['a', 'b']], [['id']], [['id']], [['id']]],
    )
  })

  it.each([
    ['append', undefined, false],
    ['append_dedup', undefined, false],
    ['overwrite', undefined, false],
    ['update', 'update', false],
    ['soft_delete', 'soft_delete', true],
    [null, undefined, false],
  ])('knows what %s asks for', (mode, asks, deletes) => {
    expect(configured(stream('locations', { destination_sync_mode: mode }))[0]).toMatchObject({
      operation: asks,
      isDeletion: deletes,
    })
  })

  it('names the key path that is wrong', () => {
    expect(decodeDestinationCatalog({ streams: [stream('x'), { stream: {} }] })).toMatchObject({
      left: { _tag: 'Config', message: expect.stringContaining('streams.1.stream.name') },
    })
  })
})

describe('airbyteArrivals', () => {
  it('takes records as they came, states and statuses', async () => {
    const lines = [
      '{"type":"RECORD","record":{"stream":"visit_records","data":{"id":9007199254740993, "x":"\\u00e9"},"emitted_at":1}}',
      { type: 'STATE', state: { type: 'STREAM', stream: { stream_descriptor: { name: 'visit_records' } } } },
      status('visit_records', 'COMPLETE'),
    ]
    expect(await meant(decodeAirbyte(visits, JSON.parse), lines)).toEqual([
      ['opened', 'visit_records', 'visit_records', [['id']], false],
      ['visit_records', '{"id":9007199254740993, "x":"\\u00e9"}'],
      ['state', 'visit_records', expect.any(String)],
      ['completed', 'visit_records', true],
    ])
  })

  it.each([
    [
      'adds its counts and leaves the rest as it came',
      '{"type": "STATE", "state": {"type":"STREAM","stream":{"stream_descriptor":{"name":"visit_records"},"stream_state":{"n":12345678901234567890}},"sourceStats":{"recordCount":1.0} }, "x":1}',
      '{"type": "STATE", "state": {"type":"STREAM","stream":{"stream_descriptor":{"name":"visit_records"},"stream_state":{"n":12345678901234567890}},"sourceStats":{"recordCount":1.0},"destinationStats":{"recordCount":1.0,"rejectedRecordCount":0.0}}, "x":1}\n',
    ],
    [
      'replaces counts that are there',
      '{"type":"STATE","state":{"destinationStats":{"recordCount":7.0},"data":{}}}',
      '{"type":"STATE","state":{"destinationStats":{"recordCount":1.0,"rejectedRecordCount":0.0},"data":{}}}\n',
    ],
    [
      'takes an empty state',
      '{"type":"STATE","state":{}}',
      '{"type":"STATE","state":{"destinationStats":{"recordCount":1.0,"rejectedRecordCount":0.0}}}\n',
    ],
  ])('answers a state: %s', async (_, line, answer) => {
    const [, said] = await meant(decodeAirbyte(visits, JSON.parse), [line])
    expect((said as ReadonlyArray<unknown>)[2]).toBe(answer)
  })

  it('passes over what is no message, nulls and unknown types', async () => {
    const lines = [
      'nonsense',
      '',
      '{"a":1}',
      { type: 'LOG', log: { level: 'INFO', message: 'x' } },
      { type: 'NEW', record: null },
    ]
    expect(
      await meant(decodeAirbyte(visits, JSON.parse), [
        ...lines,
        record('visit_records', { a: 1 }, { meta: null, namespace: null }),
      ]),
    ).toEqual([
      expect.anything(),
      ['skipped', expect.stringContaining('Line 1')],
      ['skipped', expect.stringContaining('Line 3')],
      ['visit_records', '{"a":1}'],
      ['broken', 'visit_records'],
    ])
  })

  it('fails on a record of a stream that is not configured', async () => {
    expect((await meant(decodeAirbyte(visits, JSON.parse), [record('others', {})])).at(1)).toContain('others')
  })

  it.each([
    ['nothing', [], ['broken', 'visit_records']],
    ['an incomplete one', [status('visit_records', 'INCOMPLETE')], ['broken', 'visit_records']],
    ['one that only started', [status('visit_records', 'STARTED')], ['broken', 'visit_records']],
    ['one that completed', [status('visit_records', 'COMPLETE')], ['completed', 'visit_records', true]],
  ])('tells at the end of the input how a stream ended: %s', async (_, lines, said) => {
    expect((await meant(decodeAirbyte(visits, JSON.parse), lines)).slice(1)).toEqual([said])
  })

  it('tells namespaces apart, and takes the name alone where only one stream has it', async () => {
    const two = configured(
      stream('a', {}, { namespace: 'x' }),
      stream('a', {}, { namespace: 'y' }),
      stream('b', {}, { namespace: 'x' }),
    )
    const lines = [record('a', {}, { namespace: 'y' }), record('b', {}), status('a', 'COMPLETE', { namespace: 'x' })]
    expect((await meant(decodeAirbyte(two, JSON.parse), lines)).slice(3)).toEqual([
      ['y.a', '{}'],
      ['x.b', '{}'],
      ['completed', 'x.a', true],
      ['broken', 'y.a'],
      ['broken', 'x.b'],
    ])
  })
})
